//! A server that forgot: it costs waiting, never exclusion, and holders do not even notice.

use std::time::Duration;

use tenure::core::{Acquire, Action, Outcome, Renew, Terms};
use tenure::{Attempt, ErrorKind, Fence, Guard, Lease, Mode, Party, Tenure, Ttl};

use crate::redis_store::store;
use crate::support::peer::{Peer, bid};
use crate::support::redis_server::RedisServer;
use crate::support::wait::{eventually, eventually_async};

/// Leases and what is protected: short, so that tests need not wait for long.
const TTL: Duration = Duration::from_secs(3);

/// Where a server keeps its record.
pub(crate) const RECORD: &str = "~tenure:{tenure:}:life";

fn url(server: &RedisServer, recovery: &str) -> String {
    format!(
        "redis://{}?max_ttl=3s&recovery={recovery}",
        server.address()
    )
}

pub(crate) async fn client(server: &RedisServer, recovery: &str) -> Tenure {
    tenure::connect(&url(server, recovery)).await.unwrap()
}

/// What somebody who has just started is told.
pub(crate) async fn newcomer(server: &RedisServer, recovery: &str, name: &str) -> Attempt {
    let asking = async || {
        let tenure = tenure::connect(&url(server, recovery)).await.ok()?;
        tenure.lock(name).ttl(TTL).try_acquire().await.ok()
    };
    eventually_async("the server answers", asking).await
}

pub(crate) fn is_recovering(attempt: &Attempt) -> bool {
    match attempt {
        Attempt::Busy(blocked) => blocked.recovering().is_some(),
        Attempt::Acquired(_) => false,
    }
}

pub(crate) async fn hold(tenure: &Tenure, name: &str) -> Guard {
    tenure.lock(name).ttl(TTL).acquire().await.unwrap()
}

/// Until the server lets somebody in again; meanwhile `guard` must stay valid.
async fn opens_while_held(server: &RedisServer, guard: &Guard) {
    let opened = async || {
        guard.ensure().unwrap();
        let attempt = newcomer(server, "careful", "something else").await;
        (!is_recovering(&attempt)).then_some(())
    };
    eventually_async("the server opens", opened).await;
    guard.ensure().unwrap();
}

