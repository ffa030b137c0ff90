//! Asking all members for their votes: at once, without waiting for a minority, with a clear error when
//! too few answer.

use std::time::Duration;

use tenure::core::Outcome;
use tenure::stores::quorum::Settings;
use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, ErrorKind, Standing};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};
use crate::support::peer::{Peer, bid, lasting};

#[tokio::test(start_paused = true)]
async fn all_members_are_asked_at_once_and_all_have_the_vote_in_the_end() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    others_act().await;
    assert_eq!(quorum.votes("x").await, 5);
    for member in 0..5 {
        let fence = quorum.peek(member, "x").await.holders[0].fence;
        assert_eq!(fence, Some(guard.fence()), "all agree on the fence");
        assert_eq!(quorum.members[member].count("vote"), 1, "one round");
    }
    guard.release().await.unwrap();
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_minority_that_hangs_fails_or_is_slow_delays_nothing() {
    for fault in [
        Fault::Hang,
        Fault::Fail,
        Fault::Refuse,
        Fault::LoseReply,
        Fault::Delay(millis(40)),
        Fault::DelayReply(secs(1)),
    ] {
        let quorum = Quorum::of(5);
        let tenure = quorum.client().await;
        quorum.all([1, 3], fault);
        let lock = tenure.lock("x").ttl(secs(9));
        let (guard, took) = quorum.elapsed(lock.try_acquire()).await;
        let guard = acquired(guard.unwrap());
        assert_eq!(took, Duration::ZERO, "acquire with {fault:?}");
        quorum.pass(secs(30)).await;
        guard.ensure().unwrap();
        let held = matches!(&*guard.standing().borrow(), Standing::Held { .. });
        assert!(held, "never in jeopardy with {fault:?}");
        let (released, took) = quorum.elapsed(guard.release()).await;
        released.unwrap();
        assert_eq!(took, Duration::ZERO, "release with {fault:?}");
    }
}

/// The clocks of the servers are read again, and of enough of them is enough.
#[tokio::test(start_paused = true)]
async fn a_hung_minority_delays_nothing_after_a_pause_either() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    quorum.all([1, 3], Fault::Hang);
    quorum.pass(secs(301)).await;
    let lock = tenure.lock("x").ttl(secs(9));
    let (guard, took) = quorum.elapsed(lock.try_acquire()).await;
    drop(acquired(guard.unwrap()));
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_the_error_is_clear_and_comes_after_one_node_timeout() {
    for fault in [Fault::Hang, Fault::Fail] {
        let quorum = Quorum::of(5);
        let tenure = quorum.client().await;
        quorum.all([0, 2, 4], fault);
        let (attempt, took) = quorum.elapsed(tenure.lock("x").try_acquire()).await;
        let error = attempt.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("2 of 5"), "{error}");
        // The votes of the others are taken back before the answer.
        assert!(
            took <= Settings::NODE_TIMEOUT * 2,
            "{took:?} with {fault:?}"
        );
        assert_eq!(quorum.votes("x").await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn servers_that_are_far_away_are_told_apart_from_those_that_fail() {
    for (fault, advises) in [(Fault::DelayReply(millis(60)), true), (Fault::Fail, false)] {
        let quorum = Quorum::of(3);
        let tenure = quorum.client().await;
        quorum.all([0, 1, 2], fault);
        let error = tenure.lock("x").try_acquire().await.unwrap_err();
        assert!(error.to_string().contains("0 of 3"), "{error}");
        let advice = error.to_string().contains("?node_timeout=");
        assert_eq!(advice, advises, "{error}");
    }
}

/// A wrong password at one of three, say: the other two are enough, as soon as both are there.
#[tokio::test(start_paused = true)]
async fn a_member_that_refuses_for_good_does_not_end_a_wait_for_another() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    quorum.all([0], Fault::Refuse);
    quorum.all([1], Fault::Hang);
    let waiting = tokio::spawn(tenure.lock("x").acquire());
    quorum.pass(secs(5)).await;
    quorum.members[1].resume().await;
    let guard = waiting.await.unwrap().unwrap();
    quorum.all([1], Fault::Fail);
    let releasing = tokio::spawn(guard.release());
    quorum.pass(secs(5)).await;
    quorum.members[1].behave();
    releasing.await.unwrap().unwrap();
    quorum.all([1], Fault::Refuse);
    let error = tenure.lock("y").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
}

/// The process may end then, and with it everything that would be taken back later.
#[tokio::test(start_paused = true)]
async fn nothing_is_settled_before_the_votes_of_whoever_gave_up_are_taken_back() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    for member in &quorum.members {
        member.script(Rule::on("vote").does(Fault::LoseReply));
        member.script(Rule::on_everything().does(Fault::Fail));
    }
    let waiting = tokio::spawn(tenure.lock("x").acquire());
    others_act().await;
    assert_eq!(quorum.votes("x").await, 3, "nobody heard of them");
    waiting.abort();
    others_act().await;
    let settling = tokio::spawn(async move { tenure.settle().await });
    quorum.pass(secs(5)).await;
    assert!(!settling.is_finished(), "settled too soon");
    quorum.members.iter().for_each(|member| member.behave());
    settling.await.unwrap();
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_quorum_is_connected_to_while_a_minority_is_down() {
    let quorum = Quorum::of(3);
    quorum.all([2], Fault::Hang);
    let tenure = quorum.client().await;
    drop(acquired(tenure.lock("x").try_acquire().await.unwrap()));
    quorum.all([1], Fault::Hang);
    let error = quorum.try_store().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_is_told_who_holds_it_until_when() {
    let quorum = Quorum::of(5);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(
        one.lock("x")
            .ttl(secs(10))
            .no_renew()
            .try_acquire()
            .await
            .unwrap(),
    );
    others_act().await;
    quorum.pass(secs(4)).await;
    let Attempt::Busy(blocked) = two.lock("x").try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    let holder = &blocked.contention.holders[0];
    assert_eq!(holder.owner, Some(guard.lease().owner));
    assert_eq!(blocked.expires_in(holder), Some(secs(6)));
    let (now, snapshot) = two.inspect("x").await.unwrap();
    assert_eq!(snapshot.holders[0].expiry.unwrap().since(now), secs(6));
    let listing = two.list("").await.unwrap();
    assert_eq!(listing.locks.len(), 1);
    // Whoever waits gets it when the votes have ended.
    let (next, took) = quorum.elapsed(two.lock("x").acquire()).await;
    assert!(next.unwrap().fence() > guard.fence());
    assert!(took >= millis(5_900) && took < secs(7), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_acquire_recognises_its_own_votes() {
    let quorum = Quorum::of(5);
    let peer = Peer::new(quorum.try_store().await.unwrap()).await;
    quorum.all([0, 1], Fault::Fail);
    let bid = lasting(bid(), 5_000);
    let lease = peer.take("x", &bid).await;
    for member in &quorum.members {
        member.behave();
    }
    assert_eq!(peer.take("x", &bid).await.fence, lease.fence);
    others_act().await;
    assert_eq!(peer.release("x", lease).await, Outcome::Released);
}
