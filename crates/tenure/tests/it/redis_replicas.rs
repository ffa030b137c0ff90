//! `?min_replicas=`: a grant counts only when enough replicas have it.

use std::time::Duration;

use tenure::core::{Action, Outcome, Release};
use tenure::{ErrorKind, Lease, LockName, Retry, Store};

use crate::redis_store::store;
use crate::support::peer::{Peer, bid};
use crate::support::proxy::Proxy;
use crate::support::redis_server::RedisServer;
use crate::support::wait::{eventually, eventually_async};

/// A server, and a replica that follows it.
fn pair() -> (RedisServer, RedisServer) {
    let primary = RedisServer::start();
    let of = format!("127.0.0.1 {}", primary.port());
    let replica = RedisServer::start_with(&["--replicaof", &of, "--repl-diskless-sync-delay", "0"]);
    follows(&primary);
    (primary, replica)
}

fn follows(primary: &RedisServer) {
    eventually("the replica follows", || {
        let confirmed = primary.command(&["WAIT", "1", "100"]);
        let state = primary.command(&["INFO", "replication"]);
        (confirmed == "1" && state.contains("state=online")).then_some(())
    });
}

/// For whoever tries again, or expects to fail.
fn url(primary: &RedisServer) -> String {
    format!("{}&min_replicas=1&replica_timeout=300ms", primary.url())
}

/// For whoever expects to succeed, on a machine that may be slow.
fn patient_url(primary: &RedisServer) -> String {
    let patience = "call_timeout=20s&replica_timeout=9s";
    format!("{}&min_replicas=1&{patience}", primary.url())
}

#[tokio::test]
async fn a_grant_that_the_replica_has_counts() {
    let (primary, replica) = pair();
    let peer = Peer::new(store(&patient_url(&primary)).await).await;
    let lease = peer.take("lock", &bid()).await;
    let there = replica.command(&["GET", "tenure:lock"]);
    assert!(there.contains(&lease.owner.to_string()), "{there}");
    assert_eq!(peer.release("lock", lease).await, Outcome::Released);
}

#[tokio::test]
async fn a_grant_that_no_replica_confirms_is_an_error_and_asking_again_confirms_it() {
    let (primary, replica) = pair();
    let peer = Peer::new(store(&url(&primary)).await).await;
    let patient = Peer::new(store(&patient_url(&primary)).await).await;
    let bid = bid();
    replica.stop();
    // Twice: the second time its scripts are known.
    for _ in 0..2 {
        let error = peer.try_ask("lock", Action::Acquire(bid.clone())).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert_eq!(error.retry(), Retry::Later);
        assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    }
    replica.resume();
    follows(&primary);
    let lease = patient.take("lock", &bid).await;
    let there = replica.command(&["GET", "tenure:lock"]);
    assert!(there.contains(&lease.owner.to_string()), "{there}");
}

#[tokio::test]
async fn a_script_that_has_to_be_sent_again_does_not_make_the_grant_beside_it_count() {
    let (primary, replica) = pair();
    let peer = Peer::new(store(&url(&primary)).await).await;
    let patient = Peer::new(store(&patient_url(&primary)).await).await;
    let lease = patient.take("known", &bid()).await;
    replica.stop();
    let name = |name| LockName::new(name).unwrap();
    let Lease { owner, fence } = lease;
    let batch = [
        Action::Acquire(bid()).on(name("lock")),
        // The first release, so the server does not know its script.
        Action::Release(Release { owner, fence }).on(name("known")),
    ];
    let answers = peer.store.apply(&batch).await;
    assert!(answers[0].is_err(), "{answers:?}");
    assert!(answers[1].is_ok(), "{answers:?}");
}

#[tokio::test]
async fn whoever_only_tries_gives_back_what_no_replica_confirmed() {
    let (primary, replica) = pair();
    let tenure = tenure::connect(&url(&primary)).await.unwrap();
    replica.stop();
    let error = tenure.lock("lock").try_acquire().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    tenure.settle().await;
    let (_, snapshot) = tenure.inspect("lock").await.unwrap();
    assert!(snapshot.holders.is_empty(), "{snapshot:?}");
    replica.resume();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_back_late_does_not_end_a_later_grant() {
    let (primary, replica) = pair();
    let proxy = Proxy::to(format!("127.0.0.1:{}", primary.port())).await;
    let url = format!("{}&min_replicas=1&replica_timeout=1s", proxy.url());
    let tenure = tenure::connect(&url).await.unwrap();
    // The server knows the scripts, so that each is sent once.
    let peer = Peer::new(store(&primary.url()).await).await;
    let lease = peer.take("lock", &bid()).await;
    peer.cancel("lock", lease.owner).await;
    replica.stop();
    let waiting = tokio::spawn(tenure.lock("lock").wait(Duration::from_secs(20)).acquire());
    eventually_async("it is granted, and not confirmed yet", async || {
        (primary.command(&["EXISTS", "tenure:lock"]) == "1").then_some(())
    })
    .await;
    // Whatever is said about it now on this connection arrives later.
    proxy.park();
    eventually("it is not confirmed", || proxy.has_parked().then_some(()));
    replica.resume();
    let guard = waiting.await.unwrap().unwrap();
    proxy.unpark();
    for _ in 0..20 {
        tokio::task::yield_now().await;
        let holders = tenure.inspect("lock").await.unwrap().1.holders;
        assert_eq!(holders.len(), 1, "a valid guard, and nobody holds");
        assert!(guard.is_valid());
    }
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_waiting_client_gets_the_lock_when_the_replica_is_back() {
    let (primary, replica) = pair();
    let tenure = tenure::connect(&url(&primary)).await.unwrap();
    replica.stop();
    let error = tenure.lock("lock").try_acquire().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let waiting = tokio::spawn(tenure.lock("lock").wait(Duration::from_secs(20)).acquire());
    replica.resume();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_is_handed_over_is_confirmed_too() {
    let (primary, replica) = pair();
    let holder = tenure::connect(&url(&primary)).await.unwrap();
    let waiter = tenure::connect(&url(&primary)).await.unwrap();
    let first = holder.lock("lock").acquire().await.unwrap();
    let waiting = tokio::spawn(waiter.lock("lock").wait(Duration::from_secs(20)).acquire());
    eventually_async("it queues", async || {
        let queued = primary.command(&["ZCARD", "~tenure:{tenure:lock}:queue"]);
        (queued == "1").then_some(())
    })
    .await;
    first.release().await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    let there = replica.command(&["GET", "tenure:lock"]);
    assert!(there.contains(&second.lease().owner.to_string()), "{there}");
}

#[tokio::test]
async fn the_diagnosis_says_how_far_the_replicas_are_and_who_is_one() {
    let (primary, replica) = pair();
    let said = async |server: &RedisServer| {
        let findings = Peer::new(store(&server.url()).await).await;
        let findings = findings.store.diagnose().await.unwrap();
        let found = findings.into_iter().find(|it| it.subject == "replication");
        found.unwrap()
    };
    let finding = said(&primary).await;
    assert_eq!(finding.severity, tenure::core::Severity::Warning);
    assert!(finding.detail.contains("1 replicas, "), "{finding:?}");
    assert!(
        finding.detail.contains("min-replicas-to-write is 0"),
        "{finding:?}"
    );
    let finding = said(&replica).await;
    assert_eq!(finding.severity, tenure::core::Severity::Danger);
}
