//! What the Redis store does on a healthy server, beyond what every store does.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::core::{Action, Ballot, Fence, Grant, Outcome, Removed, Vote};
use tenure::stores::redis::RedisStore;
use tenure::{Kind, Lease, Mode, Store, Ttl};

use crate::support::peer::{Peer, bid, bid_in, lasting, named, renewal};
use crate::support::redis_server::RedisServer;
use crate::support::wait::eventually_async;

pub(crate) async fn store(url: &str) -> RedisStore {
    let clock = Arc::new(SystemClock::start().expect("a clock"));
    let store = RedisStore::connect(url, clock).await;
    store.unwrap_or_else(|error| panic!("{url}: {error}"))
}

pub(crate) async fn peer(server: &RedisServer) -> Peer<RedisStore> {
    Peer::new(store(&server.url()).await).await
}

#[tokio::test]
async fn a_lock_is_one_readable_string_with_a_real_expiry() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let bid = bid();
    let lease = peer.take("nightly", &bid).await;

    let value = server.command(&["GET", "tenure:nightly"]);
    let words: Vec<_> = value.split(' ').collect();
    assert_eq!(words[0], "v1");
    assert_eq!(words[1], bid.owner.to_string());
    assert_eq!(words[2], lease.fence.to_string());
    assert_eq!(words[5], "30000", "the ttl in milliseconds: {value}");
    assert_eq!(words[6..], ["42", "bench", "tester@bench", "a%20test"]);
    let rest: i64 = server.command(&["PTTL", "tenure:nightly"]).parse().unwrap();
    assert!((1..=30_001).contains(&rest), "{rest}");

    assert_eq!(peer.release("nightly", lease).await, Outcome::Released);
    assert_eq!(server.command(&["EXISTS", "tenure:nightly"]), "0");
    assert_eq!(
        peer.release("nightly", lease).await,
        Outcome::NotHeld { forced: None }
    );
}

#[tokio::test]
async fn repeating_an_acquire_gives_the_same_grant() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    for mode in [Mode::Exclusive, Mode::Shared] {
        let bid = bid_in(mode);
        let first = peer
            .ask(&mode.to_string(), Action::Acquire(bid.clone()))
            .await;
        let again = peer.ask(&mode.to_string(), Action::Acquire(bid)).await;
        assert!(matches!(first, Outcome::Granted(_)), "{first:?}");
        assert_eq!(first, again);
    }
}

#[tokio::test]
async fn a_release_hands_over_and_pushes_the_grant() {
    for options in ["", "&protocol=resp2"] {
        let server = RedisServer::start();
        let url = format!("{}{options}", server.url());
        let holder = Peer::new(store(&url).await).await;
        let waiter = Peer::new(store(&url).await).await;
        let lease = holder.take("lock", &bid()).await;
        let next = bid();
        assert_eq!(waiter.queue("lock", &next).await, 0);
        assert_eq!(
            waiter.queue("lock", &next).await,
            0,
            "asking again keeps the place"
        );

        assert_eq!(holder.release("lock", lease).await, Outcome::Released);
        let grant = waiter.is_told(next.owner).await;
        assert_eq!(grant.name, named("lock"));
        assert!(grant.fence > lease.fence);
        assert_eq!(
            grant.expiry.since(grant.now),
            Duration::from_secs(30),
            "a pushed grant lasts for its claim window"
        );
        let renewed = waiter
            .renew(
                "lock",
                Lease {
                    owner: next.owner,
                    fence: grant.fence,
                },
            )
            .await;
        assert!(matches!(renewed, Outcome::Renewed { .. }), "{renewed:?}");
        assert_eq!(
            server.command(&["KEYS", "*waiters*"]),
            "",
            "nothing is left of a queue that is empty"
        );
    }
}

