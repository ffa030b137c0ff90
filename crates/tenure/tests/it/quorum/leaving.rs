//! A hold that is left behind for a while. Whoever has its lease may prolong it, and counts on that.

use tenure::stores::quorum::{Rule as Electing, Settings};
use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, ErrorKind, Ttl};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};

/// One vote is enough to keep it, so all have to hear of it before whoever leaves is gone.
#[tokio::test(start_paused = true)]
async fn whoever_leaves_waits_until_all_have_heard_where_all_have_to_agree() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let (one, two) = (quorum.client().await, quorum.client().await);
    let lock = one.lock("x").ttl(secs(300));
    let guard = acquired(lock.try_acquire().await.unwrap());
    others_act().await;
    quorum.all([1], Fault::Delay(millis(20)));
    let (left, took) = quorum.elapsed(guard.leave_for(secs(3))).await;
    left.unwrap();
    assert_eq!(took, millis(20));
    quorum.members[1].behave();
    quorum.pass(secs(2)).await;
    assert_eq!(quorum.votes("x").await, 2, "not sooner");
    quorum.pass(secs(2)).await;
    drop(acquired(two.lock("x").try_acquire().await.unwrap()));
}

/// Two messages are lost: of the first, who left it, and of the second, who prolongs it.
#[tokio::test(start_paused = true)]
async fn what_was_left_behind_and_prolonged_elsewhere_is_held_once() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.members[2].script(Rule::on("renew").times(1).does(Fault::Fail));
    let lease = guard.leave_for(secs(5)).await.unwrap();
    quorum.pass(millis(300)).await;
    quorum.members[0].script(Rule::on("renew").times(1).does(Fault::Fail));
    let long = Ttl::new(secs(600)).unwrap();
    let valid = two.renew_lease("x", lease, long).await.unwrap();
    assert!(valid > secs(500), "{valid:?}");
    quorum.pass(secs(6)).await;
    let third = quorum.client().await.lock("x").try_acquire().await;
    assert!(matches!(third.unwrap(), Attempt::Busy(_)), "two holders");
}

#[tokio::test(start_paused = true)]
async fn what_was_prolonged_elsewhere_is_not_released_by_whoever_left_it() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.members[2].script(Rule::on("renew").times(1).does(Fault::LoseReply));
    let lease = guard.leave_for(secs(1)).await.unwrap();
    let long = Ttl::new(secs(600)).unwrap();
    two.renew_lease("x", lease, long).await.unwrap();
    quorum.pass(secs(10)).await;
    assert_eq!(quorum.votes("x").await, 3, "somebody relies on them");
}

/// Whoever took it is told that its release failed. Nothing may come of it long after that: somebody else may rely on the lease.
#[tokio::test(start_paused = true)]
async fn a_lease_whose_release_failed_is_not_ended_much_later_by_whoever_took_it() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let lock = one.lock("x").ttl(secs(600));
    let guard = acquired(lock.try_acquire().await.unwrap());
    others_act().await;
    let lease = guard.into_lease();
    for member in &quorum.members {
        for word in ["release", "cancel"] {
            member.script(Rule::on(word).does(Fault::Fail));
        }
    }
    one.release_lease("x", lease).await.unwrap_err();
    quorum.pass(secs(60)).await;
    let long = Ttl::new(secs(600)).unwrap();
    two.renew_lease("x", lease, long).await.unwrap();
    for member in &quorum.members {
        member.behave();
    }
    quorum.pass(secs(60)).await;
    assert_eq!(quorum.votes("x").await, 3, "somebody relies on them");
}

/// Where one vote is enough to keep it, whoever has the lease may go on by a server that was not reached.
#[tokio::test(start_paused = true)]
async fn whoever_left_it_behind_ends_it_like_anybody_else() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let one = quorum.client().await;
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    let lease = guard.leave_for(secs(60)).await.unwrap();
    quorum.members[1].script(Rule::on("release").times(1).does(Fault::Fail));
    let error = one.release_lease("x", lease).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
