//! Votes that came to nothing, late or unheard: none is left behind.

use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, ErrorKind};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};
use crate::support::peer::named;

#[tokio::test(start_paused = true)]
async fn votes_that_came_to_nothing_are_taken_back_everywhere() {
    let quorum = Quorum::of(5);
    let (one, two) = (quorum.client().await, quorum.client().await);
    // Somebody has a majority, but the other does not reach one of its members.
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.members[3].forget(&named("x")).await.unwrap();
    quorum.members[4].forget(&named("x")).await.unwrap();
    let Attempt::Busy(blocked) = two.lock("x").try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    assert_eq!(blocked.contention.holder_count, 1);
    assert_eq!(quorum.votes("x").await, 3, "only those of the holder");
    guard.release().await.unwrap();
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_vote_that_was_given_late_or_unheard_is_taken_back() {
    for fault in [
        Fault::Hang,
        Fault::LoseReply,
        Fault::Delay(millis(300)),
        Fault::DelayReply(millis(300)),
    ] {
        let quorum = Quorum::of(3);
        let tenure = quorum.client().await;
        quorum.all([0], Fault::Fail);
        quorum.all([1], fault);
        let error = tenure.lock("x").try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        quorum.pass(secs(1)).await;
        quorum.members[1].resume().await;
        quorum.pass(secs(1)).await;
        assert_eq!(quorum.votes("x").await, 0, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_acquire_leaves_no_votes() {
    for patience in 0..40 {
        let quorum = Quorum::of(5);
        let tenure = quorum.client().await;
        quorum.all([0, 1], Fault::Delay(millis(10)));
        quorum.all([2], Fault::Hang);
        quorum.all([3, 4], Fault::DelayReply(millis(20)));
        let lock = tenure.lock("x");
        let acquire = lock.acquire();
        tokio::select! {
            biased;
            guard = acquire => drop(guard),
            () = quorum.pass(millis(patience)) => {}
        }
        tenure.settle().await;
        for member in &quorum.members {
            member.resume().await;
        }
        quorum.pass(secs(2)).await;
        assert_eq!(quorum.votes("x").await, 0, "given up after {patience} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_vote_of_a_hold_stays_and_goes_with_it() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let late = Rule::on("vote").does(Fault::Delay(millis(200)));
    quorum.members[2].script(late);
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    assert_eq!(quorum.votes("x").await, 2);
    quorum.pass(millis(300)).await;
    assert_eq!(quorum.votes("x").await, 3, "after success late votes stay");
    guard.release().await.unwrap();
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_vote_of_a_hold_that_is_over_is_taken_back() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let late = Rule::on("vote").does(Fault::Delay(millis(200)));
    quorum.members[2].script(late);
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    guard.release().await.unwrap();
    quorum.pass(millis(400)).await;
    assert_eq!(quorum.votes("x").await, 0);
}
