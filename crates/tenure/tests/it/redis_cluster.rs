//! Locks on a Redis Cluster: any name, every slot, slots that move, nodes that fail or hang.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::core::{Action, Outcome, Severity};
use tenure::stores::redis::ClusterStore;
use tenure::{Error, ErrorKind, Store as _};

use crate::support::cluster::{Cluster, node};
use crate::support::peer::{Peer, bid, lasting, named, reclaim, renewal};
use crate::support::redis_server::RedisServer;
use crate::support::wait::{eventually, eventually_async};

pub(crate) async fn store(url: &str) -> Result<ClusterStore, Error> {
    let clock = Arc::new(SystemClock::start().expect("a clock"));
    ClusterStore::connect(url, clock).await
}

async fn peer(cluster: &Cluster) -> Peer<ClusterStore> {
    let store = store(&cluster.url()).await;
    Peer::new(store.expect("the cluster serves")).await
}

/// One that does not wait for a node that may have forgotten.
async fn careless_peer(cluster: &Cluster) -> Peer<ClusterStore> {
    let store = store(&cluster.url_with("recovery=off")).await;
    Peer::new(store.expect("the cluster serves")).await
}

async fn refusal(url: &str) -> Error {
    store(url)
        .await
        .err()
        .unwrap_or_else(|| panic!("{url} is served"))
}

#[tokio::test]
async fn any_name_can_be_locked_waited_for_and_listed() {
    let cluster = Cluster::shared();
    let (one, other) = (peer(&cluster).await, peer(&cluster).await);
    let names = [
        "plain",
        "{tag}rest",
        "a{b}c",
        "}{",
        "{}",
        "100%",
        "%7B",
        "two words",
    ];
    let mut expected: Vec<_> = names.iter().map(|name| format!("any/{name}")).collect();
    for name in &expected {
        let lease = one.take(name, &bid()).await;
        let next = bid();
        other.queue(name, &next).await;
        assert_eq!(one.release(name, lease).await, Outcome::Released);
        let pushed = other.is_told(next.owner).await;
        assert_eq!(pushed.name.as_str(), name);
        assert!(pushed.fence > lease.fence, "{name}");
    }
    let listing = one.store.list("any/").await.expect("all nodes are there");
    let listed: Vec<_> = listing
        .locks
        .iter()
        .map(|(name, _)| name.to_string())
        .collect();
    expected.sort();
    assert_eq!(listed, expected);
    let listing = one.store.list("any/{t").await.expect("all nodes are there");
    assert_eq!(listing.locks.len(), 1);
}

#[tokio::test]
async fn a_batch_may_be_about_every_node() {
    let cluster = Cluster::shared();
    let peer = peer(&cluster).await;
    let batch: Vec<_> = (0..100)
        .map(|number| {
            let name = named(&format!("batch/{number}"));
            Action::Acquire(bid()).on(name)
        })
        .collect();
    let replies = peer.store.apply(&batch).await;
    for reply in replies {
        let outcome = reply.expect("all nodes are there").outcome;
        assert!(matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
    }
}

#[tokio::test]
async fn locks_of_several_nodes_can_be_held_together() {
    let cluster = Cluster::shared();
    let tenure = tenure::connect(&cluster.url()).await.expect("it serves");
    let names: Vec<_> = (0..3)
        .map(|node| cluster.name_at(node, "together"))
        .collect();
    let all = tenure
        .all(names.clone())
        .acquire()
        .await
        .expect("all are free");
    for name in &names {
        let tried = tenure.lock(name).try_acquire().await.expect("it serves");
        assert!(matches!(tried, tenure::Attempt::Busy(_)), "{name}");
    }
    all.release().await.expect("they are ours");
}

#[tokio::test]
async fn doctor_looks_at_every_node() {
    let cluster = Cluster::shared();
    let store = store(&cluster.url()).await.expect("it serves");
    let findings = store.diagnose().await.expect("it serves");
    let together = findings.iter().find(|finding| finding.subject == "cluster");
    let together = together.expect("a word about the cluster");
    assert_eq!(together.severity, Severity::Fine, "{}", together.detail);
    let danger = findings.iter().find(|it| it.severity == Severity::Danger);
    assert_eq!(danger, None, "nothing that could be set otherwise");
    for node in &cluster.nodes {
        let about = |subject: &str| subject.starts_with(&node.address());
        assert!(findings.iter().any(|finding| about(&finding.subject)));
    }
}

#[tokio::test]
async fn the_wrong_kind_of_url_is_answered_with_the_right_one() {
    let cluster = Cluster::shared();
    let single = RedisServer::start();
    let error = refusal(&format!("redis+cluster://{}", single.address())).await;
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("redis://"), "{error}");

    let server = crate::redis_store::store(&cluster.nodes[0].url()).await;
    let peer = Peer::deaf(server);
    let away = cluster.name_at(1, "away");
    let error = peer.try_ask(&away, Action::Acquire(bid())).await;
    let error = error.expect_err("it is elsewhere");
    assert!(error.to_string().contains("redis+cluster://"), "{error}");
}

