//! A hold that is left behind for a while: it ends then, wherever it is kept.

use tenure::stores::quorum::{Rule as Electing, Settings};
use tenure::test_util::{Fault, Rule};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn what_is_left_behind_ends_when_it_was_said_to_also_where_that_was_not_heard() {
    for (members, rule) in [(2, Electing::All), (3, Electing::Majority)] {
        for fault in [Fault::Fail, Fault::LoseReply, Fault::Delay(millis(200))] {
            let quorum = Quorum::with(members, Settings::new(rule));
            let (one, two) = (quorum.client().await, quorum.client().await);
            let lock = one.lock("x").ttl(secs(300));
            let guard = acquired(lock.try_acquire().await.unwrap());
            others_act().await;
            quorum.members[1].script(Rule::on("renew").times(1).does(fault));
            guard.leave_for(secs(3)).await.unwrap();
            quorum.pass(secs(2)).await;
            let votes = quorum.votes("x").await;
            assert_eq!(votes, members, "not sooner: {rule:?}, {fault:?}");
            quorum.pass(secs(2)).await;
            assert_eq!(quorum.votes("x").await, 0, "{rule:?}, {fault:?}");
            drop(acquired(two.lock("x").try_acquire().await.unwrap()));
        }
    }
}

/// A member is away until it should have ended.
#[tokio::test(start_paused = true)]
async fn what_was_left_behind_is_taken_back_where_it_should_be_over() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let lock = tenure.lock("x").ttl(secs(300));
    let guard = acquired(lock.try_acquire().await.unwrap());
    others_act().await;
    quorum.all([1], Fault::Fail);
    guard.leave_for(secs(3)).await.unwrap();
    quorum.pass(secs(60)).await;
    assert_eq!(quorum.votes("x").await, 1);
    quorum.members[1].behave();
    quorum.pass(secs(1)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

/// A vote that is given when the hold has been left behind ends with the others.
#[tokio::test(start_paused = true)]
async fn a_late_vote_of_what_was_left_behind_ends_with_it() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    quorum.members[2].script(Rule::on("vote").does(Fault::Delay(millis(200))));
    let lock = tenure.lock("x").ttl(secs(300));
    let guard = acquired(lock.try_acquire().await.unwrap());
    guard.leave_for(secs(3)).await.unwrap();
    quorum.pass(secs(2)).await;
    assert_eq!(quorum.votes("x").await, 3);
    quorum.pass(secs(2)).await;
    assert_eq!(quorum.votes("x").await, 0);
}
