//! Rare ways to forget, and to be kept from writing it down: still nobody gets in beside a holder, and nobody is
//! kept out for ever.

use std::time::Duration;

use tenure::core::Action;
use tenure::{Attempt, Tenure};

use crate::redis_recovery::{RECORD, SAVES, client, hold, is_recovering, newcomer, replicated};
use crate::redis_store::store;
use crate::support::clock::ClockedServer;
use crate::support::peer::{Peer, bid};
use crate::support::proxy::Proxy;
use crate::support::redis_server::RedisServer;
use crate::support::wait::{eventually, eventually_async, real_time};

/// Uses the server, so that hello is said and its scripts are known on this connection.
async fn use_once(tenure: &Tenure) {
    let guard = hold(tenure, "something else").await;
    guard.release().await.expect("held");
}

fn follow(server: &RedisServer, whom: &RedisServer) {
    whom.command(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
    server.command(&["REPLICAOF", "127.0.0.1", &whom.port().to_string()]);
    eventually("it follows", || {
        let info = server.command(&["INFO", "replication"]);
        info.contains("master_link_status:up").then_some(())
    });
}

fn alone(server: &RedisServer) {
    server.command(&["REPLICAOF", "NO", "ONE"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_connected_all_the_time_notices_a_replica_that_came_later_and_took_over_for_a_while()
 {
    let (server, other) = (RedisServer::start(), RedisServer::start());
    use_once(&client(&server, "open").await).await;
    for recovery in ["careful", "strict"] {
        let holder = client(&server, recovery).await;
        let rival = client(&server, recovery).await;
        use_once(&holder).await;
        use_once(&rival).await;
        follow(&other, &server);
        // It lags from here on, takes over, and gives the place back.
        alone(&other);
        let guard = hold(&holder, "lock").await;
        follow(&server, &other);
        alone(&server);
        let attempt = rival.lock("lock").ttl(Duration::from_secs(3)).try_acquire();
        let attempt = attempt.await.expect("an answer");
        assert!(is_recovering(&attempt), "{recovery}: {attempt:?}");
        guard.ensure().expect("valid");
        guard.release().await.expect("held");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_swapped_is_not_taken_for_the_one_that_was_there() {
    for recovery in ["careful", "strict"] {
        let server = RedisServer::start();
        let in_second = server.url().replace('?', "/1?") + "&max_ttl=3s";
        let second = tenure::connect(&in_second).await.expect("served");
        use_once(&second).await;
        use_once(&client(&server, "open").await).await;
        let holder = client(&server, recovery).await;
        let rival = client(&server, recovery).await;
        use_once(&rival).await;
        let guard = hold(&holder, "lock").await;
        server.command(&["SWAPDB", "0", "1"]);
        let attempt = rival.lock("lock").ttl(Duration::from_secs(3)).try_acquire();
        let attempt = attempt.await.expect("an answer");
        assert!(is_recovering(&attempt), "{recovery}: {attempt:?}");
        guard.ensure().expect("valid");
    }
}

/// The swapped one was written before the restart, and the server saves every write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swapped_database_from_before_a_restart_that_lost_nothing_is_noticed_too() {
    let mut server = RedisServer::start_with(&SAVES);
    let said = "open&replicas=none";
    let in_second = server.url().replace('?', "/1?") + "&max_ttl=3s&replicas=none";
    use_once(&tenure::connect(&in_second).await.expect("served")).await;
    use_once(&client(&server, said).await).await;
    server.restart();
    let holder = client(&server, said).await;
    let guard = hold(&holder, "lock").await;
    server.command(&["SWAPDB", "0", "1"]);
    for recovery in ["strict&replicas=none", "careful&replicas=none"] {
        let attempt = newcomer(&server, recovery, "lock").await;
        assert!(is_recovering(&attempt), "{recovery}: {attempt:?}");
    }
    guard.ensure().expect("valid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_hold_locks_together_may_do_so_in_any_database() {
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    let hosts: Vec<_> = servers.iter().map(RedisServer::address).collect();
    let options = "recovery=open&node_timeout=1s";
    let url = format!("redlock://{}/3?{options}", hosts.join(","));
    let tenure = tenure::connect(&url).await.expect("served");
    let lock = tenure.lock("lock").wait(Duration::from_secs(20));
    let guard = lock.acquire().await.expect("free");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn strict_refuses_a_server_that_evicts_also_where_its_settings_may_not_be_seen() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "volatile-lru"]);
    let rights = ["on", ">p", "~*", "&*", "+@all", "-config"];
    let words = [&["ACL", "SETUSER", "u"][..], &rights].concat();
    assert_eq!(server.command(&words), "OK");
    let url = format!("redis://u:p@{}?recovery=strict", server.address());
    let error = tenure::connect(&url).await.expect_err("it evicts");
    assert!(error.to_string().contains("volatile-lru"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_was_ahead_and_is_set_back_keeps_nobody_out_for_longer_than_a_lease() {
    let server = ClockedServer::start();
    server.set(3_600);
    let url = format!("{}&max_ttl=3s", server.url());
    let stays = tenure::connect(&url).await.expect("served");
    use_once(&stays).await;
    server.set(0);
    // Whoever was connected, and whoever comes now.
    let others = tenure::connect(&url).await.expect("served");
    for tenure in [stays, others] {
        let lock = tenure.lock("lock").ttl(Duration::from_secs(3));
        let guard = lock.wait(Duration::from_secs(20)).acquire().await;
        guard.expect("it opens").release().await.expect("held");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_memory_for_its_record_lets_nobody_in_and_recovers_once_it_has() {
    let mut server = RedisServer::start();
    let holder = client(&server, "open").await;
    let guard = hold(&holder, "lock").await;
    server.restart_without_waiting(&["--maxmemory", "1"]);
    let refused = async || {
        let tenure =
            match tenure::connect(&format!("redis://{}?max_ttl=3s", server.address())).await {
                Ok(tenure) => tenure,
                Err(error) => return error.to_string().contains("OOM").then_some(()),
            };
        let asked = tenure
            .lock("lock")
            .ttl(Duration::from_secs(3))
            .try_acquire();
        match asked.await {
            Ok(attempt) => panic!("nothing can be written: {attempt:?}"),
            Err(error) => error.to_string().contains("OOM").then_some(()),
        }
    };
    eventually_async("it says that it has no memory", refused).await;
    assert_eq!(server.command(&["EXISTS", RECORD]), "0");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let attempt = newcomer(&server, "careful", "lock").await;
    assert!(is_recovering(&attempt), "{attempt:?}");
    drop(guard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_cannot_write_its_record_and_recovers_each_time_it_is_promoted() {
    let (primary, replica) = replicated(&[]).await;
    let copied = replica.command(&["GET", RECORD]);
    let url = format!("redis://{}?max_ttl=3s", replica.address());
    let tenure = tenure::connect(&url).await.expect("it may be looked at");
    let asked = tenure
        .lock("lock")
        .ttl(Duration::from_secs(3))
        .try_acquire();
    let error = asked.await.expect_err("it is read-only");
    assert!(error.to_string().contains("replica"), "{error}");
    assert_eq!(replica.command(&["GET", RECORD]), copied);

    let mut before = copied;
    for _ in 0..2 {
        replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
        let holder = client(&primary, "careful").await;
        let guard = hold(&holder, "lock").await;
        alone(&replica);
        let attempt = newcomer(&replica, "careful", "lock").await;
        assert!(is_recovering(&attempt), "{attempt:?}");
        let record = replica.command(&["GET", RECORD]);
        assert!(
            record != before && record.contains(" took-over "),
            "{record}"
        );
        before = record;
        guard.release().await.expect("held");
        follow(&replica, &primary);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_from_an_older_snapshot_gives_nothing_away() {
    let mut server = RedisServer::start();
    let holder = client(&server, "open").await;
    use_once(&holder).await;
    assert_eq!(server.command(&["SAVE"]), "OK");
    let guard = hold(&holder, "lock").await;
    server.restart();
    assert_eq!(server.command(&["EXISTS", RECORD]), "1", "it is loaded");
    let attempt = newcomer(&server, "careful", "lock").await;
    assert!(matches!(attempt, Attempt::Busy(_)), "{attempt:?}");
    assert!(is_recovering(&attempt), "{attempt:?}");
    eventually_async("the holder has it back", async || {
        let (_, snapshot) = holder.inspect("lock").await.ok()?;
        let fence = snapshot.holders.first()?.fence;
        (fence == Some(guard.fence())).then_some(())
    })
    .await;
    guard.ensure().expect("it never lost it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hello_goes_on_when_whoever_needed_it_has_given_up() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address()).await;
    let far = store(&(proxy.url() + "&call_timeout=20s")).await;
    let far = Peer::deaf(far);
    far.take("lock", &bid()).await;
    server.command(&["FLUSHALL"]);
    // One round trip tells that this is another life; some more are needed to begin it.
    proxy.delay_replies(200);
    let begun = async || {
        let hurry = Duration::from_millis(500);
        let asking = far.ask("lock", Action::Acquire(bid()));
        let answered = tokio::select! {
            _ = asking => true,
            () = real_time(hurry) => false,
        };
        // As between two renewals.
        real_time(hurry).await;
        answered.then_some(())
    };
    eventually_async("the next one finds it done", begun).await;
    assert_eq!(server.command(&["EXISTS", RECORD]), "1");
}
