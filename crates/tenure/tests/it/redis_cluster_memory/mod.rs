//! Nodes of a Redis Cluster that forget: restarted without their data, replaced by a replica that lags behind,
//! cut off, or gone while their slots are given to others. Nobody gets in who should not.

mod back;
mod initialize;
mod majority;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tenure::core::{Action, Outcome, Renew, Severity};
use tenure::stores::redis::ClusterStore;
use tenure::{
    Assurance, Attempt, Error, ErrorKind, Guard, Initialized, LockName, Store as _, Tenure,
};

use crate::redis_cluster::store;
use crate::support::cluster::Cluster;
use crate::support::peer::{Peer, bid, lasting};
use crate::support::redis_server::RedisServer;
use crate::support::wait::{breath, elapsed, eventually, eventually_async, real_time};

/// Longer than a failover or a restart takes here, also on a busy machine.
const TTL: Duration = Duration::from_secs(8);

/// For holds that need not live through one.
const SHORT: Duration = Duration::from_secs(2);

/// Says that the cluster is new, and connects.
async fn client(cluster: &Cluster, recovery: &str, max_ttl: Duration) -> Tenure {
    let url = url(cluster, recovery, max_ttl);
    if recovery != "off" {
        let initialized = tenure::initialize(&url, Assurance::NothingIsHeld).await;
        initialized.expect("it serves");
    }
    tenure::connect(&url).await.expect("it serves")
}

fn url(cluster: &Cluster, recovery: &str, max_ttl: Duration) -> String {
    let max_ttl = max_ttl.as_secs();
    cluster.url_with(&format!("recovery={recovery}&max_ttl={max_ttl}s"))
}

async fn try_take(tenure: &Tenure, name: &str) -> Result<Option<Guard>, Error> {
    match tenure.lock(name).ttl(SHORT).try_acquire().await? {
        Attempt::Acquired(guard) => Ok(Some(guard)),
        Attempt::Busy(_) => Ok(None),
    }
}

/// Waits until the holder has taken back its lock at this node, and nobody else has got in.
async fn taken_back(node: &RedisServer, name: &str, guard: &Guard, other: &Tenure) {
    let (key, owner) = (format!("tenure:{name}"), guard.lease().owner.to_string());
    eventually_async("the holder has taken it back", async || {
        let taken = try_take(other, name).await;
        assert!(!matches!(taken, Ok(Some(_))), "somebody was let in");
        let value = node.session().try_command(&["GET", &key]);
        value.ok()?.contains(&owner).then_some(())
    })
    .await;
    guard.ensure().expect("it was never lost");
}

/// Takes a lock on the first primary, and has its replica take over without it.
async fn lose_a_lock(cluster: &mut Cluster, holder: &Tenure) -> (String, Guard) {
    let name = cluster.name_at(0, "lost");
    // So that the client need not connect later.
    let guard = holder.lock(&name).ttl(TTL).acquire().await.expect("free");
    guard.release().await.expect("it is ours");
    cluster.withhold_replication();
    let guard = holder.lock(&name).ttl(TTL).acquire().await.expect("free");
    cluster.fail_over();
    (name, guard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lags_behind_gives_nothing_away_when_it_takes_over() {
    let mut cluster = Cluster::start_with_replica();
    let holder = client(&cluster, "strict", TTL).await;
    let other = client(&cluster, "strict", TTL).await;
    let (name, guard) = lose_a_lock(&mut cluster, &holder).await;
    taken_back(&cluster.nodes[3], &name, &guard, &other).await;
    let fence = guard.fence();
    let waiting = tokio::spawn(other.lock(&name).ttl(TTL).acquire());
    guard.release().await.expect("it was held");
    let next = waiting.await.expect("no panic").expect("released");
    assert!(next.fence() > fence);
}

/// What all this is for: without it, two hold the same lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_recovery_that_replica_gives_the_lock_away() {
    let mut cluster = Cluster::start_with_replica();
    let holder = client(&cluster, "off", TTL).await;
    let other = client(&cluster, "off", TTL).await;
    let (name, guard) = lose_a_lock(&mut cluster, &holder).await;
    let taken = eventually_async("the promoted replica answers", async || {
        match try_take(&other, &name).await {
            Ok(taken) => Some(taken.expect("it does not remember")),
            Err(_) => None,
        }
    });
    let taken = taken.await;
    assert!(taken.fence() > guard.fence());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_restarts_empty_lets_holders_keep_what_they_have_and_waiters_go_on() {
    let mut cluster = Cluster::start();
    let holder = client(&cluster, "strict", TTL).await;
    let other = client(&cluster, "strict", TTL).await;
    let name = cluster.name_at(0, "kept");
    let guard = holder.lock(&name).ttl(TTL).acquire().await.expect("free");
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let lock = other.lock(&name).ttl(TTL);
            tokio::spawn(async move {
                let guard = lock.acquire().await.expect("it is given on");
                let fence = guard.fence();
                guard.release().await.expect("it is ours");
                fence
            })
        })
        .collect();
    cluster.nodes[0].kill();
    cluster.nodes[0].restart();
    taken_back(&cluster.nodes[0], &name, &guard, &other).await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    let first = guard.fence();
    guard.release().await.expect("it was held");
    for task in waiting {
        let fence = task.await.expect("no panic");
        assert!(fence > first, "fences grow");
    }
}

