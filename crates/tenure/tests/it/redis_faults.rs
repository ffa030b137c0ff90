//! What a caller sees when a Redis server, or the way to it, fails; and that nothing is granted twice.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::core::{Action, Outcome};
use tenure::stores::redis::RedisStore;
use tenure::{ErrorKind, Lease, Mode, Retry, Store};

use crate::redis_store::{peer, scripts_run, store};
use crate::support::peer::{Peer, bid, bid_in, renewal};
use crate::support::proxy::Proxy;
use crate::support::redis_server::RedisServer;
use crate::support::wait::{PATIENCE, elapsed, eventually_async, real_time};

#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    for round in 0..3 {
        server.command(&["SCRIPT", "FLUSH"]);
        let name = format!("lock-{round}");
        let lease = peer.take(&name, &bid()).await;
        server.command(&["SCRIPT", "FLUSH"]);
        let renewed = peer.renew(&name, lease).await;
        assert!(matches!(renewed, Outcome::Renewed { .. }), "{renewed:?}");
        server.command(&["SCRIPT", "FLUSH"]);
        assert_eq!(peer.release(&name, lease).await, Outcome::Released);
    }
}

#[tokio::test]
async fn a_killed_connection_comes_back_and_waiters_are_told_to_ask_again() {
    for options in ["", "&protocol=resp2"] {
        let server = RedisServer::start();
        let url = format!("{}{options}", server.url());
        let (holder, waiter) = (peer(&server).await, Peer::new(store(&url).await).await);
        let lease = holder.take("lock", &bid()).await;
        let next = bid();
        waiter.queue("lock", &next).await;

        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        // Without a call of its own.
        let missed = async || (waiter.mailbox.missed() > 0).then_some(());
        eventually_async("the waiter is told that it may have missed a push", missed).await;
        let action = Action::Release(tenure::core::Release {
            owner: lease.owner,
            fence: lease.fence,
        });
        let released = eventually_async("the holder is connected again", async || {
            holder.try_ask("lock", action.clone()).await.ok()
        });
        let outcome = released.await.outcome;
        assert!(
            matches!(outcome, Outcome::Released | Outcome::NotHeld { .. }),
            "{outcome:?}"
        );
        waiter.is_told(next.owner).await;
    }
}

#[tokio::test]
async fn whoever_only_looks_writes_nothing_when_its_connection_comes_back_either() {
    let server = RedisServer::start();
    let clock = Arc::new(SystemClock::start().expect("a clock"));
    let url = format!("redis://{}?recovery=strict", server.address());
    let looking = RedisStore::connect_to_look(&url, clock).await;
    let reader = Peer::new(looking.expect("it serves")).await;
    for times in 1..=2 {
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        let missed = async || (reader.mailbox.missed() >= times).then_some(());
        eventually_async("it listens again", missed).await;
        // Whatever is said on a new connection has been said by then.
        for _ in 0..10 {
            let looked = async || reader.try_ask("lock", Action::Inspect).await.ok();
            eventually_async("it answers", looked).await;
        }
    }
    assert_eq!(server.command(&["DBSIZE"]), "0");
}

#[tokio::test]
async fn whoever_lets_calls_last_long_also_waits_long_for_a_connection() {
    let server = RedisServer::start();
    server.stop();
    let url = format!("{}&call_timeout=1m", server.url());
    let connecting = tokio::spawn(async move { Peer::new(store(&url).await).await });
    // Longer than connecting takes unless more is said.
    real_time(Duration::from_millis(1500)).await;
    server.resume();
    let peer = connecting.await.expect("it is connected");
    peer.take("lock", &bid()).await;
}

#[tokio::test]
async fn a_stopped_server_is_unavailable_within_the_call_timeout() {
    let server = RedisServer::start();
    let url = format!("{}&call_timeout=1s", server.url());
    let peer = Peer::new(store(&url).await).await;
    let lease = peer.take("lock", &bid()).await;
    server.stop();
    let (error, took) = elapsed(peer.try_ask("lock", renewal(lease))).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.retry(), Retry::Later);
    // Reconnecting hangs too: the server accepts and does not answer.
    let (again, took_again) = elapsed(peer.try_ask("lock", renewal(lease))).await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(
        took.max(took_again) < PATIENCE / 4,
        "{took:?} {took_again:?}"
    );

    server.resume();
    let renewed = async || peer.try_ask("lock", renewal(lease)).await.ok();
    let renewed = eventually_async("it answers again", renewed).await.outcome;
    assert!(matches!(renewed, Outcome::Renewed { .. }), "{renewed:?}");
}

#[tokio::test]
async fn a_server_that_restarts_with_its_data_forgets_neither_holder_nor_queue() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let url = format!("{}&replicas=none", server.url());
    let holder = Peer::new(store(&url).await).await;
    let waiter = Peer::new(store(&url).await).await;
    let lease = holder.take("lock", &bid()).await;
    let next = bid();
    waiter.queue("lock", &next).await;
    server.kill();
    let error = holder.try_ask("lock", renewal(lease)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    server.restart();

    let renewed = async || holder.try_ask("lock", renewal(lease)).await.ok();
    let renewed = eventually_async("the holder reaches it again", renewed).await;
    assert!(
        matches!(renewed.outcome, Outcome::Renewed { .. }),
        "{renewed:?}"
    );
    let missed = async || (waiter.mailbox.missed() > 0).then_some(());
    eventually_async("the waiter listens again", missed).await;
    assert_eq!(waiter.queue("lock", &next).await, 0);
    holder.release("lock", lease).await;
    let grant = waiter.is_told(next.owner).await;
    assert!(grant.fence > lease.fence);
}

