//! All have to agree: write-all.

use tenure::stores::quorum::{Rule as Electing, Settings};
use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, ErrorKind, Loss};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};
use crate::support::peer::named;

#[tokio::test(start_paused = true)]
async fn of_two_that_must_agree_one_that_is_down_refuses_new_holds_and_keeps_old_ones() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    quorum.all([1], Fault::Hang);
    quorum.pass(secs(60)).await;
    guard.ensure().unwrap();
    let error = tenure.lock("y").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(quorum.votes("y").await, 0);
    guard.release().await.unwrap();
    quorum.members[1].resume().await;
    quorum.pass(secs(30)).await;
    drop(acquired(tenure.lock("x").try_acquire().await.unwrap()));
}

/// A single member is enough to keep a hold, but not to let the next one in.
#[tokio::test(start_paused = true)]
async fn what_all_have_released_can_be_taken_at_once() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let (one, two) = (quorum.client().await, quorum.client().await);
    quorum.all([1], Fault::Delay(millis(10)));
    for round in 0..3 {
        let guard = acquired(one.lock("x").try_acquire().await.unwrap());
        guard.release().await.unwrap();
        let next = two.lock("x").try_acquire().await.unwrap();
        assert!(matches!(next, Attempt::Acquired(_)), "round {round}");
        acquired(next).release().await.unwrap();
    }
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    quorum.members[1].behave();
    quorum.all([1], Fault::Hang);
    let (released, took) = quorum.elapsed(guard.release()).await;
    released.unwrap();
    assert_eq!(took, Settings::NODE_TIMEOUT, "and nobody waits longer");
}

/// However much longer than at first it was to last.
#[tokio::test(start_paused = true)]
async fn what_was_extended_and_released_is_free_when_all_servers_are_back() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").ttl(secs(2)).try_acquire().await.unwrap());
    others_act().await;
    guard.extend(secs(600)).await.unwrap();
    quorum.pass(millis(10)).await;
    quorum.all([1], Fault::Fail);
    guard.release().await.unwrap();
    quorum.pass(secs(4)).await;
    quorum.members[1].behave();
    quorum.pass(secs(1)).await;
    assert_eq!(quorum.votes("x").await, 0);
    drop(acquired(two.lock("x").try_acquire().await.unwrap()));
}

/// One vote is enough to keep it, so one answer is not enough to say that nobody does.
#[tokio::test(start_paused = true)]
async fn what_a_silent_server_may_keep_alone_is_not_called_free() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.all([1], Fault::Hang);
    let (_, seen) = two.inspect("x").await.unwrap();
    assert_eq!(seen.holders.len(), 1, "one is enough to say who does");
    quorum.members[1].behave();
    quorum.members[0].forget(&named("x")).await.unwrap();
    quorum.pass(secs(11)).await;
    guard.ensure().unwrap();
    quorum.all([1], Fault::Hang);
    let error = two.inspect("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("1 of 2"), "{error}");
}

/// The second server is out of reach for whoever forces it, not for the holder.
#[tokio::test(start_paused = true)]
async fn a_release_from_elsewhere_that_did_not_reach_all_is_not_reported_as_done() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let (one, two) = (quorum.client().await, quorum.client().await);
    for force in [true, false] {
        let guard = acquired(one.lock("x").try_acquire().await.unwrap());
        for word in ["force-release", "release", "cancel"] {
            quorum.members[1].script(Rule::on(word).does(Fault::Fail));
        }
        let ended = if force {
            two.force_release("x", guard.lease(), "stuck").await
        } else {
            two.release_lease("x", guard.lease()).await
        };
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Unavailable);
        if force {
            // The holder hears of it from the one that was reached.
            assert!(matches!(guard.lost().await, Loss::Forced(_)));
        }
        quorum.members[1].behave();
        quorum.pass(secs(60)).await;
        assert!(!guard.is_valid(), "what is left to be done is done");
        assert_eq!(quorum.votes("x").await, 0);
    }
}

/// Also if that one is always the slower one.
#[tokio::test(start_paused = true)]
async fn what_was_forced_at_one_is_not_kept_by_another_that_answers_first() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    quorum.members[0].script(Rule::on("renew").does(Fault::DelayReply(millis(20))));
    for word in ["force-release", "release", "cancel"] {
        quorum.members[1].script(Rule::on(word).does(Fault::Fail));
    }
    two.force_release("x", guard.lease(), "stuck")
        .await
        .unwrap_err();
    assert!(matches!(guard.lost().await, Loss::Forced(_)));
}