/// Ten wait for a lock whose server forgets; `forget` makes it.
async fn nobody_notices(mut server: RedisServer, forget: impl FnOnce(&mut RedisServer)) {
    let holder = client(&server, "open").await;
    let guard = hold(&holder, "lock").await;
    let (sender, mut entered) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..10 {
        let tenure = client(&server, "open").await;
        let sender = sender.clone();
        tokio::spawn(async move {
            let guard = hold(&tenure, "lock").await;
            sender.send(guard.fence()).unwrap();
            guard.release().await.unwrap();
        });
    }
    let queued = async || {
        let (_, snapshot) = holder.inspect("lock").await.ok()?;
        (snapshot.waiters.len() == 10).then_some(())
    };
    eventually_async("ten wait", queued).await;

    forget(&mut server);
    let attempt = newcomer(&server, "careful", "lock").await;
    assert!(is_recovering(&attempt), "{attempt:?}");
    let held = async || {
        let (_, snapshot) = holder.inspect("lock").await.ok()?;
        let fence = snapshot.holders.first()?.fence;
        (fence == Some(guard.fence())).then_some(())
    };
    eventually_async("the holder has it back", held).await;
    opens_while_held(&server, &guard).await;
    eventually_async("all wait again", queued).await;
    assert!(
        entered.try_recv().is_err(),
        "somebody got in beside the holder"
    );

    let mut highest = guard.fence();
    guard.release().await.unwrap();
    for _ in 0..10 {
        let fence: Fence =
            eventually_async("the waiters go on", async || entered.try_recv().ok()).await;
        assert!(fence > highest, "{fence} after {highest}");
        highest = fence;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_restart_takes_nothing_from_the_holder_and_lets_nobody_else_in() {
    nobody_notices(RedisServer::start(), RedisServer::restart).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wipe_takes_nothing_from_the_holder_and_lets_nobody_else_in() {
    nobody_notices(RedisServer::start(), |server| {
        server.command(&["FLUSHALL"]);
    })
    .await;
}

#[tokio::test]
async fn a_server_without_a_record_is_open_at_once_if_it_is_older_than_any_lease() {
    let server = RedisServer::start();
    assert!(is_recovering(&newcomer(&server, "careful", "x").await));
    let other = RedisServer::start();
    eventually("it is old enough", || {
        let info = other.command(&["INFO", "server"]);
        let age = info
            .lines()
            .find_map(|it| it.strip_prefix("uptime_in_seconds:"));
        (age?.trim().parse::<u64>().ok()? >= 5).then_some(())
    });
    let attempt = newcomer(&other, "careful", "x").await;
    assert!(matches!(attempt, Attempt::Acquired(_)), "{attempt:?}");
    // The first one is open as well by now, and its newcomers are told nothing else.
    let open = async || match newcomer(&server, "careful", "x").await {
        Attempt::Acquired(_) => Some(()),
        Attempt::Busy(_) => None,
    };
    eventually_async("it opens", open).await;
}

#[tokio::test]
async fn whoever_knows_that_a_server_is_new_need_not_wait() {
    let server = RedisServer::start();
    let attempt = newcomer(&server, "open", "x").await;
    assert!(matches!(attempt, Attempt::Acquired(_)), "{attempt:?}");
}

#[tokio::test]
async fn strict_waits_once_even_for_a_server_that_says_that_it_is_new() {
    let server = RedisServer::start();
    let tenure = client(&server, "strict").await;
    let first = tenure.lock("x").ttl(TTL).try_acquire().await.unwrap();
    assert!(is_recovering(&first), "{first:?}");
    let error = tenure.lock("x").ttl(TTL * 2).try_acquire().await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("?max_ttl="), "{error}");
    // A waiter is let in as soon as that is over.
    hold(&tenure, "x").await.release().await.unwrap();
}

#[tokio::test]
async fn switched_off_it_gives_away_what_is_held() {
    let mut server = RedisServer::start();
    let holder = client(&server, "off").await;
    let guard = hold(&holder, "lock").await;
    server.restart();
    let attempt = newcomer(&server, "off", "lock").await;
    let Attempt::Acquired(second) = attempt else {
        panic!("{attempt:?}");
    };
    assert!(second.fence() > guard.fence(), "fences grow all the same");
}

/// Its record is none of ours, as one that is older than numbers of databases, but what it waits for may be.
#[tokio::test]
async fn a_record_of_another_database_is_not_replaced_by_one_that_opens_sooner() {
    let server = RedisServer::start();
    let url = format!("redis://{}/1?max_ttl=3s&recovery=open", server.address());
    store(&url).await;
    let mut session = server.session();
    session.command(&["SELECT", "1"]);
    let record = session.command(&["GET", RECORD]).replace("/1 ", " ");
    let mut words: Vec<&str> = record.split(' ').collect();
    words[2] = "9999999999999999";
    session.command(&["SET", RECORD, &words.join(" ")]);
    let tenure = tenure::connect(&url).await.expect("served");
    let attempt = tenure
        .lock("lock")
        .ttl(Duration::from_secs(3))
        .try_acquire();
    let attempt = attempt.await.expect("served");
    assert!(is_recovering(&attempt), "{attempt:?}");
}

/// What makes a server save every write before it acknowledges it.
pub(crate) const SAVES: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[tokio::test]
async fn a_server_that_keeps_every_write_and_has_no_replicas_is_open_at_once() {
    let mut server = RedisServer::start_with(&SAVES);
    let holder = client(&server, "open&replicas=none").await;
    let guard = hold(&holder, "lock").await;
    server.restart();
    let free = newcomer(&server, "strict&replicas=none", "free").await;
    let Attempt::Acquired(free) = free else {
        panic!("it is open: {free:?}");
    };
    let held = newcomer(&server, "careful&replicas=none", "lock").await;
    assert!(matches!(held, Attempt::Busy(_)), "{held:?}");

    // Whoever does not know that it has none waits, and so does everybody else then; unless one comes first who knows.
    free.release().await.unwrap();
    guard.release().await.unwrap();
    drop(holder);
    server.restart();
    for recovery in ["careful", "careful&replicas=none"] {
        let free = newcomer(&server, recovery, "free").await;
        assert!(is_recovering(&free), "{recovery}: {free:?}");
    }
}

#[tokio::test]
async fn who_says_that_a_server_has_no_replicas_is_told_if_it_has() {
    let (primary, _replica) = replicated(&[]).await;
    let wrong = url(&primary, "open&replicas=none");
    let error = tenure::connect(&wrong).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("replicas=none"), "{error}");
}

/// A server, and a replica that follows it since its record was written.
pub(crate) async fn replicated(arguments: &[&str]) -> (RedisServer, RedisServer) {
    let primary = RedisServer::start_with(arguments);
    let first = hold(&client(&primary, "open").await, "first").await;
    first.release().await.unwrap();
    let arguments = [arguments, &["--repl-diskless-sync-delay", "0"]].concat();
    let replica = RedisServer::start_with(&arguments);
    let (host, port) = ("127.0.0.1", primary.port().to_string());
    replica.command(&["REPLICAOF", host, &port]);
    eventually("the replica follows", || {
        let state = primary.command(&["INFO", "replication"]);
        let there = replica.command(&["EXISTS", RECORD]);
        let saving = replica.command(&["INFO", "persistence"]);
        let busy = ["aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"];
        let saved = !busy.iter().any(|it| saving.contains(it));
        (state.contains("state=online") && there == "1" && saved).then_some(())
    });
    (primary, replica)
}

#[tokio::test]
async fn a_promoted_replica_that_restarts_before_anybody_came_is_not_taken_for_its_primary() {
    let (primary, mut replica) = replicated(&SAVES).await;
    replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
    // Nothing reaches the replica from here on.
    let holder = client(&primary, "careful").await;
    let guard = hold(&holder, "lock").await;
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    // All that it has is on its disk, and nothing shows any more whose it was.
    replica.restart();
    assert_eq!(replica.command(&["EXISTS", RECORD]), "1", "it was saved");
    for recovery in ["strict", "careful"] {
        let attempt = newcomer(&replica, recovery, "lock").await;
        assert!(is_recovering(&attempt), "{recovery}: {attempt:?}");
    }
    guard.ensure().unwrap();
}

/// The renewal of a holder that is still valid.
fn reinstating(lease: Lease) -> Action {
    Action::Renew(Renew {
        owner: lease.owner,
        fence: lease.fence,
        ttl: Ttl::new(TTL).unwrap(),
        detach: false,
        terms: Some(Terms {
            mode: Mode::Exclusive,
            party: Party::default(),
        }),
    })
}

#[tokio::test]
async fn a_promoted_replica_that_lags_behind_gives_nothing_away() {
    let primary = RedisServer::start();
    let of = format!("127.0.0.1 {}", primary.port());
    let replica = RedisServer::start_with(&["--replicaof", &of, "--repl-diskless-sync-delay", "0"]);
    let short = |bid: Acquire| Acquire {
        ttl: Ttl::new(TTL).unwrap(),
        ..bid
    };
    let holder = Peer::new(store(&url(&primary, "open")).await).await;
    holder.take("before", &short(bid())).await;
    eventually("the replica follows", || {
        let state = primary.command(&["INFO", "replication"]);
        let there = replica.command(&["EXISTS", RECORD]);
        (state.contains("state=online") && there == "1").then_some(())
    });
    replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
    // Nothing reaches the replica from here on. What others do, and what we do.
    assert_eq!(primary.command(&["SET", "naive", "a", "NX"]), "OK");
    let lease = holder.take("lock", &short(bid())).await;
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(replica.command(&["SET", "naive", "b", "NX"]), "OK");

    let attempt = newcomer(&replica, "careful", "lock").await;
    assert!(is_recovering(&attempt), "{attempt:?}");
    let moved = Peer::new(store(&url(&replica, "careful")).await).await;
    let renewed = moved.ask("lock", reinstating(lease)).await;
    assert!(matches!(renewed, Outcome::Renewed { .. }), "{renewed:?}");
    let open = async || {
        assert!(matches!(
            moved.ask("lock", reinstating(lease)).await,
            Outcome::Renewed { .. }
        ));
        let attempt = newcomer(&replica, "careful", "lock").await;
        assert!(matches!(attempt, Attempt::Busy(_)), "{attempt:?}");
        (!is_recovering(&attempt)).then_some(())
    };
    eventually_async("it opens, and the lock is held", open).await;
    moved.release("lock", lease).await;
    let next = moved.take("lock", &short(bid())).await;
    assert!(next.fence > lease.fence);
}

#[tokio::test]
async fn who_protects_other_leases_is_refused() {
    let server = RedisServer::start();
    let tenure = client(&server, "open").await;
    hold(&tenure, "x").await.release().await.unwrap();
    let error = tenure::connect(&server.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("?max_ttl="), "{error}");
}

#[tokio::test]
async fn a_server_that_is_demoted_and_promoted_under_a_connection_is_noticed() {
    let server = RedisServer::start();
    let member = tenure::stores::redis::RedisStore::connect_as_member(
        &format!("{}&max_ttl=3s", server.url()),
        std::sync::Arc::new(tenure::clock::SystemClock::start().unwrap()),
    );
    let peer = Peer::deaf(member.unwrap());
    let first = bid();
    let ask = async || peer.ask("lock", Action::Acquire(first.clone())).await;
    assert!(matches!(ask().await, Outcome::Granted(_)));
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    server.command(&["REPLICAOF", "NO", "ONE"]);
    let outcome = ask().await;
    let Outcome::Busy(contention) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(contention.recovering.is_some());
}

#[tokio::test]
async fn a_server_that_saves_everything_goes_on_recovering_when_it_restarts_meanwhile() {
    let mut server = RedisServer::start_with(&SAVES);
    let holder = client(&server, "open&replicas=none").await;
    let guard = hold(&holder, "lock").await;
    server.command(&["FLUSHALL"]);
    let attempt = newcomer(&server, "careful&replicas=none", "lock").await;
    assert!(is_recovering(&attempt), "{attempt:?}");
    // What it knows it keeps; but it does not know of the lock any more.
    server.restart();
    let attempt = newcomer(&server, "careful&replicas=none", "lock").await;
    assert!(is_recovering(&attempt), "{attempt:?}");
    opens_while_held(&server, &guard).await;
}