#[tokio::test]
async fn waiters_come_in_order_and_who_cannot_be_reached_is_passed_over_but_keeps_its_place() {
    let server = RedisServer::start();
    let (holder, waiter) = (peer(&server).await, peer(&server).await);
    let deaf = Peer::deaf(store(&server.url()).await);
    let lease = holder.take("lock", &bid()).await;
    let (first, second, third) = (bid(), bid(), bid());
    deaf.queue("lock", &first).await;
    waiter.queue("lock", &second).await;
    waiter.queue("lock", &third).await;

    holder.release("lock", lease).await;
    let grant = waiter.is_told(second.owner).await;
    let waiting: Vec<_> = holder.inspect("lock").await.waiters;
    let owners: Vec<_> = waiting.iter().map(|waiter| waiter.owner).collect();
    assert_eq!(owners, [first.owner, third.owner]);

    // It asks for itself, and so is reached by the answer.
    let lease = Lease {
        owner: second.owner,
        fence: grant.fence,
    };
    deaf.listen().await.unwrap();
    waiter.release("lock", lease).await;
    deaf.is_told(first.owner).await;
}

#[tokio::test]
async fn a_step_that_has_looked_at_enough_waiters_is_continued_at_once() {
    let server = RedisServer::start();
    let (holder, waiter) = (peer(&server).await, peer(&server).await);
    let deaf = Peer::deaf(store(&server.url()).await);
    let lease = holder.take("lock", &bid()).await;
    for _ in 0..120 {
        deaf.queue("lock", &bid()).await;
    }
    let alive = bid();
    assert_eq!(waiter.queue("lock", &alive).await, 120);
    holder.release("lock", lease).await;
    let grant = waiter.is_told(alive.owner).await;

    // Nor do they keep out somebody who does not wait.
    let lease = Lease {
        owner: alive.owner,
        fence: grant.fence,
    };
    waiter.release("lock", lease).await;
    holder.take("lock", &bid()).await;
}

#[tokio::test]
async fn a_long_queue_of_the_dead_is_forgotten_in_one_go() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    peer.take("lock", &lasting(bid(), 1_000)).await;
    let dead: Vec<_> = (0..250)
        .map(|_| {
            let mut bid = peer.waiting(&bid());
            bid.waiting = tenure::core::Waiting::Queue {
                inbox: peer.inbox.clone(),
                alive_for: Duration::from_millis(1_000),
            };
            Action::Acquire(bid).on(named("lock"))
        })
        .collect();
    peer.store.apply(&dead).await;
    eventually_async("all of them have fallen silent", async || {
        let snapshot = peer.inspect("lock").await;
        (snapshot.kind.is_none()).then_some(())
    })
    .await;
    peer.take("lock", &bid()).await;
    assert_eq!(server.command(&["KEYS", "*queue*"]), "");
    assert!(
        peer.mailbox.grants().is_empty(),
        "nothing is granted to the dead"
    );
}

#[tokio::test]
async fn readers_share_a_hash_that_keeps_foreign_writers_out() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let first = peer.take("doc", &bid_in(Mode::Shared)).await;
    let second = peer.take("doc", &bid_in(Mode::Shared)).await;
    assert_eq!(server.command(&["TYPE", "tenure:doc"]), "hash");
    assert_eq!(
        server.command(&["SET", "tenure:doc", "token", "NX", "PX", "1000"]),
        "(nil)"
    );
    assert!(
        server
            .command(&["PTTL", "tenure:doc"])
            .parse::<i64>()
            .unwrap()
            > 0
    );
    let writer = bid();
    assert!(matches!(
        peer.ask("doc", Action::Acquire(writer.clone())).await,
        Outcome::Busy(contention) if contention.holder_count == 2
    ));
    peer.release("doc", first).await;
    peer.release("doc", second).await;
    assert_eq!(server.command(&["EXISTS", "tenure:doc"]), "0");
    peer.take("doc", &writer).await;
    assert_eq!(server.command(&["TYPE", "tenure:doc"]), "string");
}

