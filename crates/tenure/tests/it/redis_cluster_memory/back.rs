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
    // So that it is on its way.
    real_time(Duration::from_millis(100)).await;
    cluster.take_over();
    let replica = format!("redis+cluster://{}", cluster.nodes[3].address());
    let other = format!("{replica}?recovery=strict&max_ttl={}s", SHORT.as_secs());
    let other = tenure::connect(&other).await.expect("it serves");
    let opens = async || try_take(&other, &name).await.ok().flatten();
    let rightful = eventually_async("the replica lets somebody in", opens).await;
    cluster.nodes[0].resume();
    eventually("it is put back", || {
        let mut session = cluster.nodes[0].session();
        let put_back = session.command(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
        (put_back == "OK").then_some(())
    });
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
