//! Readers and writers; and why there are no permits.

use futures_util::FutureExt;
use tenure::core::{Action, Outcome};
use tenure::stores::quorum::{Rule as Electing, Settings};
use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, ErrorKind, Mode};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};
use crate::support::peer::bid_in;

#[tokio::test(start_paused = true)]
async fn readers_share_and_keep_a_writer_out() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let reader = acquired(one.rwlock("doc").read().try_acquire().await.unwrap());
    let other = acquired(two.rwlock("doc").read().try_acquire().await.unwrap());
    assert_ne!(reader.fence(), other.fence());
    let writer = two.rwlock("doc").write().try_acquire().await.unwrap();
    assert!(matches!(writer, Attempt::Busy(_)));
    reader.release().await.unwrap();
    other.release().await.unwrap();
    others_act().await;
    let writer = acquired(two.rwlock("doc").write().try_acquire().await.unwrap());
    let busy = one.rwlock("doc").read().try_acquire().await.unwrap();
    assert!(matches!(busy, Attempt::Busy(_)));
    writer.downgrade().await.unwrap();
    others_act().await;
    drop(acquired(
        one.rwlock("doc").read().try_acquire().await.unwrap(),
    ));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_did_not_hear_of_a_downgrade_is_told_with_the_next_renewal() {
    for (members, rule) in [(3, Electing::Majority), (2, Electing::All)] {
        let quorum = Quorum::with(members, Settings::new(rule));
        let (one, two) = (quorum.client().await, quorum.client().await);
        let guard = acquired(one.rwlock("x").write().try_acquire().await.unwrap());
        others_act().await;
        quorum.members[0].script(Rule::on("convert").times(1).does(Fault::Fail));
        guard.downgrade().await.unwrap();
        quorum.pass(secs(15)).await;
        if rule == Electing::Majority {
            quorum.all([1], Fault::Fail);
        }
        let reader = two.rwlock("x").read().try_acquire().await.unwrap();
        assert!(guard.is_valid());
        assert!(matches!(reader, Attempt::Acquired(_)), "{rule:?}");
        assert_eq!(quorum.members[0].count("convert"), 2, "told once");
    }
}

#[tokio::test(start_paused = true)]
async fn permits_are_refused_with_the_reason() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let error = tenure.semaphore("gpu", 2).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("do not bound a sum"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn majorities_would_not_bound_a_sum_of_permits() {
    let quorum = Quorum::of(3);
    for pair in [[0, 1], [1, 2], [2, 0]] {
        let one_of_two = bid_in(Mode::permits(1, 2).unwrap());
        for member in pair {
            let acquire = Action::Acquire(one_of_two.clone());
            let outcome = quorum.ask(member, "gpu", acquire).await;
            assert!(matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
        }
    }
}

/// A member names some of them and counts all.
#[tokio::test(start_paused = true)]
async fn as_many_are_said_to_read_as_do() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let mut guards = Vec::new();
    for _ in 0..12 {
        let reader = tenure.rwlock("x").read().try_acquire().await;
        guards.push(acquired(reader.unwrap()));
    }
    others_act().await;
    let writer = tenure.rwlock("x").write().try_acquire().await.unwrap();
    let Attempt::Busy(blocked) = writer else {
        panic!("beside readers");
    };
    assert_eq!(blocked.contention.holder_count, 12, "{blocked}");
}

/// From the first moment on it counts as shared, so all members have to hear of it.
#[tokio::test(start_paused = true)]
async fn a_downgrade_whose_caller_is_gone_is_told_with_the_next_renewal() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.rwlock("x").write().try_acquire().await.unwrap());
    others_act().await;
    quorum.all([1, 2], Fault::Delay(millis(5)));
    assert!(guard.downgrade().now_or_never().is_none());
    for member in &quorum.members {
        member.behave();
    }
    assert_eq!(guard.mode(), Mode::Shared);
    quorum.pass(secs(25)).await;
    let reader = two.rwlock("x").read().try_acquire().await.unwrap();
    assert!(matches!(reader, Attempt::Acquired(_)), "{reader:?}");
}