#[tokio::test]
async fn a_downgrade_turns_the_string_into_a_hash_and_lets_the_next_readers_in() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let writer = peer.take("doc", &bid()).await;
    let (reader, other) = (bid_in(Mode::Shared), bid());
    peer.queue("doc", &reader).await;
    peer.queue("doc", &other).await;
    let converted = peer.convert("doc", writer).await;
    assert!(
        matches!(converted, Outcome::Converted { .. }),
        "{converted:?}"
    );
    peer.is_told(reader.owner).await;
    let snapshot = peer.inspect("doc").await;
    assert_eq!(snapshot.holders.len(), 2);
    assert!(
        snapshot
            .holders
            .iter()
            .all(|holder| holder.mode == Mode::Shared)
    );
    assert_eq!(snapshot.holders[0].fence, Some(writer.fence));
    assert_eq!(snapshot.waiters.len(), 1);
}

#[tokio::test]
async fn a_semaphore_counts_and_its_capacity_is_in_force_while_it_is_used() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let permits = |count, capacity| bid_in(Mode::permits(count, capacity).unwrap());
    peer.take("gpu", &permits(2, 3)).await;
    let busy = peer.ask("gpu", Action::Acquire(permits(2, 3))).await;
    assert!(matches!(busy, Outcome::Busy(_)), "{busy:?}");
    let last = peer.take("gpu", &permits(1, 3)).await;
    let conflict = Outcome::Conflict {
        in_force: Kind::Semaphore { capacity: 3 },
    };
    assert_eq!(
        peer.ask("gpu", Action::Acquire(permits(1, 4))).await,
        conflict
    );
    assert_eq!(peer.ask("gpu", Action::Acquire(bid())).await, conflict);
    assert_eq!(peer.convert("gpu", last).await, conflict);
}

#[tokio::test]
async fn a_hold_ends_with_its_ttl_and_the_key_with_it() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let short = peer.take("lock", &lasting(bid(), 100)).await;
    let taken = eventually_async("the hold ends", async || {
        match peer.ask("lock", Action::Acquire(bid())).await {
            Outcome::Granted(Grant { fence, .. }) => Some(fence),
            _ => None,
        }
    });
    assert!(taken.await > short.fence);
    let renewed = peer.renew("lock", short).await;
    assert_eq!(renewed, Outcome::NotHeld { forced: None });
}

/// As `decide` says it: the answer to the vote tells the rest.
#[tokio::test]
async fn a_hand_over_is_told_as_it_was_made_though_the_same_step_raises_its_fence() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    peer.take("x", &bid()).await;
    let next = bid();
    peer.queue("x", &next).await;
    // As if it had ended: whoever asks next lets in who waits.
    assert_eq!(server.command(&["DEL", "tenure:x"]), "1");
    let far = Fence::from_u64(u64::from(u32::MAX) * 1_000_000);
    let vote = Vote {
        owner: next.owner,
        mode: next.mode,
        ttl: next.ttl,
        party: next.party.clone(),
        not_after: None,
        ballot: Ballot::Raise { to: far },
    };
    let Outcome::Granted(grant) = peer.ask("x", Action::Vote(vote)).await else {
        panic!("it was let in");
    };
    assert_eq!(grant.fence, far);
    assert!(peer.is_told(next.owner).await.fence < far);
}

#[tokio::test]
async fn cancel_removes_a_place_or_a_grant() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let (held, waiting) = (bid(), bid());
    peer.take("lock", &held).await;
    peer.queue("lock", &waiting).await;
    for (owner, removed) in [
        (waiting.owner, Removed::Waiter),
        (waiting.owner, Removed::Nothing),
        (held.owner, Removed::Grant),
    ] {
        assert_eq!(
            peer.cancel("lock", owner).await,
            Outcome::Cancelled(removed)
        );
    }
    assert_eq!(peer.inspect("lock").await.kind, None);
}

