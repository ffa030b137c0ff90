//! A replica that is promoted before the latest locks have reached it: under Sentinel, too, it waits
//! instead of giving them away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tenure::{Attempt, Fence, Guard, Tenure};

use crate::redis_store::store;
use crate::support::sentinels::Watched;
use crate::support::wait::{breath, eventually_async};

/// Longer than a failover takes, also on a busy machine.
const TTL: Duration = Duration::from_secs(15);

/// For holds that need not live through one.
const SHORT: Duration = Duration::from_secs(8);

/// A service whose primary is known to be new, and two clients.
async fn begin(recovery: &str, max_ttl: Duration) -> (Watched, Tenure, Tenure) {
    let watched = Watched::start();
    let options = |recovery: &str| format!("?recovery={recovery}&max_ttl={}s", max_ttl.as_secs());
    store(&watched.url_with("", &options("open"))).await;
    let url = watched.url_with("", &options(recovery));
    let one = tenure::connect(&url).await.expect("served");
    let two = tenure::connect(&url).await.expect("served");
    (watched, one, two)
}

/// Takes "lock", and promotes the replica without it.
async fn lose_the_lock(watched: &mut Watched, holder: &Tenure) -> Guard {
    let guard = holder.lock("lock").ttl(TTL).acquire().await.expect("free");
    watched.replicated("tenure:lock");
    let replica = &watched.servers[1];
    replica.command(&["CONFIG", "SET", "replica-read-only", "no"]);
    assert_eq!(replica.command(&["DEL", "tenure:lock"]), "1");
    watched.fail_over();
    guard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_in_until_the_holder_has_taken_back_what_is_its() {
    let (mut watched, holder, other) = begin("strict", TTL).await;
    let guard = lose_the_lock(&mut watched, &holder).await;
    let waiting = tokio::spawn(other.lock("lock").ttl(TTL).acquire());
    let promoted = &watched.servers[1];
    let owner = guard.lease().owner.to_string();
    eventually_async("the holder has taken it back", async || {
        assert!(!waiting.is_finished(), "somebody was let in");
        let value = promoted.command(&["GET", "tenure:lock"]);
        value.contains(&owner).then_some(())
    })
    .await;
    guard.ensure().expect("it was never lost");
    let fence = guard.fence();
    guard.release().await.expect("it was held");
    let next = waiting.await.expect("no panic").expect("released");
    assert!(next.fence() > fence);
}

/// What all this is for: without it, two hold the same lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_recovery_the_lock_is_given_away() {
    let (mut watched, holder, other) = begin("off", TTL).await;
    let guard = lose_the_lock(&mut watched, &holder).await;
    let taken = eventually_async("the promoted replica answers", async || {
        match other.lock("lock").ttl(TTL).try_acquire().await {
            Ok(Attempt::Acquired(taken)) => Some(taken),
            Ok(Attempt::Busy(blocked)) => panic!("it remembers: {blocked:?}"),
            Err(_) => None,
        }
    })
    .await;
    assert!(taken.fence() > guard.fence());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_under_load_lets_nobody_in_twice() {
    let (mut watched, one, two) = begin("strict", SHORT).await;
    let seen = Arc::new(Seen::default());
    let mut tasks = Vec::new();
    for number in 0..8 {
        let tenure = if number % 2 == 0 { &one } else { &two }.clone();
        tasks.push(tokio::spawn(crowd(tenure, seen.clone())));
    }
    let rounds = |least| {
        let seen = seen.clone();
        async move || (seen.rounds.load(Ordering::SeqCst) >= least).then_some(())
    };
    eventually_async("they are at it", rounds(50)).await;
    watched.fail_over();
    let done = seen.rounds.load(Ordering::SeqCst);
    eventually_async("they go on", rounds(done + 50)).await;
    seen.enough.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.expect("nobody met anybody");
    }
}

#[derive(Debug, Default)]
struct Seen {
    inside: AtomicUsize,
    last_fence: AtomicU64,
    rounds: AtomicUsize,
    enough: AtomicBool,
}

async fn crowd(tenure: Tenure, seen: Arc<Seen>) {
    while !seen.enough.load(Ordering::SeqCst) {
        let taking = tenure.lock("crowd").ttl(SHORT).wait(TTL).acquire();
        let Ok(guard) = taking.await else { continue };
        assert_eq!(seen.inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
        let before = seen
            .last_fence
            .swap(guard.fence().as_u64(), Ordering::SeqCst);
        assert!(Fence::from_u64(before) < guard.fence(), "fences grow");
        breath().await;
        guard.ensure().expect("no lease is that short");
        seen.inside.fetch_sub(1, Ordering::SeqCst);
        // Whatever the failover makes of it.
        let _ = guard.release().await;
        seen.rounds.fetch_add(1, Ordering::SeqCst);
    }
}