#[tokio::test]
async fn a_slot_that_nobody_has_is_an_error_that_says_so() {
    let node = node();
    let half = node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]);
    assert_eq!(half, "OK");
    let url = format!("redis+cluster://{}", node.address());
    let peer = Peer::deaf(store(&url).await.expect("it tells its slots"));
    let asking = (0..4).map(async |number| {
        let name = format!("lock {number}");
        // A machine that stands still at the end of a call has another thing to say.
        eventually_async("it says that nobody has the slot", async || {
            let error = peer.try_ask(&name, Action::Acquire(bid())).await;
            let error = error.expect_err("the cluster is down");
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            let says_so = error.to_string().contains("nobody has that slot");
            says_so.then_some(())
        })
        .await;
    });
    futures_util::future::join_all(asking).await;

    let refused = tenure::initialize(&url, tenure::Assurance::NothingIsHeld).await;
    let error = refused.expect_err("the cluster is down");
    let says_so = error.to_string().contains("nobody has that slot");
    assert!(says_so, "{error}");
    let findings = peer.store.diagnose().await.expect("it tells its slots");
    let recovery = findings.iter().find(|it| it.subject.contains("recovery"));
    let recovery = recovery.expect("a word about it");
    assert_eq!(recovery.severity, Severity::Warning, "{}", recovery.detail);
}

#[tokio::test]
async fn a_lock_moves_with_its_slot_and_its_waiter_is_told() {
    let cluster = Cluster::start();
    let (holder, waiter) = (careless_peer(&cluster).await, careless_peer(&cluster).await);
    let name = cluster.name_at(0, "moving");
    let key = format!("tenure:{name}");
    let lease = holder.take(&name, &bid()).await;
    let next = bid();
    waiter.queue(&name, &next).await;

    cluster.move_slot(&key, 0, 2);
    assert!(matches!(
        holder.renew(&name, lease).await,
        Outcome::Renewed { .. }
    ));
    assert!(
        cluster.nodes[2]
            .command(&["GET", &key])
            .contains(&lease.owner.to_string())
    );
    // The waiter has not asked since, and need not.
    assert_eq!(holder.release(&name, lease).await, Outcome::Released);
    let pushed = waiter.is_told(next.owner).await;
    assert!(pushed.fence > lease.fence);
    assert_eq!(waiter.mailbox.grants().len(), 1, "each grant is told once");
}

#[tokio::test]
async fn a_lock_on_its_way_is_refused_for_now_and_holds_up_no_other() {
    let cluster = Cluster::start();
    let peer = Peer::new(store(&cluster.url()).await.expect("it serves")).await;
    let name = cluster.name_at(0, "moving");
    let beside = cluster.name_at(0, "beside");
    let key = format!("tenure:{name}");
    let lease = peer.take(&name, &bid()).await;
    cluster.begin_move(&key, 0, 1);

    eventually_async("it says that it is moving", async || {
        let error = peer.try_ask(&name, renewal(lease)).await;
        let error = error.expect_err("it is moving");
        let says_so = error.to_string().contains("moving the slot");
        (says_so && error.kind() == ErrorKind::Refused).then_some(())
    })
    .await;
    peer.take(&beside, &bid()).await;

    cluster.finish_move(&key, 0, 1);
    let renewed = async || peer.try_ask(&name, reclaim(lease)).await.ok();
    let renewed = eventually_async("it has arrived", renewed).await;
    assert!(matches!(renewed.outcome, Outcome::Renewed { .. }));
}

#[tokio::test]
async fn whoever_waits_for_a_slot_that_moves_holds_up_no_other_lock_of_its_node() {
    let cluster = Cluster::start();
    let url = cluster.url_with("recovery=off");
    let tenure = tenure::connect(&url).await.expect("it serves");
    let moving: Vec<_> = (0..6)
        .map(|number| cluster.name_at(0, &format!("moving {number}")))
        .collect();
    let key = |name: &str| format!("tenure:{name}");
    for name in &moving {
        cluster.begin_move(&key(name), 0, 1);
    }
    let mut waiting = Vec::new();
    for name in &moving {
        let lock = tenure.lock(name);
        waiting.push(tokio::spawn(
            async move { lock.try_acquire().await.map(drop) },
        ));
    }
    tokio::task::yield_now().await;
    for number in 0..20 {
        let name = cluster.name_at(0, &format!("beside {number}"));
        let guard = tenure.lock(&name).acquire().await.expect("it serves");
        guard.release().await.expect("it is ours");
    }
    let held_up = waiting.iter().all(|task| !task.is_finished());
    for name in &moving {
        cluster.finish_move(&key(name), 0, 1);
    }
    assert!(held_up, "the others were done before any of those");
    for (task, name) in waiting.into_iter().zip(&moving) {
        // Whether it has arrived in time or not.
        let _ = task.await.expect("no panic");
        let guard = tenure.lock(name).acquire().await.expect("it serves");
        guard.release().await.expect("it is ours");
    }
}