#[tokio::test]
async fn a_forced_release_tells_the_old_holder_by_whom_and_why() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let lease = peer.take("lock", &bid()).await;
    assert_eq!(
        peer.force("lock", lease, "it hangs, 100%").await,
        Outcome::Released
    );
    match peer.renew("lock", lease).await {
        Outcome::NotHeld {
            forced: Some(forced),
        } => {
            assert_eq!(forced.reason, "it hangs, 100%");
            assert_eq!(forced.by.who(), "operator@desk");
            assert_eq!(forced.fence, lease.fence);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_late_request_takes_nothing() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let mut late = bid();
    late.not_after = Some(tenure::Timestamp::from_micros(1));
    assert_eq!(
        peer.ask("lock", Action::Acquire(late)).await,
        Outcome::TooLate
    );
    assert_eq!(peer.inspect("lock").await.kind, None);
}

#[tokio::test]
async fn a_big_mixed_batch_is_answered_in_order_each_as_if_alone() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let mut batch = Vec::new();
    for index in 0..150 {
        let bid = bid();
        batch.push(Action::Acquire(bid.clone()).on(named(&format!("lock-{index}"))));
        batch.push(Action::Inspect.on(named(&format!("lock-{index}"))));
    }
    let owner = bid().owner;
    let cancel = Action::Cancel(tenure::core::Cancel { owner });
    batch.push(cancel.on(named("lock-0")));
    let replies = peer.store.apply(&batch).await;
    assert_eq!(replies.len(), batch.len());
    for pair in replies[..300].chunks(2) {
        let granted = pair[0].as_ref().unwrap();
        let Outcome::Granted(grant) = &granted.outcome else {
            panic!("{granted:?}");
        };
        let Outcome::State(snapshot) = &pair[1].as_ref().unwrap().outcome else {
            panic!("{:?}", pair[1]);
        };
        let last = grant.fence.last_of_grant(Mode::Exclusive);
        assert_eq!(snapshot.last_fence, last);
        assert_eq!(snapshot.holders.len(), 1);
    }
}

#[tokio::test]
async fn a_renewal_sweep_is_a_few_calls() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let mut leases = Vec::new();
    for index in 0..250 {
        let name = format!("lock-{index}");
        let lease = peer.take(&name, &bid()).await;
        leases.push((name, lease));
    }
    let sweep: Vec<_> = leases
        .iter()
        .map(|(name, lease)| renewal(*lease).on(named(name)))
        .collect();
    let before = scripts_run(&server);
    let replies = peer.store.apply(&sweep).await;
    let renewed = |reply: &Result<tenure::core::Reply, _>| {
        matches!(&reply.as_ref().unwrap().outcome, Outcome::Renewed { .. })
    };
    assert!(replies.iter().all(renewed));
    // The first sweep also loads the script.
    assert!(
        scripts_run(&server) - before <= 6,
        "three calls, at most twice"
    );
}

#[tokio::test]
async fn a_listener_that_is_gone_is_no_longer_reachable() {
    let server = RedisServer::start();
    let (holder, mut gone) = (peer(&server).await, peer(&server).await);
    let lease = holder.take("lock", &bid()).await;
    gone.queue("lock", &bid()).await;
    gone.mailbox = Arc::default();
    eventually_async("its channel is given up", async || {
        let channels = server.command(&["PUBSUB", "CHANNELS", "tenure:in:*"]);
        (channels.lines().count() == 1).then_some(())
    })
    .await;
    holder.release("lock", lease).await;
    holder.take("lock", &bid()).await;
}

#[tokio::test]
async fn a_ttl_of_a_year_is_kept_exactly() {
    let server = RedisServer::start();
    let peer = peer(&server).await;
    let mut long = bid();
    long.ttl = Ttl::MAX;
    let reply = peer.try_ask("lock", Action::Acquire(long)).await.unwrap();
    let Outcome::Granted(grant) = reply.outcome else {
        panic!("{reply:?}");
    };
    assert_eq!(grant.expiry.since(reply.now), Ttl::MAX.duration());
    let kept: i64 = server
        .command(&["PTTL", "~tenure:{tenure:lock}:fence"])
        .parse()
        .unwrap();
    assert!(
        kept > 366 * 86_400_000,
        "the fence outlives the hold: {kept}"
    );
}

/// How many script calls the server has seen.
pub(crate) fn scripts_run(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let start = format!("cmdstat_{name}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&start));
        let number = line.and_then(|line| line.split(',').next());
        number.map_or(0, |number| number.parse::<u64>().unwrap())
    };
    calls("evalsha") + calls("eval")
}
