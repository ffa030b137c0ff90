//! Leases are renewed in time by one keeper, and failures of some neither delay others nor go
//! unnoticed.

use tenure::test_util::{Fault, Rule};
use tenure::{ErrorKind, Loss, Standing};

use crate::client_world::{World, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn a_hold_is_renewed_at_a_third_of_its_ttl_at_the_latest() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let mut last = world.now();
    world.pass(secs(600)).await;
    guard.ensure().unwrap();
    let calls = world.store.calls();
    let renewals: Vec<_> = calls.iter().filter(|call| has(call, "renew")).collect();
    assert!(renewals.len() >= 59, "{}", renewals.len());
    for renewal in renewals {
        let gap = renewal.at.since(last);
        assert!(
            gap >= secs(5) && gap <= secs(10) + millis(10),
            "renewed after {gap:?}"
        );
        last = renewal.at;
    }
}

#[tokio::test(start_paused = true)]
async fn slow_replies_do_not_let_renewals_lag_behind() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("renew").does(Fault::DelayReply(millis(1500))));
    let mut last = world.now();
    world.pass(secs(600)).await;
    guard.ensure().unwrap();
    for renewal in world.store.calls().iter().filter(|call| has(call, "renew")) {
        let gap = renewal.at.since(last);
        // Counted from when the last one was sent, not from when it was answered.
        assert!(gap <= secs(10) + millis(10), "renewed after {gap:?}");
        last = renewal.at;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_retried_early_and_often_enough_to_survive() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("renew").times(5));
    world.pass(secs(20)).await;
    assert!(world.store.count("renew") >= 6);
    guard.ensure().unwrap();
    assert!(guard.remaining() > secs(18));
    assert!(matches!(*guard.standing().borrow(), Standing::Held { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_short_lease_is_retried_several_times_too() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").ttl(secs(1)).acquire().await.unwrap();
    world.script(Rule::on("renew").does(Fault::Hang));
    assert_eq!(guard.lost().await, Loss::Expired);
    assert!(
        world.store.count("renew") >= 3,
        "{}",
        world.store.count("renew")
    );
}

#[tokio::test(start_paused = true)]
async fn jeopardy_comes_first_then_loss_while_the_store_still_excludes_others() {
    for fault in [Fault::Fail, Fault::Hang, Fault::LoseReply] {
        let world = World::new().await;
        let guard = world.tenure.lock("x").acquire().await.unwrap();
        let mut standing = guard.standing();
        if fault == Fault::LoseReply {
            // Renewed at the store, but we never learn of it: lost all the same.
            world.script(Rule::on("renew").does(Fault::LoseReply));
        } else {
            world.script(Rule::on_everything().does(fault));
        }
        standing
            .wait_for(|standing| matches!(standing, Standing::Jeopardy { .. }))
            .await
            .unwrap();
        assert!(guard.is_valid(), "{fault:?}: jeopardy is not yet loss");
        assert!(guard.remaining() > secs(10));
        assert_eq!(guard.lost().await, Loss::Expired);
        assert!(!guard.is_valid());
        assert!(world.lasts("x").await > millis(100), "{fault:?}");
        assert_eq!(*guard.standing().borrow(), Standing::Lost(Loss::Expired));
    }
}

#[tokio::test(start_paused = true)]
async fn lost_is_final_and_a_renewal_confirmed_late_is_given_back() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("renew").does(Fault::DelayReply(secs(1))));
    while world.store.count("renew") == 0 {
        world.pass(millis(10)).await;
    }
    // The reply is on its way when the process is stopped, just until its old lease has ended.
    world
        .clock
        .jump(guard.valid_until().unwrap().since(world.now()));
    assert!(!guard.is_valid());
    world.pass(secs(2)).await;
    assert!(!guard.is_valid());
    assert_eq!(guard.lost().await, Loss::Expired);
    world.tenure.settle().await;
    assert!(world.is_idle("x").await, "renewed there, but nobody's here");
}

#[tokio::test(start_paused = true)]
async fn the_first_look_after_a_pause_says_no() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.clock.jump(secs(29));
    assert!(guard.is_valid());
    world.clock.jump(secs(1));
    // No task has run since: this is the clock's word, not the keeper's.
    assert!(!guard.is_valid());
    assert_eq!(guard.ensure().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(guard.valid_until(), None);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_keeper_ends_in_a_loss_that_is_told() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("renew").does(Fault::Panic));
    assert_eq!(guard.lost().await, Loss::Expired);
    assert!(world.lasts("x").await > millis(100));
    let error = world.tenure.lock("y").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    // Neither blocks nor panics.
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    world.tenure.settle().await;
}

#[tokio::test(start_paused = true)]
async fn one_bad_name_does_not_harm_the_others_in_its_batch() {
    let world = World::new().await;
    let mut good = Vec::new();
    for name in ["a", "b", "c"] {
        good.push(world.tenure.lock(name).acquire().await.unwrap());
    }
    let bad = world.tenure.lock("bad").acquire().await.unwrap();
    world.script(Rule::on("renew").of("bad").does(Fault::Fail));
    assert_eq!(bad.lost().await, Loss::Expired);
    world.pass(secs(300)).await;
    for guard in &good {
        assert!(guard.remaining() > secs(18), "{guard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_the_store_forgot_is_lost_at_the_next_renewal() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let before = world.now();
    world.script(Rule::on("renew").times(1).does(Fault::Forget));
    assert_eq!(guard.lost().await, Loss::Forgotten);
    assert!(world.now().since(before) <= secs(10) + millis(10));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_holds_have_one_keeper_and_travel_in_batches() {
    let world = World::new().await;
    let mut guards = Vec::new();
    for number in 0..10_000 {
        let lock = world.tenure.lock(format!("name-{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    others_act().await;
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert_eq!(tasks, 1, "the keeper, and nothing else");
    world.store.forget_calls();
    world.pass(secs(60)).await;
    let calls = world.store.calls();
    let largest = calls.iter().map(|call| call.requests.len()).max().unwrap();
    assert!(largest <= 128, "{largest}");
    let renewals = world.store.count("renew");
    assert!(renewals >= 10_000 * 5, "{renewals}");
    assert!(
        calls.len() * 100 <= renewals,
        "{} calls for {renewals} renewals",
        calls.len()
    );
    assert!(guards.iter().all(tenure::Guard::is_valid));

    world.store.forget_calls();
    drop(guards);
    world.tenure.settle().await;
    assert_eq!(world.store.count("release"), 10_000);
    assert!(world.store.calls().len() <= 101, "releases travel together");
    assert!(world.tenure.list("").await.unwrap().locks.is_empty());
}

fn has(call: &tenure::test_util::Call, word: &str) -> bool {
    call.requests
        .iter()
        .any(|request| request.action.word() == word)
}
