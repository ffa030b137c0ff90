//! No life of a slot begins, and nothing is granted, before enough of the other primaries name its node.

use super::*;

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
    // Whose time is over first, the store's or the client's, is chance.
    let words = error.to_string();
    assert!(
        words.contains("majority") || words.contains("did not answer"),
        "{error}"
    );
    let again = async || try_take(&tenure, &free).await.ok().flatten();
    drop(eventually_async("it goes on with them", again).await);
}

/// Whoever has a short lease cannot wait for what makes the next confirmation: the last one is good for a while.
#[tokio::test]
async fn a_renewal_is_answered_before_the_others_would_have_confirmed_it() {
    let cluster = Cluster::start();
    let url = cluster.url_with("recovery=open&max_ttl=2s");
    let peer = Peer::new(store(&url).await.expect("it serves")).await;
    let name = cluster.name_at(0, "short");
    let bid = lasting(bid(), 2_000);
    let lease = peer.take(&name, &bid).await;
    let renewal = Action::Renew(Renew {
        owner: lease.owner,
        fence: lease.fence,
        ttl: bid.ttl,
        detach: false,
        terms: None,
    });
    cluster.nodes[1].stop();
    cluster.nodes[2].stop();
    // Older than that, they are asked with each renewal.
    real_time(Duration::from_millis(600)).await;
    // It is, or is refused because the last one was long ago: the machine may be slow.
    let renew = async || {
        let (_, took) = elapsed(peer.try_ask(&name, renewal.clone())).await;
        (took < Duration::from_millis(450)).then_some(())
    };
    eventually_async("it is answered at once", renew).await;
}

/// A machine that stands still for a second is no reason to refuse.
#[tokio::test]
async fn a_majority_that_answers_late_is_waited_for_if_calls_may_last_long() {
    let cluster = Cluster::start();
    let url = cluster.url_with("recovery=open&max_ttl=10m&call_timeout=40s");
    let tenure = tenure::connect(&url).await.expect("it serves");
    let name = cluster.name_at(0, "late");
    cluster.nodes[1].stop();
    cluster.nodes[2].stop();
    let asking = tokio::spawn(async move { try_take(&tenure, &name).await });
    real_time(Duration::from_millis(1_500)).await;
    cluster.nodes[1].resume();
    cluster.nodes[2].resume();
    let taken = asking.await.expect("no panic");
    assert!(taken.expect("they confirm it").is_some(), "it is free");
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
    opened(&cluster).await;
    let tenure = impatient(&cluster).await;
    let name = cluster.name_at(0, "replaced");
    // So that the client need not connect later.
    let served = async || try_take(&tenure, &name).await.ok().flatten();
    drop(eventually_async("it serves", served).await);
    tenure.settle().await;
    cluster.nodes[2].stop();
    cluster.fail_over();
    // The majority is asked for as long as a call lasts, so it may be the call that ends first, and says so.
    let replica = cluster.nodes[3].address();
    let unconfirmed = async || {
        let refused = try_take(&tenure, &name).await.err()?;
        refused.to_string().contains(&replica).then_some(())
    };
    eventually_async("the replica is asked", unconfirmed).await;
    waits_only_when_both_name_it(&cluster, &tenure, &name).await;
}

/// By its id alone it is the node that wrote the record, and its own voice would count.
#[tokio::test]
async fn a_primary_that_was_promoted_back_does_not_begin_to_wait_before_the_others_name_it() {
    let cluster = Cluster::start_with_replica();
    opened(&cluster).await;
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
    let tenure = impatient(&cluster).await;
    waits_only_when_both_name_it(&cluster, &tenure, &name).await;
}

/// Both are asked for at once. That of the one that has moved needs both others, and one of them is gone.
#[tokio::test]
async fn a_slot_that_has_moved_keeps_no_other_from_beginning_to_wait() {
    let cluster = Cluster::start();
    opened(&cluster).await;
    let url = cluster.url_with("recovery=strict&max_ttl=2s&call_timeout=20s");
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

/// Says that the cluster is new, for those who wait for [`SHORT`].
async fn opened(cluster: &Cluster) {
    let url = cluster.url_with("recovery=strict&max_ttl=2s&call_timeout=20s");
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    opened.expect("it serves");
}

/// A client that does not wait for long for a node that is stopped.
async fn impatient(cluster: &Cluster) -> Tenure {
    let url = cluster.url_with("recovery=strict&max_ttl=2s&call_timeout=1s");
    let connected = async || tenure::connect(&url).await.ok();
    eventually_async("it serves", connected).await
}

/// The third node is stopped: nothing begins for longer than it would last. Once it goes on, the slot waits, and opens.
async fn waits_only_when_both_name_it(cluster: &Cluster, tenure: &Tenure, name: &str) {
    let mut waited = Duration::ZERO;
    while waited < SHORT + SHORT / 2 {
        let (taken, took) = elapsed(try_take(tenure, name)).await;
        let error = taken.expect_err("one of two others names it");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        waited += took;
    }
    cluster.nodes[2].resume();
    let answer = async || try_take(tenure, name).await.ok();
    let (first, took) = elapsed(eventually_async("both name it", answer)).await;
    // A machine that stands still may not ask while it waits.
    let waits = first.is_none() || took >= SHORT;
    assert!(waits, "it has begun to wait");
    let open = async || try_take(tenure, name).await.ok().flatten();
    drop(eventually_async("it opens by itself", open).await);
}
