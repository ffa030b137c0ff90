//! Nodes of a Redis Cluster that forget: restarted without their data, replaced by a replica that lags behind,
//! cut off, or gone while their slots are given to others. Nobody gets in who should not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tenure::core::{Action, Outcome, Severity};
use tenure::stores::redis::ClusterStore;
use tenure::{
    Assurance, Attempt, Error, ErrorKind, Guard, Initialized, LockName, Store as _, Tenure,
};

use crate::redis_cluster::store;
use crate::support::cluster::Cluster;
use crate::support::peer::{Peer, bid, lasting};
use crate::support::redis_server::RedisServer;
use crate::support::wait::{breath, elapsed, eventually, eventually_async};

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

/// The nodes that could replace it are those that cannot be reached.
#[tokio::test]
async fn a_primary_without_a_majority_grants_nothing_and_its_holds_end() {
    let cluster = Cluster::start();
    let tenure = client(&cluster, "strict", SHORT).await;
    let (held, free) = (cluster.name_at(0, "held"), cluster.name_at(0, "free"));
    let guard = tenure.lock(&held).ttl(SHORT).acquire().await.expect("free");
    cluster.nodes[1].stop();
    cluster.nodes[2].stop();
    let refused = try_take(&tenure, &free).await;
    let served = cluster.nodes[0].command(&["GET", "x{}"]);
    guard.lost().await;
    cluster.nodes[1].resume();
    cluster.nodes[2].resume();
    assert!(!served.contains("CLUSTERDOWN"), "it would have gone on");
    let error = refused.expect_err("nobody confirms it");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("majority"), "{error}");
    let again = async || try_take(&tenure, &free).await.ok().flatten();
    drop(eventually_async("it goes on with them", again).await);
}

/// It carries out what was sent to it before it knows what has happened.
#[tokio::test]
async fn a_primary_that_wakes_up_after_it_was_replaced_grants_nothing() {
    let cluster = Cluster::start_with_replica();
    let options = "recovery=strict&max_ttl=2s&call_timeout=10s";
    let url = cluster.url_with(options);
    tenure::initialize(&url, Assurance::NothingIsHeld)
        .await
        .expect("it serves");
    let sleeper = Arc::new(Peer::new(store(&url).await.expect("it serves")).await);
    let name = cluster.name_at(0, "woken");
    let first = lasting(bid(), 2_000);
    let lease = sleeper.take(&name, &first).await;
    assert_eq!(sleeper.release(&name, lease).await, Outcome::Released);
    cluster.nodes[0].stop();
    let (asker, asked) = (sleeper.clone(), name.clone());
    let late = lasting(bid(), 2_000);
    let asking = tokio::spawn(async move { asker.try_ask(&asked, Action::Acquire(late)).await });
    breath().await;
    cluster.take_over();
    for witness in [1, 2] {
        eventually("the others know", || {
            let nodes = cluster.nodes[witness].command(&["CLUSTER", "NODES"]);
            let replaced =
                |line: &str| line.contains(&cluster.nodes[3].address()) && line.contains("master");
            nodes.lines().any(replaced).then_some(())
        });
    }
    cluster.nodes[0].resume();
    let outcome = asking.await.expect("no panic").map(|reply| reply.outcome);
    assert!(!matches!(outcome, Ok(Outcome::Granted(_))), "{outcome:?}");
}

/// The third may not have heard, and would still confirm the old one: together they are a majority, too.
#[tokio::test]
async fn a_replica_that_took_over_does_not_begin_to_wait_before_the_others_name_it() {
    let mut cluster = Cluster::start_with_replica();
    let url = cluster.url_with("recovery=strict&max_ttl=2s&call_timeout=1s");
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    opened.expect("it serves");
    let tenure = tenure::connect(&url).await.expect("it serves");
    let name = cluster.name_at(0, "replaced");
    let taken = try_take(&tenure, &name).await.expect("it serves");
    taken.expect("free").release().await.expect("it is ours");
    cluster.nodes[2].stop();
    cluster.fail_over();
    // The majority is asked for as long as a call lasts, so it may be the call that ends first, and says so.
    let replica = cluster.nodes[3].address();
    let unconfirmed = async || {
        let refused = try_take(&tenure, &name).await.err()?;
        refused.to_string().contains(&replica).then_some(())
    };
    eventually_async("the replica is asked", unconfirmed).await;
    let mut waited = Duration::ZERO;
    while waited < SHORT + SHORT / 2 {
        let (taken, took) = elapsed(try_take(&tenure, &name)).await;
        let error = taken.expect_err("one of two others names it");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        waited += took;
    }
    cluster.nodes[2].resume();
    let answer = async || try_take(&tenure, &name).await.ok();
    let first = eventually_async("both name it", answer).await;
    assert!(first.is_none(), "it has begun to wait");
    let open = async || try_take(&tenure, &name).await.ok().flatten();
    drop(eventually_async("it opens by itself", open).await);
}

