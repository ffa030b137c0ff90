//! Keeping and ending a hold: renewals that get lost votes back, and releases that reach everybody.

use std::time::Duration;

use tenure::stores::quorum::Settings;
use tenure::test_util::{Fault, Rule, ScriptedStore};
use tenure::{Attempt, ErrorKind, Loss, Tenure};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};
use crate::support::peer::named;

#[tokio::test(start_paused = true)]
async fn a_holder_whose_majority_is_gone_is_told_before_its_votes_end() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    quorum.pass(millis(100)).await;
    quorum.all([0, 1, 2], Fault::Hang);
    assert_eq!(guard.lost().await, Loss::Expired);
    let held = quorum.peek(0, "x").await.holders.len();
    assert_eq!(held, 1, "the votes of those that are cut off still last");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_gets_back_the_votes_of_members_that_lost_them() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    others_act().await;
    // One after the other loses it. The next renewal finds it missing, and the one after that gets it back.
    for round in 0..10 {
        let member = &quorum.members[round % 5];
        member.forget(&named("x")).await.unwrap();
        quorum.pass(secs(7)).await;
        guard.ensure().unwrap();
        assert_eq!(quorum.votes("x").await, 5, "round {round}");
    }
    // When most have lost it, it may as well have been released: nobody takes it again behind somebody's back.
    for member in &quorum.members[..3] {
        member.forget(&named("x")).await.unwrap();
    }
    assert_eq!(guard.lost().await, Loss::Forgotten);
    quorum.pass(secs(1)).await;
    assert_eq!(
        quorum.votes("x").await,
        0,
        "and what is left keeps nobody out"
    );
}

/// Somebody who did not win was given a higher fence there.
#[tokio::test(start_paused = true)]
async fn a_renewal_gets_a_vote_back_where_somebody_else_tried_in_vain() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    others_act().await;
    quorum.members[2].forget(&named("x")).await.unwrap();
    quorum.pass(millis(10)).await;
    let busy = two.lock("x").try_acquire().await.unwrap();
    assert!(matches!(busy, Attempt::Busy(_)));
    let burned = quorum.peek(2, "x").await.last_fence;
    assert!(burned > guard.fence(), "{burned}");
    quorum.pass(secs(7)).await;
    assert_eq!(quorum.votes("x").await, 3);
    let fence = quorum.peek(2, "x").await.last_fence;
    assert_eq!(fence, burned, "it does not go back");
    // Another one may go now.
    quorum.all([0], Fault::Fail);
    quorum.pass(secs(30)).await;
    guard.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_another_process_released_stays_released() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    two.release_lease("x", guard.lease()).await.unwrap();
    assert_eq!(quorum.votes("x").await, 0);
    quorum.pass(secs(15)).await;
    assert_eq!(quorum.votes("x").await, 0, "and is not taken again");
    assert_eq!(guard.lost().await, Loss::Forgotten);
}

/// One member is out of reach for whoever releases it, another one for the holder: what is left to be done of the
/// release would take a vote on which the holder counts.
#[tokio::test(start_paused = true)]
async fn what_another_process_released_is_not_confirmed_again() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.members[2].script(Rule::on("release").does(Fault::Fail));
    quorum.members[2].script(Rule::on("cancel").does(Fault::Fail));
    two.release_lease("x", guard.lease()).await.unwrap();
    quorum.all([1], Fault::Fail);
    let left = guard.remaining();
    quorum.pass(secs(12)).await;
    assert!(guard.remaining() <= left - secs(12), "renewed since");
    quorum.members[1].behave();
    quorum.members[2].behave();
    assert_eq!(guard.lost().await, Loss::Forgotten);
}

/// A renewal that is confirmed while the release is under way does not bring back what it has reached by then.
#[tokio::test(start_paused = true)]
async fn a_release_that_a_renewal_meets_on_its_way_is_not_undone() {
    for early in (0..100).step_by(4) {
        let quorum = Quorum::of(3);
        let (one, two) = (quorum.client().await, quorum.client().await);
        let guard = acquired(one.lock("x").try_acquire().await.unwrap());
        others_act().await;
        quorum.members[1].script(Rule::on("release").does(Fault::Delay(millis(20))));
        quorum.members[2].script(Rule::on("release").does(Fault::Fail));
        quorum.members[2].script(Rule::on("cancel").does(Fault::Fail));
        quorum.pass(secs(10) - millis(early)).await;
        two.release_lease("x", guard.lease()).await.unwrap();
        quorum.pass(secs(15)).await;
        assert!(!guard.is_valid(), "released {early} ms before: {guard:?}");
    }
}

