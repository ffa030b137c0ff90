//! Votes that came to nothing, late or unheard: none is left behind.

use std::sync::Arc;

use tenure::core::Action;
use tenure::test_util::{Fault, Rule, VirtualClock};
use tenure::{Attempt, ErrorKind, Fence, Store};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};
use crate::support::peer::{bid, lasting, named};

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
    // Asked once more when no request for a vote can be under way any more.
    quorum.pass(millis(600)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

/// Each has another fence, and one does not hear that it is to raise its own. What it has then is not the
/// vote that is released.
#[tokio::test(start_paused = true)]
async fn a_vote_with_another_fence_goes_with_the_hold() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    for member in 1..5_u64 {
        let fence = Fence::from_u64(9_000_000_000_000_000 + 1_000 * member);
        quorum.leap_ahead(member as usize, "x", fence).await;
    }
    let unheard = Rule::on("vote").after(1).times(1).does(Fault::Fail);
    quorum.members[0].script(unheard);
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    others_act().await;
    let other = quorum.peek(0, "x").await.holders[0].fence;
    assert!(other < Some(guard.fence()), "{other:?}");
    guard.release().await.unwrap();
    quorum.pass(secs(1)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

/// A roll-back that is still to come would take the vote away which a renewal got back and counts on.
#[tokio::test(start_paused = true)]
async fn no_vote_of_a_hold_is_taken_back_because_its_fence_could_not_be_raised() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    for member in 0..2 {
        let fence = Fence::from_u64(9_000_000_000_000_000);
        quorum.leap_ahead(member, "x", fence).await;
    }
    let late = Rule::on("vote").times(1).does(Fault::Delay(millis(100)));
    quorum.members[2].script(late);
    let unheard = Rule::on("vote").times(1).does(Fault::Fail);
    quorum.members[2].script(unheard);
    let guard = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    quorum.pass(secs(1)).await;
    let lower = quorum.peek(2, "x").await.holders[0].fence;
    assert!(lower < Some(guard.fence()), "{lower:?}");
    quorum.pass(secs(6)).await;
    let raised = quorum.peek(2, "x").await.holders[0].fence;
    assert_eq!(raised, Some(guard.fence()), "by the second renewal");
    assert_eq!(quorum.members[2].count("cancel"), 0);
    guard.release().await.unwrap();
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

/// Two members say that the request came too late, the third gave its vote and was not heard. Asked again, a majority
/// votes, and then what is left of the first question is taken back.
#[tokio::test(start_paused = true)]
async fn what_is_taken_back_of_one_question_is_no_vote_of_the_next() {
    let clocks: Vec<_> = (0..3).map(|_| Arc::new(VirtualClock::new())).collect();
    let quorum = Quorum::on(&clocks);
    let (one, two) = (quorum.client().await, quorum.client().await);
    quorum.pass(secs(1)).await;
    // Nobody holds anything while two clocks are set right.
    clocks[0].jump(secs(2));
    clocks[1].jump(secs(2));
    quorum.members[2].script(Rule::on("vote").times(1).does(Fault::LoseReply));
    quorum.members[1].script(Rule::on("vote").after(1).times(1).does(Fault::Fail));
    let first = acquired(one.lock("x").try_acquire().await.unwrap());
    quorum.pass(secs(1)).await;
    assert!(first.is_valid());
    let second = two.lock("x").try_acquire().await.unwrap();
    assert!(matches!(second, Attempt::Busy(_)), "two holders");
}

/// Whoever asks, and however often: what makes the above impossible.
#[tokio::test(start_paused = true)]
async fn whose_votes_are_still_being_taken_back_gets_no_new_ones() {
    let quorum = Quorum::of(3);
    let store = quorum.store().await;
    quorum.all([0, 1], Fault::Hang);
    let bid = bid();
    let ask = async || {
        let request = [Action::Acquire(bid.clone()).on(named("x"))];
        store.apply(&request).await.remove(0)
    };
    assert_eq!(ask().await.unwrap_err().kind(), ErrorKind::Unavailable);
    for member in &quorum.members {
        member.resume().await;
    }
    assert_eq!(ask().await.unwrap_err().kind(), ErrorKind::Protocol);
    quorum.pass(secs(1)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

/// A member is away for longer than the hold was to last at first.
#[tokio::test(start_paused = true)]
async fn what_was_extended_is_taken_back_for_as_long_as_it_may_last() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").ttl(secs(2)).try_acquire().await.unwrap());
    others_act().await;
    // It does what it is asked, and nobody hears of it.
    quorum.members[1].script(Rule::on("renew").times(1).does(Fault::LoseReply));
    guard.extend(secs(600)).await.unwrap();
    quorum.pass(millis(10)).await;
    quorum.all([1], Fault::Fail);
    guard.release().await.unwrap();
    quorum.pass(secs(4)).await;
    assert_eq!(quorum.votes("x").await, 1);
    quorum.members[1].behave();
    quorum.pass(secs(1)).await;
    assert_eq!(quorum.votes("x").await, 0);
    quorum.all([0], Fault::Fail);
    drop(acquired(two.lock("x").try_acquire().await.unwrap()));
}

/// Whoever ends it does not know how long it was to last.
#[tokio::test(start_paused = true)]
async fn what_was_ended_from_elsewhere_is_taken_back_however_long_it_may_last() {
    for force in [true, false] {
        let quorum = Quorum::of(3);
        let (one, two) = (quorum.client().await, quorum.client().await);
        let lock = one.lock("x").ttl(secs(3600)).no_renew();
        let guard = acquired(lock.try_acquire().await.unwrap());
        others_act().await;
        quorum.all([1], Fault::Fail);
        match force {
            true => two.force_release("x", guard.lease(), "stuck").await,
            false => two.release_lease("x", guard.lease()).await,
        }
        .unwrap();
        quorum.pass(secs(600)).await;
        assert_eq!(quorum.votes("x").await, 1);
        quorum.members[1].behave();
        quorum.pass(secs(1)).await;
        assert_eq!(quorum.votes("x").await, 0);
    }
}

/// Of an outage hundreds of votes are left to be taken back that were perhaps given. One question tells that it still lasts.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_away_is_not_asked_more_often_the_more_it_has_to_take_back() {
    let quorum = Quorum::of(3);
    let store = quorum.store().await;
    quorum.all([0, 1], Fault::Fail);
    let tries: Vec<_> = (0..500)
        .map(|_| Action::Acquire(lasting(bid(), 600_000)).on(named("x")))
        .collect();
    for tried in store.apply(&tries).await {
        assert_eq!(tried.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    quorum.pass(secs(5)).await;
    quorum.members[0].forget_calls();
    quorum.pass(secs(60)).await;
    let calls = quorum.members[0].calls().len();
    assert!(calls < 400, "{calls} calls in a minute");
}

/// Each comes from a call of its own.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_away_is_asked_once_for_all_that_it_has_to_release() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    quorum.all([2], Fault::Fail);
    for _ in 0..100 {
        let lock = tenure.lock("x").ttl(secs(60));
        let guard = acquired(lock.try_acquire().await.unwrap());
        guard.release().await.unwrap();
        quorum.pass(millis(7)).await;
    }
    quorum.pass(secs(2)).await;
    quorum.members[2].forget_calls();
    quorum.pass(secs(10)).await;
    let calls = quorum.members[2].calls().len();
    assert!(calls < 60, "{calls} calls in ten seconds");
}