/// By its id alone it is the node that wrote the record, and its own voice would count.
#[tokio::test]
async fn a_primary_that_was_promoted_back_does_not_begin_to_wait_before_the_others_name_it() {
    let cluster = Cluster::start_with_replica();
    let url = cluster.url_with("recovery=strict&max_ttl=2s&call_timeout=1s");
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    opened.expect("it serves");
    let name = cluster.name_at(0, "promoted back");
    for (follower, leader) in [(3, 0), (0, 3)] {
        cluster.follows(follower, leader);
        let taken = cluster.nodes[follower].command(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
        assert_eq!(taken, "OK");
    }
    cluster.follows(3, 0);
    for witness in [1, 2] {
        eventually("the others know", || {
            let slots = cluster.nodes[witness].command(&["CLUSTER", "SLOTS"]);
            let port = cluster.nodes[0].port().to_string();
            let first = slots.find(&port)?;
            let replica = slots.find(&cluster.nodes[3].port().to_string());
            replica.is_none_or(|it| it > first).then_some(())
        });
    }
    cluster.nodes[2].stop();
    let tenure = tenure::connect(&url).await.expect("it serves");
    let mut waited = Duration::ZERO;
    while waited < SHORT + SHORT / 2 {
        let (taken, took) = elapsed(try_take(&tenure, &name)).await;
        let error = taken.expect_err("one of two others names it");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        waited += took;
    }
    cluster.nodes[2].resume();
    let answer = async || try_take(&tenure, &name).await.ok();
    let first = eventually_async("both name it", answer).await;
    assert!(first.is_none(), "it has begun to wait");
    let open = async || try_take(&tenure, &name).await.ok().flatten();
    drop(eventually_async("it opens by itself", open).await);
}

/// Both are asked for at once. That of the one that has moved needs both others, and one of them is gone.
#[tokio::test]
async fn a_slot_that_has_moved_keeps_no_other_from_beginning_to_wait() {
    let cluster = Cluster::start();
    let url = cluster.url_with("recovery=strict&max_ttl=2s&call_timeout=2s");
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    opened.expect("it serves");
    let (lost, moved) = (cluster.name_at(0, "lost"), cluster.name_at(1, "moved"));
    cluster.move_slot(&format!("tenure:{moved}"), 1, 0);
    cluster.empty_slot(&format!("tenure:{lost}"), 0);
    let store = store(&url).await.expect("it serves");
    cluster.nodes[2].stop();
    let ask = |name: &str| {
        let name = LockName::new(name).expect("it is one");
        Action::Acquire(lasting(bid(), 2_000)).on(name)
    };
    let batch = [ask(&lost), ask(&moved)];
    let [lost, moved] = store.apply(&batch).await.try_into().expect("two replies");
    cluster.nodes[2].resume();
    let refused = moved.expect_err("one of two others names its node");
    assert!(refused.to_string().contains("majority"), "{refused}");
    let outcome = lost.expect("a majority names its node").outcome;
    let Outcome::Busy(contention) = &outcome else {
        panic!("it waits: {outcome:?}");
    };
    assert!(contention.recovering.is_some(), "{outcome:?}");
}

/// It shows that it had a replica, as one that was promoted would, but the slot's record is its own.
#[tokio::test]
async fn a_primary_with_a_replica_that_restarts_opens_while_a_majority_is_there() {
    let mut cluster = Cluster::start_with_replica();
    for node in &cluster.nodes {
        node.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let url = url(&cluster, "strict", SHORT);
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    opened.expect("it serves");
    let name = cluster.name_at(0, "restarted");
    cluster.nodes[2].kill();
    assert_eq!(cluster.nodes[0].command(&["SAVE"]), "OK");
    cluster.nodes[0].restart();
    let tenure = tenure::connect(&url).await.expect("it serves");
    let open = async || try_take(&tenure, &name).await.ok().flatten();
    drop(eventually_async("it opens", open).await);
}

#[tokio::test]
async fn a_new_cluster_makes_its_first_user_wait_once_for_all_slots_of_a_node() {
    let cluster = Cluster::start();
    let url = url(&cluster, "strict", SHORT);
    let tenure = tenure::connect(&url).await.expect("it serves");
    let first = cluster.name_at(0, "first");
    let acquiring = tenure.lock(&first).ttl(SHORT).acquire();
    let (guard, waited) = elapsed(acquiring).await;
    drop(guard.expect("it opens by itself"));
    assert!(waited > SHORT / 2, "{waited:?}");
    // That of the first slot, which nobody has asked for.
    let record = || cluster.nodes[0].command(&["GET", "~tenure:{265b}:life:tenure:"]);
    eventually("all slots wait at the same time", || {
        record().starts_with("v1 ").then_some(())
    });
    let other = cluster.name_at(0, "other");
    let open = async || try_take(&tenure, &other).await.expect("it serves");
    drop(eventually_async("it opens, too", open).await);
}

#[tokio::test]
async fn a_cluster_that_is_said_to_be_new_is_open_at_once_and_doctor_tells() {
    let cluster = Cluster::start();
    let url = url(&cluster, "strict", TTL);
    let recovery = async || {
        let store: ClusterStore = store(&url).await.expect("it serves");
        let findings = store.diagnose().await.expect("it serves");
        let about = |subject: &str| subject.ends_with(": recovery");
        let mut about = findings.into_iter().filter(|it| about(&it.subject));
        about.next().expect("a word about each node")
    };
    let before = recovery().await;
    assert_eq!(before.severity, Severity::Warning);
    assert!(before.detail.contains("--init"), "{}", before.detail);
    let refused = tenure::initialize(&url, Assurance::New).await;
    for node in refused.expect("it serves") {
        let why = format!("{:?}", node.outcome);
        assert!(why.contains("may still come back"), "{why}");
    }
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    let opened = opened.expect("it serves");
    assert_eq!(opened.len(), 3);
    assert!(opened.iter().all(|it| it.outcome == Initialized::Opened));
    let after = recovery().await;
    assert_eq!(after.severity, Severity::Fine, "{}", after.detail);
    let tenure = tenure::connect(&url).await.expect("it serves");
    for node in 0..3 {
        let name = cluster.name_at(node, "at once");
        let taken = try_take(&tenure, &name).await.expect("it serves");
        taken.expect("nobody waits").release().await.expect("ours");
    }
    let again = tenure::initialize(&url, Assurance::New).await;
    let was_open = |it: &tenure::Initialization| it.outcome == Initialized::WasOpen;
    assert!(again.expect("it serves").iter().all(was_open));
    // And not once it has forgotten.
    cluster.nodes[2].command(&["FLUSHALL"]);
    let refused = tenure::initialize(&url, Assurance::New).await;
    let refused = refused.expect("it serves");
    let is_refused = |it: &tenure::Initialization| matches!(it.outcome, Initialized::Refused(_));
    assert_eq!(refused.iter().filter(|it| is_refused(it)).count(), 1);
    let wiped = cluster.name_at(2, "wiped");
    let taken = try_take(&tenure, &wiped).await.expect("it serves");
    assert!(taken.is_none(), "it waits");
    // Nor by whoever does not know what the others protect.
    let other = self::url(&cluster, "strict", SHORT);
    for assurance in [Assurance::New, Assurance::NothingIsHeld] {
        let error = tenure::initialize(&other, assurance).await;
        let error = error.expect_err("they disagree");
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    }
}

/// Nothing shows that somebody else had them: whoever gave them away has to wait, or to be sure.
#[tokio::test]
async fn slots_of_a_dead_node_are_not_said_to_be_new_while_others_are_in_use() {
    let mut cluster = Cluster::start();
    let url = url(&cluster, "strict", SHORT);
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    opened.expect("it serves");
    let old = || {
        let about = cluster.nodes[1].command(&["INFO", "server"]);
        let age = about
            .lines()
            .find_map(|it| it.strip_prefix("uptime_in_seconds:"));
        let age = age.and_then(|age| age.trim().parse::<u64>().ok());
        age.filter(|age| *age > SHORT.as_secs() + 3)
    };
    eventually("the node's age speaks for it", old);
    cluster.nodes[0].kill();
    cluster.give_slots_away();
    // Not before the others agree on who has the slots.
    let initialize = async || tenure::initialize(&url, Assurance::New).await.ok();
    let refused = eventually_async("it serves", initialize).await;
    let outcome = |it: &tenure::Initialization| format!("{:?}", it.outcome);
    let outcomes: Vec<_> = refused.iter().map(outcome).collect();
    assert!(
        outcomes.iter().any(|it| it.contains("has been in use")),
        "{outcomes:?}"
    );
    assert!(!outcomes.iter().any(|it| it == "Opened"), "{outcomes:?}");
}

#[tokio::test]
async fn replicas_are_waited_for_on_the_node_that_has_the_lock() {
    let cluster = Cluster::start_with_replica();
    let url = format!("{}&min_replicas=1&replica_timeout=900ms", cluster.url());
    let peer = Peer::deaf(store(&url).await.expect("it serves"));
    let (has, has_not) = (cluster.name_at(0, "has"), cluster.name_at(1, "has not"));
    peer.take(&has, &bid()).await;
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