/// The keeper has made up its mind to renew, and the release is faster.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_sets_out_when_it_is_released_takes_nothing() {
    let quorum = Quorum::of(3);
    let store = ScriptedStore::new(quorum.store().await, quorum.clock.clone());
    let tenure = Tenure::new(store.clone(), quorum.clock.clone()).await;
    let tenure = tenure.unwrap();
    store.script(Rule::on("renew").times(1).does(Fault::Delay(millis(5))));
    let guard = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    while store.count("renew") == 0 {
        quorum.pass(millis(1)).await;
    }
    guard.release().await.unwrap();
    quorum.pass(secs(2)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_gets_no_vote_where_somebody_else_was_since() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    others_act().await;
    for member in &quorum.members {
        member.forget(&named("x")).await.unwrap();
    }
    let other = acquired(two.lock("x").try_acquire().await.unwrap());
    assert!(other.fence() > guard.fence());
    other.release().await.unwrap();
    assert_eq!(guard.lost().await, Loss::Forgotten);
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_ended_by_force_does_not_come_back_with_a_renewal() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    others_act().await;
    quorum.members[2].forget(&named("x")).await.unwrap();
    two.force_release("x", guard.lease(), "stuck")
        .await
        .unwrap();
    assert!(matches!(guard.lost().await, Loss::Forced(_)));
    quorum.pass(secs(1)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_release_reaches_the_slow_members_too() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.all([0, 1], Fault::Delay(millis(300)));
    let (released, took) = quorum.elapsed(guard.release()).await;
    released.unwrap();
    assert_eq!(took, Duration::ZERO);
    assert_eq!(quorum.votes("x").await, 2);
    quorum.pass(millis(400)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

/// The usual course of a short hold: the slower ones vote when it is over. The release that follows is enough.
#[tokio::test(start_paused = true)]
async fn a_vote_that_comes_when_the_release_is_under_way_costs_nothing_more() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    quorum.all([3, 4], Fault::DelayReply(millis(20)));
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    guard.release().await.unwrap();
    quorum.pass(secs(2)).await;
    assert_eq!(quorum.votes("x").await, 0);
    for member in &quorum.members {
        assert_eq!((member.count("vote"), member.count("release")), (1, 1));
        assert_eq!(member.count("cancel"), 0);
    }
}

/// Somebody else waits longer for a server than the holder does: what was ended at the first must not come back meanwhile.
#[tokio::test(start_paused = true)]
async fn what_a_more_patient_process_released_stays_released() {
    let mut quorum = Quorum::of(3);
    let one = quorum.client().await;
    quorum.settings.node_timeout = Settings::LONGEST_NODE_TIMEOUT;
    let two = quorum.client().await;
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.members[1].script(Rule::on("release").does(Fault::Delay(millis(900))));
    quorum.members[2].script(Rule::on("release").does(Fault::Hang));
    let lease = guard.lease();
    let releasing = tokio::spawn(async move { two.release_lease("x", lease).await });
    others_act().await;
    guard.extend(secs(30)).await.unwrap();
    quorum.pass(millis(600)).await;
    guard.extend(secs(30)).await.unwrap();
    releasing
        .await
        .unwrap()
        .expect("it has reached two of three");
    let error = guard.extend(secs(30)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
}

/// Its holder may have got back at the first what was ended at the last.
#[tokio::test(start_paused = true)]
async fn whoever_is_stopped_while_it_releases_by_lease_is_not_told_that_it_did() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.all([1, 2], Fault::Delay(millis(10)));
    let lease = guard.lease();
    let releasing = tokio::spawn(async move { two.release_lease("x", lease).await });
    others_act().await;
    quorum.clock.jump(secs(5));
    let error = releasing.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
