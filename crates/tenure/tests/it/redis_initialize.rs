//! Saying that a server is new: what speaks against it is looked for up to the very end, and somebody
//! who may still come back is waited for.

use std::time::Duration;

use tenure::{Assurance, Attempt, Initialized};

use crate::support::proxy::Proxy;
use crate::support::redis_server::RedisServer;
use crate::support::wait::{eventually, eventually_async};

const TTL: Duration = Duration::from_secs(3);

fn url(address: &str, recovery: &str) -> String {
    format!("redis://{address}?max_ttl=3s&recovery={recovery}")
}

async fn init(url: &str, assurance: Assurance) -> Initialized {
    let done = tenure::initialize(url, assurance).await;
    done.expect("it answers").remove(0).outcome
}

/// Until all that was held before its last start has ended.
fn is_old(server: &RedisServer) {
    eventually("it is old enough", || {
        let info = server.command(&["INFO", "server"]);
        let age = info
            .lines()
            .find_map(|it| it.strip_prefix("uptime_in_seconds:"));
        (age?.trim().parse::<u64>().ok()? >= 5).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_after_an_empty_restart_a_holder_may_still_come_back() {
    let mut server = RedisServer::start();
    let address = server.address();
    let proxy = Proxy::to(address.clone()).await;
    let through = proxy.url() + "&max_ttl=3s";
    let holder = tenure::connect(&through).await.expect("served");
    let lock = || holder.lock("lock").ttl(TTL);
    let guard = lock().acquire().await.expect("free");
    // It cannot be reached for a moment, and meanwhile the server restarts and somebody says that it is new.
    proxy.refuse(true);
    server.restart();
    let outcome = init(&url(&address, "strict"), Assurance::New).await;
    let Initialized::Refused(why) = outcome else {
        panic!("the holder believes in its lock: {outcome:?}");
    };
    assert!(why.contains("may still come back for"), "{why}");
    assert!(why.contains("--nothing-is-held"), "{why}");
    proxy.refuse(false);
    eventually_async("the holder has it back", async || {
        let (_, snapshot) = holder.inspect("lock").await.ok()?;
        let fence = snapshot.holders.first()?.fence;
        (fence == Some(guard.fence())).then_some(())
    })
    .await;
    guard.ensure().expect("it never lost it");
    // Whoever is sure is believed, and nobody else.
    let outcome = init(&url(&address, "strict"), Assurance::NothingIsHeld).await;
    assert_ne!(outcome, Initialized::WasOpen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_older_than_any_lease_opens_at_once() {
    let server = RedisServer::start();
    is_old(&server);
    let url = url(&server.address(), "strict");
    assert_eq!(init(&url, Assurance::New).await, Initialized::Opened);
    let tenure = tenure::connect(&url).await.expect("served");
    let attempt = tenure.lock("lock").ttl(TTL).try_acquire().await;
    let attempt = attempt.expect("an answer");
    assert!(matches!(attempt, Attempt::Acquired(_)), "{attempt:?}");
    assert_eq!(init(&url, Assurance::New).await, Initialized::WasOpen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_shows_only_after_it_was_looked_at_is_not_overruled() {
    let server = RedisServer::start();
    is_old(&server);
    let stays = tenure::connect(&url(&server.address(), "open")).await;
    let stays = stays.expect("served");
    let lock = || stays.lock("lock").ttl(TTL);
    let guard = lock().acquire().await.expect("free");
    guard.release().await.expect("held");
    // It loses everything, and the traces of that.
    server.command(&["FLUSHALL"]);
    let many = "for i = 1, 300000 do redis.call('SET', 'other:' .. i, 1) end";
    server.command(&["EVAL", many, "0"]);
    server.command(&["CONFIG", "RESETSTAT"]);
    let proxy = Proxy::to(server.address()).await;
    let through = proxy.url().replace("recovery=open", "recovery=strict") + "&max_ttl=3s";
    let asking = tokio::spawn(async move { init(&through, Assurance::New).await });
    // Hello was said, nothing was found, and locks that are held are looked for.
    eventually_async("it looks for locks", async || {
        let stats = server.command(&["INFO", "commandstats"]);
        stats.contains("cmdstat_scan:").then_some(())
    })
    .await;
    proxy.park();
    let record = || server.command(&["GET", "~tenure:{tenure:}:life"]);
    assert!(record().contains(" unknown "), "{}", record());
    eventually_async("it is held up", async || proxy.has_parked().then_some(())).await;
    // Now comes whoever remembers.
    let attempt = lock().try_acquire().await.expect("an answer");
    assert!(matches!(attempt, Attempt::Busy(_)), "{attempt:?}");
    proxy.unpark();
    let outcome = asking.await.expect("no panic");
    let Initialized::Refused(why) = outcome else {
        panic!("somebody knew it: {outcome:?}");
    };
    assert!(why.contains("found its record gone"), "{why}");
}
