//! What a caller is told when a Redis server refuses: the right kind, in words, with advice, and
//! never a password.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;

use tenure::clock::SystemClock;
use tenure::core::{Action, Outcome};
use tenure::stores::redis::RedisStore;
use tenure::{Error, ErrorKind, Mode, Retry, Severity, Store};

use crate::redis_store::{peer, store};
use crate::support::peer::{Peer, bid, bid_in, named};
use crate::support::redis_server::RedisServer;
use crate::support::wait::eventually_async;

async fn connecting(url: &str) -> Result<RedisStore, Error> {
    RedisStore::connect(url, Arc::new(SystemClock::start().unwrap())).await
}

fn assert_says(error: &Error, kind: ErrorKind, words: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test]
async fn out_of_memory_refuses_new_locks_and_still_releases() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let peer = peer(&server).await;
    let lease = peer.take("held", &bid()).await;
    let queued = bid();
    peer.queue("held", &queued).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    server.command(&["SETRANGE", "padding", "2000000", "x"]);

    for action in [
        Action::Acquire(bid()),
        Action::Acquire(bid_in(Mode::Shared)),
    ] {
        let error = peer.try_ask("new", action).await.unwrap_err();
        assert_says(&error, ErrorKind::Refused, "out of memory");
        assert_eq!(error.retry(), Retry::Later);
    }
    assert_eq!(peer.inspect("new").await.kind, None, "nothing half done");
    // A release makes room, and hands over in full or not at all.
    assert_eq!(peer.release("held", lease).await, Outcome::Released);
    let grant = peer.is_told(queued.owner).await;
    let holders = peer.inspect("held").await.holders;
    assert_eq!(holders[0].fence, Some(grant.fence));
}

#[tokio::test]
async fn one_bad_name_fails_alone() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    server.command(&["RPUSH", "~tenure:{tenure:bad}:fence", "not a fence"]);
    let acquire = |name| Action::Acquire(bid()).on(named(name));
    let results = peer
        .store
        .apply(&[acquire("good"), acquire("bad"), acquire("fine")])
        .await;
    let granted = |index: usize| {
        matches!(
            results[index].as_ref().unwrap().outcome,
            Outcome::Granted(_)
        )
    };
    assert!(granted(0) && granted(2));
    let error = results[1].as_ref().unwrap_err();
    assert_says(error, ErrorKind::Conflict, "another type of value");
}

#[tokio::test]
async fn a_replica_is_read_only_but_can_be_looked_at() {
    let primary = RedisServer::start();
    let holder = peer(&primary).await;
    holder.take("lock", &bid()).await;
    let port = primary.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
    let reader = peer(&replica).await;
    eventually_async("the replica has caught up", async || {
        let looked = reader.try_ask("lock", Action::Inspect).await;
        let Ok(Outcome::State(snapshot)) = looked.map(|reply| reply.outcome) else {
            return None;
        };
        (snapshot.holders.len() == 1).then_some(())
    })
    .await;
    let refused = reader.try_ask("other", Action::Acquire(bid())).await;
    assert_says(
        &refused.unwrap_err(),
        ErrorKind::Refused,
        "connect to the primary",
    );
    let findings = reader.store.diagnose().await.unwrap();
    assert!(findings.iter().any(|finding| finding.severity == Severity::Danger
        && finding.subject == "replication"));
}

#[tokio::test]
async fn missing_and_wrong_credentials_are_told_apart_from_everything_else() {
    let server = RedisServer::start_with(&["--requirepass", "correct horse"]);
    let address = server.address();
    for credentials in ["", "user:hunter2@", ":hunter2@"] {
        let error = connecting(&format!("redis://{credentials}{address}")).await;
        let error = match error {
            Err(error) => error,
            // Redis lets anybody connect and refuses the first command.
            Ok(store) => {
                let lookup = [Action::Inspect.on(named("lock"))];
                store.apply(&lookup).await.remove(0).unwrap_err()
            }
        };
        assert_says(
            &error,
            ErrorKind::Unauthorized,
            "redis://user:password@host",
        );
        assert_eq!(error.retry(), Retry::Never);
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
    }
    let right = format!("redis://:correct%20horse@{address}?recovery=open");
    let peer = Peer::new(store(&right).await).await;
    peer.take("lock", &bid()).await;
    assert!(!format!("{:?}", peer.store).contains("horse"));
}

