//! Where the Redis store's keys are, and what happens when others use the same ones.

use tenure::core::{Action, Outcome};
use tenure::{ErrorKind, Mode, Store};

use crate::redis_store::{peer, store};
use crate::support::peer::{Peer, bid, bid_in};
use crate::support::redis_server::RedisServer;

#[tokio::test]
async fn foreign_holders_are_respected_whatever_they_are() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    server.command(&["SET", "tenure:string", "c0ffee"]);
    server.command(&["SET", "tenure:short", "c0ffee", "PX", "60000"]);
    server.command(&["RPUSH", "tenure:list", "x"]);
    server.command(&["HSET", "tenure:hash", "uuid:1", "1"]);
    server.command(&["SET", "tenure:future", "v2 something new"]);
    server.command(&[
        "HSET",
        "tenure:odd",
        "tenure",
        "v1 lock",
        "somebody",
        "s unreadable",
    ]);
    let later = "9 1 9000000000000000 30000 1 host who -";
    let owner = "0123456789abcdef0123456789abcdef";
    for (name, owner, mode) in [("mode", owner, "u"), ("owner", "me", "s")] {
        let (key, value) = (format!("tenure:{name}"), format!("{mode} {later}"));
        server.command(&["HSET", &key, "tenure", "v1 lock", owner, &value]);
    }
    for (name, what) in [
        ("string", "string"),
        ("short", "string"),
        ("list", "list"),
        ("hash", "hash"),
        ("future", "string"),
        ("odd", "hash"),
        ("mode", "hash"),
        ("owner", "hash"),
    ] {
        for mode in [Mode::Exclusive, Mode::Shared, Mode::permits(1, 2).unwrap()] {
            let outcome = peer.ask(name, Action::Acquire(bid_in(mode))).await;
            let Outcome::Busy(contention) = outcome else {
                panic!("{name}: {outcome:?}");
            };
            assert!(contention.is_foreign());
            let party = contention.holders[0].party.to_string();
            assert!(party.contains(&format!("a key of type {what}")), "{party}");
            assert_eq!(contention.next_expiry.is_some(), name == "short");
        }
    }
}

#[tokio::test]
async fn our_waiter_gets_in_after_a_foreign_release_when_it_asks_again() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    server.command(&["SET", "tenure:lock", "c0ffee", "PX", "60000"]);
    let (first, second) = (bid(), bid());
    peer.queue("lock", &first).await;
    peer.queue("lock", &second).await;
    server.command(&["DEL", "tenure:lock"]);
    let granted = peer
        .ask("lock", Action::Acquire(peer.waiting(&first)))
        .await;
    assert!(matches!(granted, Outcome::Granted(_)), "{granted:?}");
    assert_eq!(peer.queue("lock", &second).await, 0);
}

#[tokio::test]
async fn a_fence_that_is_ahead_of_the_clock_is_remembered_until_the_clock_has_passed_it() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let key = "~tenure:{tenure:lock}:fence";
    for mode in [Mode::Exclusive, Mode::Shared] {
        let first = peer.take("lock", &bid()).await;
        peer.release("lock", first).await;
        // The server's clock was ten days ahead once, and was then set right.
        let ahead = first.fence.as_u64() + 10 * 86_400_000_000;
        server.command(&["SET", key, &ahead.to_string(), "PX", "172800000"]);
        let next = peer.take("lock", &bid_in(mode)).await;
        assert_eq!(next.fence.as_u64(), ahead + 1);
        let remembered: i64 = server.command(&["PTTL", key]).parse().unwrap();
        assert!(remembered > 10 * 86_400_000, "{remembered} ms");
        peer.release("lock", next).await;
        server.command(&["DEL", key]);
    }
}

#[tokio::test]
async fn an_empty_prefix_shares_keys_with_others_but_not_ours() {
    let server = RedisServer::start();
    let peer = Peer::new(store(&format!("{}&prefix=", server.url())).await).await;
    let lease = peer.take("nightly", &bid()).await;
    assert_eq!(
        server.command(&["SET", "nightly", "token", "NX", "PX", "1000"]),
        "(nil)"
    );
    peer.release("nightly", lease).await;
    let error = peer
        .try_ask("~tenure:{nightly}:fence", Action::Acquire(bid()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn the_listing_shows_locks_waiters_and_foreign_locks_by_prefix() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    peer.take("a*1", &bid()).await;
    peer.take("a*2", &bid_in(Mode::Shared)).await;
    peer.take("ab", &bid()).await;
    server.command(&["SET", "tenure:a*3", "foreign"]);
    server.command(&["RPUSH", "tenure:a*4", "not a lock"]);
    let waiting = bid();
    let lease = peer.take("a*5", &bid()).await;
    let deaf = Peer::deaf(store(&server.url()).await);
    deaf.queue("a*5", &waiting).await;
    peer.release("a*5", lease).await;

    let listing = peer.store.list("a*").await.unwrap();
    let names: Vec<_> = listing
        .locks
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["a*1", "a*2", "a*3", "a*5"]);
    assert!(listing.locks[3].1.holders.is_empty());
    assert_eq!(listing.locks[3].1.waiters[0].owner, waiting.owner);
    assert!(peer.store.list("none").await.unwrap().locks.is_empty());
    assert_eq!(peer.store.list("").await.unwrap().locks.len(), 5);
}

#[tokio::test]
async fn the_unix_socket_and_the_database_number_work() {
    let server = RedisServer::start();
    let url = format!(
        "redis+unix://{}?db=3&recovery=open",
        server.socket().display()
    );
    let over_socket = Peer::new(store(&url).await).await;
    over_socket.take("lock", &bid()).await;
    let over_tcp =
        Peer::new(store(&format!("redis://{}/3?recovery=open", server.address())).await).await;
    assert_eq!(over_tcp.inspect("lock").await.holders.len(), 1);
    let elsewhere = peer(&server).await;
    assert_eq!(elsewhere.inspect("lock").await.kind, None);
}