#[tokio::test]
async fn a_swallowed_reply_is_unknown_and_repeating_gives_the_same_grant() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address()).await;
    let peer = Peer::new(store(&format!("{}&call_timeout=1s", proxy.url())).await).await;
    let witness = peer_of(&server).await;
    for mode in [Mode::Exclusive, Mode::Shared] {
        let (name, bid) = (mode.to_string(), bid_in(mode));
        // The script must be known, or the lost reply is the one that asks for it.
        let warm = witness.take("warm-up", &bid_in(mode)).await;
        witness.release("warm-up", warm).await;
        proxy.swallow_replies(true);
        let error = peer.try_ask(&name, Action::Acquire(bid.clone())).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable);
        let held = eventually_async("it is carried out all the same", async || {
            let held = witness.inspect(&name).await.holders;
            (held.len() == 1).then_some(held)
        })
        .await;

        proxy.swallow_replies(false);
        let again = async || peer.try_ask(&name, Action::Acquire(bid.clone())).await.ok();
        let again = eventually_async("it is answered", again).await.outcome;
        let Outcome::Granted(grant) = again else {
            panic!("{again:?}");
        };
        assert_eq!(held[0].fence, Some(grant.fence));
        assert_eq!(held[0].expiry, Some(grant.expiry));

        proxy.swallow_replies(true);
        let lease = Lease {
            owner: bid.owner,
            fence: grant.fence,
        };
        let release = Action::Release(tenure::core::Release {
            owner: lease.owner,
            fence: lease.fence,
        });
        assert!(peer.try_ask(&name, release.clone()).await.is_err());
        eventually_async("so is this", async || {
            let held = witness.inspect(&name).await.holders;
            held.is_empty().then_some(())
        })
        .await;
        proxy.swallow_replies(false);
        let next = witness.take(&name, &bid_in(mode)).await;
        let late = async || peer.try_ask(&name, release.clone()).await.ok();
        let late = eventually_async("it is answered", late).await.outcome;
        assert_eq!(late, Outcome::NotHeld { forced: None });
        let holders = witness.inspect(&name).await.holders;
        assert_eq!(
            holders[0].fence,
            Some(next.fence),
            "the next holder is untouched"
        );
    }
}

#[tokio::test]
async fn a_reply_that_belongs_to_another_request_is_never_taken_for_ours() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address()).await;
    let peer = Peer::new(store(&format!("{}&call_timeout=10s", proxy.url())).await).await;
    let witness = peer_of(&server).await;
    let taken = witness.take("taken", &bid()).await;

    // The first reply is lost, so the second arrives in its place: the driver pairs them wrongly.
    proxy.swallow_replies(true);
    let before = scripts_run(&server);
    let first = async {
        let acquire = Action::Acquire(bid());
        peer.try_ask("taken", acquire).await
    };
    let second = async {
        eventually_async(
            "the first was carried out, and its reply lost",
            async || (scripts_run(&server) > before && proxy.swallowed() > 0).then_some(()),
        )
        .await;
        proxy.swallow_replies(false);
        peer.try_ask("free", Action::Acquire(bid())).await
    };
    let ((first, second), took) = elapsed(async { tokio::join!(first, second) }).await;
    let first = first.expect_err("a grant of another lock");
    assert_eq!(first.kind(), ErrorKind::Protocol, "{first}");
    let second = second.expect_err("the connection was given up");
    assert_eq!(second.kind(), ErrorKind::Unavailable, "{second}");
    assert!(
        took < Duration::from_secs(10),
        "without waiting for the time-out: {took:?}"
    );

    // A new connection has its replies in order again.
    let busy = peer.ask("taken", Action::Acquire(bid())).await;
    assert!(matches!(busy, Outcome::Busy(_)), "{busy:?}");
    witness.release("taken", taken).await;
    peer.take("taken", &bid()).await;
}

#[tokio::test]
async fn a_cut_in_the_middle_of_a_wait_loses_neither_place_nor_grant() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address()).await;
    let holder = peer_of(&server).await;
    let waiter = Peer::new(store(&proxy.url()).await).await;
    let lease = holder.take("lock", &bid()).await;
    let next = bid();
    waiter.queue("lock", &next).await;
    proxy.refuse(true);
    proxy.cut();
    eventually_async("the server has noticed", async || {
        let channels = server.command(&["PUBSUB", "CHANNELS"]);
        (channels.lines().count() == 1).then_some(())
    })
    .await;
    holder.release("lock", lease).await;
    assert!(
        holder.inspect("lock").await.holders.is_empty(),
        "nobody could be reached"
    );
    proxy.refuse(false);
    let missed = async || (waiter.mailbox.missed() > 0).then_some(());
    eventually_async("the waiter is told to ask again", missed).await;
    let granted = waiter
        .ask("lock", Action::Acquire(waiter.waiting(&next)))
        .await;
    assert!(matches!(granted, Outcome::Granted(_)), "{granted:?}");
}

#[tokio::test]
async fn a_server_that_is_down_costs_no_more_than_the_call_timeout_and_blocks_nobody() {
    let mut server = RedisServer::start();
    let url = format!("{}&call_timeout=500ms", server.url());
    let peer = Peer::new(store(&url).await).await;
    server.kill();
    let asking = (0..50).map(|_| peer.try_ask("lock", Action::Inspect));
    let (answers, took) = elapsed(futures_util::future::join_all(asking)).await;
    for answer in answers {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert!(took < PATIENCE / 2, "{took:?}");
}

async fn peer_of(server: &RedisServer) -> Peer<impl Store> {
    peer(server).await
}