#[tokio::test]
async fn a_user_without_rights_learns_which_are_missing() {
    let server = RedisServer::start();
    let user = |name: &str, rules: &str| {
        let mut words = vec!["ACL", "SETUSER", name, "on", ">pw"];
        words.extend(rules.split(' '));
        assert_eq!(server.command(&words), "OK");
        format!("redis://{name}:pw@{}?recovery=open", server.address())
    };
    let all = "+@read +@write +@scripting +@pubsub +@connection +time";

    let url = user(
        "enough",
        &format!("~tenure:* ~~tenure:* &tenure:in:* {all}"),
    );
    let enough = Peer::new(store(&url).await).await;
    let lease = enough.take("lock", &bid()).await;
    let next = bid();
    enough.queue("lock", &next).await;
    enough.release("lock", lease).await;
    enough.is_told(next.owner).await;
    // May not ask for settings: a warning, not a failure.
    let findings = enough.store.diagnose().await.unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.severity == Severity::Warning
                && finding.detail.contains("CONFIG"))
    );
    // Nor who the server is: what others have recorded about it may be of an earlier start.
    peer(&server).await;
    let findings = enough.store.diagnose().await.unwrap();
    let recovery = findings.iter().find(|it| it.subject == "recovery").unwrap();
    assert_eq!(recovery.severity, Severity::Warning, "{}", recovery.detail);
    assert!(
        recovery.detail.contains("recorded that"),
        "{}",
        recovery.detail
    );

    let deaf = Peer::deaf(store(&user("deaf", &format!("~* resetchannels {all}"))).await);
    let error = deaf.listen().await.unwrap_err();
    assert_says(&error, ErrorKind::Forbidden, "&tenure:in:*");

    let keyless = Peer::deaf(store(&user("keyless", &format!("~other:* &* {all}"))).await);
    let error = keyless.try_ask("lock", Action::Acquire(bid())).await;
    assert_says(&error.unwrap_err(), ErrorKind::Forbidden, "~~tenure:*");

    let mute = Peer::deaf(store(&user("mute", "~* &* +@connection")).await);
    let error = mute.try_ask("lock", Action::Acquire(bid())).await;
    assert_says(&error.unwrap_err(), ErrorKind::Forbidden, "+@scripting");
}

#[tokio::test]
async fn a_hand_over_by_a_user_without_channel_rights_is_not_left_half_done() {
    let server = RedisServer::start();
    let waiter = peer(&server).await;
    server.command(&[
        "ACL",
        "SETUSER",
        "mute",
        "on",
        ">pw",
        "~*",
        "resetchannels",
        "+@all",
    ]);
    let mute = Peer::deaf(
        store(&format!(
            "redis://mute:pw@{}?recovery=open",
            server.address()
        ))
        .await,
    );
    let lease = mute.take("lock", &bid()).await;
    let next = bid();
    waiter.queue("lock", &next).await;
    assert_eq!(mute.release("lock", lease).await, Outcome::Released);
    // Nobody could tell it, but the grant is there when it asks again.
    let granted = waiter.ask("lock", Action::Acquire(waiter.waiting(&next)));
    assert!(matches!(granted.await, Outcome::Granted(_)));
}

#[tokio::test]
async fn a_server_that_cannot_save_refuses() {
    let server = RedisServer::start_with(&["--save", "3600 1", "--dbfilename", "blocked.rdb"]);
    let peer = peer(&server).await;
    std::fs::create_dir(server.folder().join("blocked.rdb")).unwrap();
    server.command(&["SET", "key", "value"]);
    server.command(&["BGSAVE"]);
    eventually_async("the snapshot fails", async || {
        let facts = server.command(&["INFO", "persistence"]);
        facts.contains("rdb_last_bgsave_status:err").then_some(())
    })
    .await;
    let error = peer.try_ask("lock", Action::Acquire(bid())).await;
    assert_says(&error.unwrap_err(), ErrorKind::Refused, "disk");
}