#[tokio::test]
async fn a_hold_and_a_waiter_live_through_a_failover() {
    let mut cluster = Cluster::start_with_replica();
    let (holder, waiter) = (careless_peer(&cluster).await, careless_peer(&cluster).await);
    let name = cluster.name_at(0, "failing");
    let key = format!("~tenure:{{tenure:{name}}}:queue");
    let lease = holder.take(&name, &bid()).await;
    let next = bid();
    waiter.queue(&name, &next).await;
    let replica = &cluster.nodes[3];
    let mut session = replica.session();
    session.command(&["READONLY"]);
    eventually("the replica has the queue", || {
        (session.command(&["EXISTS", &key]) == "1").then_some(())
    });
    cluster.fail_over();

    let renewed = async || holder.try_ask(&name, renewal(lease)).await.ok();
    let renewed = eventually_async("it is renewed on the new primary", renewed).await;
    assert!(matches!(renewed.outcome, Outcome::Renewed { .. }));
    // Whoever waits is told to ask again, so that it can be reached there.
    let told = async || (waiter.mailbox.missed() > 0).then_some(());
    eventually_async("the waiter is told", told).await;
    let heard = async || {
        let channel = format!("tenure:in:{}", waiter.inbox);
        let count = cluster.nodes[3].command(&["PUBSUB", "NUMSUB", &channel]);
        count.ends_with('1').then_some(())
    };
    eventually_async("the waiter listens there", heard).await;
    assert_eq!(holder.release(&name, lease).await, Outcome::Released);
    waiter.is_told(next.owner).await;
}

#[tokio::test]
async fn a_node_that_hangs_holds_up_only_its_own_locks() {
    let cluster = Cluster::start();
    let tenure = tenure::connect(&cluster.url()).await.expect("it serves");
    let (stuck, free) = (cluster.name_at(0, "stuck"), cluster.name_at(2, "free"));
    let held = tenure.lock(&stuck).acquire().await.expect("it serves");
    cluster.nodes[0].stop();
    let mut hanging = Vec::new();
    for number in 0..20 {
        let lock = tenure.lock(cluster.name_at(0, &format!("hanging {number}")));
        hanging.push(tokio::spawn(
            async move { lock.try_acquire().await.map(drop) },
        ));
    }
    tokio::task::yield_now().await;
    for _ in 0..20 {
        let guard = tenure.lock(&free).acquire().await.expect("its node serves");
        guard.release().await.expect("it is ours");
    }
    let waiting = hanging.iter().filter(|task| !task.is_finished()).count();
    cluster.nodes[0].resume();
    assert!(
        waiting > 0,
        "the others were done before those on the node that hangs"
    );
    held.release().await.expect("it lasts for longer than that");
    for task in hanging {
        let _ = task.await;
    }
}

#[tokio::test]
async fn a_node_that_hangs_keeps_no_hold_elsewhere_from_being_renewed() {
    let cluster = Cluster::start();
    let tenure = tenure::connect(&cluster.url()).await.expect("it serves");
    let hold = async |node| {
        let lock = tenure.lock(cluster.name_at(node, "held"));
        let lock = lock.ttl(Duration::from_secs(4));
        lock.acquire().await.expect("it serves")
    };
    // Without renewals the first would end before the others.
    let elsewhere = hold(2).await;
    let mut stuck = Vec::new();
    for _ in 0..10 {
        let name = cluster.name_at(0, &format!("stuck {}", stuck.len()));
        let lock = tenure.lock(name).ttl(Duration::from_secs(4));
        stuck.push(lock.acquire().await.expect("it serves"));
    }
    cluster.nodes[0].stop();
    for guard in &stuck {
        guard.lost().await;
    }
    let valid = elsewhere.ensure();
    cluster.nodes[0].resume();
    valid.expect("its node serves");
}

#[tokio::test]
async fn a_client_can_come_while_a_node_is_down() {
    let mut cluster = Cluster::start();
    cluster.nodes[0].kill();
    let peer = Peer::new(store(&cluster.url()).await.expect("others serve")).await;
    let name = cluster.name_at(2, "up");
    peer.take(&name, &lasting(bid(), 5_000)).await;
    let down = cluster.name_at(0, "down");
    let error = peer.try_ask(&down, Action::Acquire(bid())).await;
    assert_eq!(
        error.expect_err("its node is down").kind(),
        ErrorKind::Unavailable
    );
}
