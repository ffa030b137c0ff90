//! A primary that was replaced, and has its place back.

use super::*;

/// What it hands over while it does not know that it was replaced is confirmed by all once it has its place back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_primary_handed_over_while_it_was_replaced_does_not_count() {
    let cluster = Cluster::start_with_replica();
    let url = url(&cluster, "strict", SHORT);
    let (before, waits) = (
        client(&cluster, "strict", SHORT).await,
        client(&cluster, "strict", SHORT).await,
    );
    let (name, warm) = (cluster.name_at(0, "woken"), cluster.name_at(0, "warm"));
    for client in [&before, &waits] {
        let guard = client.lock(&warm).ttl(SHORT).acquire().await.expect("free");
        guard.release().await.expect("ours");
    }
    let holder = before.lock(&name).ttl(SHORT).acquire().await.expect("free");
    // Somebody before it who cannot be reached: it has no reason to ask soon.
    let silent = Peer::deaf(store(&url).await.expect("it serves"));
    silent.queue(&name, &lasting(bid(), 2_000)).await;
    let waiting = waits.lock(&name).ttl(SHORT).wait(TTL * 4);
    let mut waiting = tokio::spawn(async move { waiting.acquire().await });
    let queue = format!("~tenure:{{tenure:{name}}}:queue");
    eventually("both wait", || {
        (cluster.nodes[0].command(&["ZCARD", &queue]) == "2").then_some(())
    });
    cluster.nodes[0].stop();
    let releasing = tokio::spawn(holder.release());
    let rightful = let_in_while_away(&cluster, &name).await;
    put_back(&cluster);
    // For longer than it is asked whether a grant counts.
    tokio::select! {
        waited = &mut waiting => if let Ok(Ok(guard)) = waited {
            let still = rightful.ensure().is_ok();
            assert!(!(still && guard.ensure().is_ok()), "two hold it");
        },
        () = real_time(SHORT) => waiting.abort(),
    }
    releasing.abort();
}

/// The same of what it renews, if that has to be confirmed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_primary_renewed_while_it_was_replaced_does_not_count() {
    let cluster = Cluster::start_with_replica();
    let name = cluster.name_at(0, "renewed");
    let long = url(&cluster, "strict", SHORT) + "&call_timeout=30s";
    let initialized = tenure::initialize(&long, Assurance::NothingIsHeld).await;
    initialized.expect("it serves");
    // Somebody who has used the slot, but has nothing confirmed there.
    let renewing = Peer::deaf(store(&long).await.expect("it serves"));
    renewing.cancel(&name, bid().owner).await;
    cluster.withhold_replication();
    // A hold that outlasts all this where it was given; a careless one is not asked about it.
    let careless = store(&cluster.url_with("recovery=off")).await;
    let careless = Peer::deaf(careless.expect("it serves"));
    let lease = careless.take(&name, &lasting(bid(), 60_000)).await;
    // So that the node knows the script, and carries out the next one without being asked twice.
    careless.renew(&name, lease).await;
    let renewal = Action::Renew(Renew {
        owner: lease.owner,
        fence: lease.fence,
        ttl: lasting(bid(), 2_000).ttl,
        detach: false,
        terms: None,
    });
    cluster.nodes[0].stop();
    let asked = name.clone();
    let renewing = tokio::spawn(async move { renewing.try_ask(&asked, renewal).await });
    let rightful = let_in_while_away(&cluster, &name).await;
    put_back(&cluster);
    let renewed = renewing.await.expect("no panic").map(|it| it.outcome);
    let counts = matches!(renewed, Ok(Outcome::Renewed { .. }));
    assert!(!(counts && rightful.ensure().is_ok()), "two hold it");
}

/// Puts the replica in the place of the first primary, which is stopped, and has it let somebody in.
async fn let_in_while_away(cluster: &Cluster, name: &str) -> Guard {
    // So that what was asked for is on its way.
    real_time(Duration::from_millis(100)).await;
    cluster.take_over();
    let replica = format!("redis+cluster://{}", cluster.nodes[3].address());
    let other = format!("{replica}?recovery=strict&max_ttl={}s", SHORT.as_secs());
    let other = tenure::connect(&other).await.expect("it serves");
    let opens = async || try_take(&other, name).await.ok().flatten();
    eventually_async("the replica lets somebody in", opens).await
}

/// Wakes the first primary, and has it take back its place as soon as it knows that it has lost it.
fn put_back(cluster: &Cluster) {
    cluster.nodes[0].resume();
    eventually("it is put back", || {
        let mut session = cluster.nodes[0].session();
        let put_back = session.command(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
        (put_back == "OK").then_some(())
    });
}