#[tokio::test]
async fn a_server_that_is_busy_or_still_loading_refuses_for_now() {
    let mut server = RedisServer::start_with(&["--busy-reply-threshold", "5"]);
    let peer = peer(&server).await;
    let mut session = server.session();
    let endless = std::thread::spawn(move || {
        session.command(&["EVAL", "while true do end", "0"]);
    });
    let refused = |words: &'static str| {
        let peer = &peer;
        eventually_async(words, async move || {
            let error = peer.try_ask("lock", Action::Inspect).await.err()?;
            if error.kind() != ErrorKind::Refused {
                return None;
            }
            assert_says(&error, ErrorKind::Refused, words);
            Some(())
        })
    };
    refused("SCRIPT KILL").await;
    server.command(&["SCRIPT", "KILL"]);
    endless.join().unwrap();

    for number in 0..2_000 {
        server.command(&["SET", &format!("key-{number}"), "value"]);
    }
    server.command(&["SAVE"]);
    server.kill();
    let slowly = [
        "--key-load-delay",
        "10000",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    server.restart_without_waiting(&slowly);
    refused("loading its data").await;
}

#[tokio::test]
async fn a_server_without_scripts_is_not_supported() {
    let server = RedisServer::start_with(&[
        "--rename-command",
        "EVALSHA",
        "",
        "--rename-command",
        "EVAL",
        "",
    ]);
    let peer = peer(&server).await;
    let error = peer.try_ask("lock", Action::Acquire(bid())).await;
    assert_says(&error.unwrap_err(), ErrorKind::Unsupported, "EVALSHA");
}

#[tokio::test]
async fn a_server_that_repeats_the_password_is_not_quoted() {
    let server = RedisServer::start_with(&["--rename-command", "HELLO", ""]);
    let address = server.address();
    let error = connecting(&format!("redis://:abc@{address}?protocol=resp3"))
        .await
        .unwrap_err();
    assert_says(&error, ErrorKind::Unsupported, "resp2");
    assert!(!format!("{error} {error:?}").contains("abc"), "{error:?}");
}

#[tokio::test]
async fn a_server_without_resp3_gets_resp2() {
    let server = RedisServer::start_with(&["--rename-command", "HELLO", ""]);
    let (holder, waiter) = (peer(&server).await, peer(&server).await);
    let lease = holder.take("lock", &bid()).await;
    let next = bid();
    waiter.queue("lock", &next).await;
    holder.release("lock", lease).await;
    waiter.is_told(next.owner).await;
    let findings = holder.store.diagnose().await.unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.detail.contains("RESP2"))
    );

    let insisting = connecting(&format!("{}&protocol=resp3", server.url())).await;
    assert_says(&insisting.unwrap_err(), ErrorKind::Unsupported, "resp2");
}

#[tokio::test]
async fn nothing_there_and_something_else_there_are_told_apart() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("redis://user:hunter2@127.0.0.1:{port}");
    let error = connecting(&url).await.unwrap_err();
    assert_says(&error, ErrorKind::Unavailable, "nothing listens there");
    assert!(
        error.to_string().contains(&format!("127.0.0.1:{port}")),
        "{error}"
    );
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let error = connecting("redis+unix:///no/such/socket")
        .await
        .unwrap_err();
    assert_says(&error, ErrorKind::Unavailable, "/no/such/socket");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error = connecting(&format!("redis://{address}")).await.unwrap_err();
    assert_says(
        &error,
        ErrorKind::Protocol,
        "is this the address of a Redis server?",
    );
}

#[tokio::test]
async fn tls_to_a_server_without_it_fails_with_advice() {
    let server = RedisServer::start();
    let error = connecting(&format!("rediss://{}?call_timeout=3s", server.address())).await;
    assert_says(&error.unwrap_err(), ErrorKind::Unavailable, "TLS");
}

#[tokio::test]
async fn the_diagnosis_of_a_plain_server_warns_of_its_memory() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let findings = peer(&server).await.store.diagnose().await.unwrap();
    let severity = |subject: &str| {
        let finding = findings.iter().find(|finding| finding.subject == subject);
        finding
            .unwrap_or_else(|| panic!("{subject}: {findings:?}"))
            .severity
    };
    assert_eq!(severity("eviction"), Severity::Danger);
    assert_eq!(severity("persistence"), Severity::Warning);
    assert_eq!(severity("replication"), Severity::Fine);
    assert_eq!(severity("version"), Severity::Fine);
    assert_eq!(severity("clocks"), Severity::Fine);

    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let findings = peer(&server).await.store.diagnose().await.unwrap();
    let bad = findings
        .iter()
        .filter(|finding| finding.severity != Severity::Fine && finding.subject != "round trip");
    assert_eq!(bad.count(), 0, "{findings:?}");
}
