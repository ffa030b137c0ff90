//! Elections: one leader, standbys that take over, and what those who watch are told.

use tenure::test_util::{Fault, Rule};
use tenure::{ErrorKind, Loss};

use crate::client_world::{World, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn a_resignation_makes_the_next_in_line_leader_at_once_with_a_higher_fence() {
    let world = World::new().await;
    let first = world.tenure.election("e").campaign().await.unwrap();
    let other = world.other_client().await;
    let standby = tokio::spawn(async move { other.election("e").campaign().await });
    others_act().await;
    assert!(!standby.is_finished(), "two leaders");
    let (fence, before) = (first.fence(), world.now());
    first.resign().await.unwrap();
    let second = standby.await.unwrap().unwrap();
    assert_eq!(world.now(), before);
    assert!(second.is_leader() && second.fence() > fence);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_died_is_succeeded_when_its_lease_ends() {
    let world = World::new().await;
    let dead = world.other_client().await;
    let term = dead.election("e").ttl(secs(10)).campaign().await.unwrap();
    let lease = term.guard().lease();
    // As if killed: nothing renews or resigns.
    std::mem::forget(term);
    world.script(Rule::on("renew").of("e").does(Fault::Fail));
    let before = world.now();
    let next = world.tenure.election("e").campaign().await.unwrap();
    let took = world.now().since(before);
    assert!(took > secs(9) && took < secs(11), "{took:?}");
    assert!(next.fence() > lease.fence);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_paused_knows_at_its_first_look() {
    let world = World::new().await;
    let term = world.tenure.election("e").campaign().await.unwrap();
    world.clock.jump(secs(31));
    assert!(!term.is_leader());
    assert_eq!(term.ensure().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(term.lost().await, Loss::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_is_told_before_anybody_else_can_lead() {
    let world = World::new().await;
    let term = world.tenure.election("e").campaign().await.unwrap();
    world.script(Rule::on_everything().does(Fault::Fail));
    assert_eq!(term.lost().await, Loss::Expired);
    assert!(
        world.lasts("e").await > millis(10),
        "the store still keeps others out"
    );
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_with_a_lost_term_and_begins_again_with_the_next() {
    let world = World::new().await;
    let election = world.tenure.election("e");
    let other = world.other_client().await;
    let mut fences = Vec::new();
    let answer = election.lead(async |term| {
        fences.push(term.fence());
        if fences.len() == 1 {
            other
                .force_release("e", term.guard().lease(), "for the test")
                .await
                .unwrap();
            return std::future::pending().await;
        }
        "done"
    });
    assert_eq!(answer.await.unwrap(), "done");
    assert!(fences.len() == 2 && fences[0] < fences[1], "{fences:?}");
    assert!(world.is_idle("e").await, "whoever is done has resigned");
}

#[tokio::test(start_paused = true)]
async fn whoever_gave_its_own_term_back_does_not_campaign_again() {
    let world = World::new().await;
    let tenure = world.tenure.clone();
    let election = world.tenure.election("e");
    let leading = election.lead(async |_| {
        tenure.release_all().await.unwrap();
        std::future::pending::<()>().await;
    });
    assert_eq!(leading.await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test(start_paused = true)]
async fn who_watches_is_told_of_every_change_and_of_nothing_else() {
    let world = World::new().await;
    let watcher = world.other_client().await;
    let mut changes = watcher.election("e").observe();
    assert_eq!(changes.next().await.unwrap(), None, "nobody leads yet");
    let election = world.tenure.election("e").label("blue");
    let term = election.campaign().await.unwrap();
    let leader = changes.next().await.unwrap().unwrap();
    assert_eq!(leader.fence(), Some(term.fence()));
    assert_eq!(leader.party.label(), "blue");
    assert!(leader.lease_left.unwrap() > secs(25));
    tokio::select! {
        change = changes.next() => panic!("nothing changed, but {change:?}"),
        () = world.pass(secs(60)) => {}
    }
    // From one term to the next without a pause is a change, too.
    term.resign().await.unwrap();
    let again = election.campaign().await.unwrap();
    let leader = changes.next().await.unwrap().unwrap();
    assert_eq!(leader.fence(), Some(again.fence()));
    drop(again);
    assert_eq!(changes.next().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_asked_does_not_mean_that_nobody_leads() {
    let world = World::new().await;
    let _term = world.tenure.election("e").campaign().await.unwrap();
    let watcher = world.other_client().await;
    let mut changes = watcher.election("e").observe();
    changes.next().await.unwrap().unwrap();
    world.script(Rule::on("inspect").times(2).does(Fault::Fail));
    for _ in 0..2 {
        let error = changes.next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    tokio::select! {
        change = changes.next() => panic!("nothing changed, but {change:?}"),
        () = world.pass(secs(10)) => {}
    }
}