/// Its data is gone with it, and nobody who has them now has ever restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_of_a_dead_node_that_another_is_given_wait_too() {
    let mut cluster = Cluster::start();
    let holder = client(&cluster, "strict", TTL).await;
    let other = client(&cluster, "strict", TTL).await;
    let name = cluster.name_at(0, "orphaned");
    let guard = holder.lock(&name).ttl(TTL).acquire().await.expect("free");
    cluster.nodes[0].kill();
    cluster.give_slots_away();
    taken_back(&cluster.nodes[1], &name, &guard, &other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_contend_go_on_while_their_slot_moves_and_nobody_meets_anybody() {
    let cluster = Cluster::start();
    let name = cluster.name_at(0, "hot");
    let key = format!("tenure:{name}");
    let seen = Arc::new(Seen::default());
    let mut workers = Vec::new();
    for _ in 0..3 {
        let tenure = client(&cluster, "strict", SHORT).await;
        workers.push(tokio::spawn(crowd(tenure, name.clone(), seen.clone())));
    }
    let rounds = |least| {
        let seen = seen.clone();
        async move || (seen.rounds.load(Ordering::SeqCst) >= least).then_some(())
    };
    eventually_async("they are at it", rounds(20)).await;
    for (from, to) in [(0, 1), (1, 2)] {
        tokio::task::block_in_place(|| cluster.move_slot(&key, from, to));
        let done = seen.rounds.load(Ordering::SeqCst);
        eventually_async("they go on", rounds(done + 20)).await;
    }
    seen.enough.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.expect("nobody met anybody");
    }
}

/// Nothing tells it from one whose last locks were lost on the way, and its leases are by another clock.
#[tokio::test]
async fn a_slot_that_has_moved_waits_before_it_lets_anybody_in() {
    let cluster = Cluster::start();
    let tenure = client(&cluster, "strict", SHORT).await;
    let name = cluster.name_at(0, "moved");
    let taken = try_take(&tenure, &name).await.expect("it serves");
    taken.expect("free").release().await.expect("it is ours");
    cluster.move_slot(&format!("tenure:{name}"), 0, 1);
    let taken = try_take(&tenure, &name).await.expect("it serves");
    assert!(taken.is_none(), "nobody holds it, and nobody gets it");
    let open = async || try_take(&tenure, &name).await.expect("it serves");
    drop(eventually_async("it opens by itself", open).await);
}

#[derive(Debug, Default)]
struct Seen {
    inside: AtomicUsize,
    last_fence: AtomicU64,
    rounds: AtomicUsize,
    enough: AtomicBool,
}

async fn crowd(tenure: Tenure, name: String, seen: Arc<Seen>) {
    while !seen.enough.load(Ordering::SeqCst) {
        let taking = tenure.lock(&name).ttl(SHORT).wait(TTL).acquire();
        let Ok(guard) = taking.await else { continue };
        assert_eq!(seen.inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
        let fence = guard.fence().as_u64();
        let before = seen.last_fence.swap(fence, Ordering::SeqCst);
        assert!(before < fence, "fences grow");
        breath().await;
        seen.inside.fetch_sub(1, Ordering::SeqCst);
        // Whatever the move makes of it.
        let _ = guard.release().await;
        seen.rounds.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn replicas_are_waited_for_on_the_node_that_has_the_lock() {
    let cluster = Cluster::start_with_replica();
    // A replica that has just attached says once a second how far it is, and nothing before.
    let patient = "&min_replicas=1&call_timeout=20s&replica_timeout=9s";
    let patient = store(&format!("{}{patient}", cluster.url())).await;
    let url = format!("{}&min_replicas=1&replica_timeout=900ms", cluster.url());
    let peer = Peer::deaf(store(&url).await.expect("it serves"));
    let (has, has_not) = (cluster.name_at(0, "has"), cluster.name_at(1, "has not"));
    Peer::deaf(patient.expect("it serves"))
        .take(&has, &bid())
        .await;
    let error = peer.try_ask(&has_not, Action::Acquire(bid())).await;
    let error = error.expect_err("that node has no replica");
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    cluster.withhold_replication();
    let cut_off = cluster.name_at(0, "cut off");
    let error = peer.try_ask(&cut_off, Action::Acquire(bid())).await;
    assert_eq!(error.expect_err("no longer").kind(), ErrorKind::Refused);
}

#[tokio::test]
async fn a_hand_over_works_over_resp2_on_every_node() {
    let cluster = Cluster::shared();
    let url = format!("{}&protocol=resp2&prefix=resp2:", cluster.url());
    let connect = async || Peer::new(store(&url).await.expect("it serves")).await;
    let (holder, waiter) = (connect().await, connect().await);
    for number in 0..9 {
        let name = format!("second connection {number}");
        let lease = holder.take(&name, &bid()).await;
        let next = bid();
        waiter.queue(&name, &next).await;
        assert_eq!(holder.release(&name, lease).await, Outcome::Released);
        waiter.is_told(next.owner).await;
    }
}
