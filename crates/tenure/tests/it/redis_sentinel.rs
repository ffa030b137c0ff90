//! Locks on a service that Sentinel watches over: failovers, and sentinels that are dead, wrong or
//! protected.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::core::{Action, Finding, Outcome, Release, Renew, Reply, Severity};
use tenure::stores::redis::RedisStore;
use tenure::{Error, ErrorKind, Lease, Store as _, Ttl};

use crate::redis_store::store;
use crate::support::peer::{Peer, bid, renewal};
use crate::support::redis_server::RedisServer;
use crate::support::sentinels::{FakeSentinel, Passwords, SERVICE, Says, Sentinel, Watched};
use crate::support::wait::eventually_async;

async fn peer(url: &str) -> Peer<RedisStore> {
    Peer::new(store(url).await).await
}

async fn refusal(url: &str) -> Error {
    let clock = Arc::new(SystemClock::start().expect("a clock"));
    let refused = RedisStore::connect(url, clock).await;
    refused.err().unwrap_or_else(|| panic!("{url} is served"))
}

/// Asks until there is an answer.
async fn answered(peer: &Peer<RedisStore>, what: &str, action: Action) -> Reply {
    let asked = async || peer.try_ask("lock", action.clone()).await.ok();
    eventually_async(what, asked).await
}

fn lasting(lease: Lease, ttl: Duration) -> Action {
    Action::Renew(Renew {
        owner: lease.owner,
        fence: lease.fence,
        ttl: Ttl::new(ttl).expect("long enough"),
        detach: false,
        terms: None,
    })
}

#[tokio::test]
async fn a_hold_lives_through_a_failover() {
    let mut watched = Watched::start();
    let peer = peer(&watched.url()).await;
    let lease = peer.take("lock", &bid()).await;
    watched.replicated("tenure:lock");
    watched.fail_over();

    let renewed = answered(&peer, "it is renewed on the new primary", renewal(lease)).await;
    let outcome = renewed.outcome;
    assert!(matches!(outcome, Outcome::Renewed { .. }), "{outcome:?}");
    let value = watched.servers[1].command(&["GET", "tenure:lock"]);
    assert!(value.contains(&lease.owner.to_string()), "{value}");
    let Lease { owner, fence } = lease;
    let release = Action::Release(Release { owner, fence });
    let released = answered(&peer, "it is released there", release).await;
    assert_eq!(released.outcome, Outcome::Released);
    assert!(peer.take("lock", &bid()).await.fence > lease.fence);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_is_kept_and_a_waiting_task_gets_in_across_a_failover() {
    let mut watched = Watched::start();
    let holder = tenure::connect(&watched.url()).await.unwrap();
    let waiter = tenure::connect(&watched.url()).await.unwrap();
    let guard = holder.lock("lock").acquire().await.unwrap();
    let fence = guard.fence();
    let waiting = tokio::spawn(waiter.lock("lock").acquire());
    eventually_async("it waits", async || {
        let (_, snapshot) = holder.inspect("lock").await.unwrap();
        (!snapshot.waiters.is_empty()).then_some(())
    })
    .await;
    watched.replicated("tenure:lock");
    watched.fail_over();

    guard.ensure().expect("a failover is shorter than a lease");
    let before = guard.valid_until();
    eventually_async("it is renewed on the new primary", async || {
        (guard.valid_until() > before).then_some(())
    })
    .await;
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert!(next.fence() > fence);
    next.release().await.unwrap();
}

#[tokio::test]
async fn an_acquire_and_a_release_during_a_failover_succeed_when_it_is_over() {
    let mut watched = Watched::start();
    let (holder, newcomer) = (peer(&watched.url()).await, peer(&watched.url()).await);
    let lease = holder.take("held", &bid()).await;
    watched.replicated("tenure:held");
    watched.servers[0].kill();

    let bid = Action::Acquire(bid());
    let granted = answered(&newcomer, "the new primary grants", bid).await;
    let outcome = granted.outcome;
    assert!(matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
    let Lease { owner, fence } = lease;
    let release = Action::Release(Release { owner, fence });
    let released = async || holder.try_ask("held", release.clone()).await.ok();
    let released = eventually_async("and lets go", released).await;
    assert_eq!(released.outcome, Outcome::Released);
    assert_eq!(watched.primary(), watched.servers[1].port());
}

#[tokio::test]
async fn a_waiter_is_told_to_ask_again_after_a_failover_and_then_gets_in() {
    for options in ["", "?protocol=resp2"] {
        let mut watched = Watched::start();
        let url = watched.url_with("", options);
        let (holder, waiter) = (peer(&url).await, peer(&url).await);
        let lease = holder.take("lock", &bid()).await;
        let next = bid();
        waiter.queue("lock", &next).await;
        watched.replicated("tenure:lock");
        watched.fail_over();

        let missed = async || (waiter.mailbox.missed() > 0).then_some(());
        eventually_async("the waiter is told", missed).await;
        let again = Action::Acquire(waiter.waiting(&next));
        let place = answered(&waiter, "it keeps its place", again).await;
        assert!(matches!(place.outcome, Outcome::Queued { .. }), "{place:?}");
        let Lease { owner, fence } = lease;
        answered(
            &holder,
            "released",
            Action::Release(Release { owner, fence }),
        )
        .await;
        let grant = waiter.is_told(next.owner).await;
        assert!(grant.fence > lease.fence);
    }
}

#[tokio::test]
async fn a_primary_that_was_replaced_while_it_stood_still_grants_nothing() {
    let watched = Watched::start();
    let peer = peer(&watched.url_with("", "?call_timeout=1s")).await;
    peer.take("before", &bid()).await;
    watched.servers[0].stop();
    watched.promoted();
    watched.servers[0].resume();

    let granted = answered(&peer, "somebody grants", Action::Acquire(bid())).await;
    assert!(
        matches!(granted.outcome, Outcome::Granted(_)),
        "{granted:?}"
    );
    assert_eq!(watched.servers[1].command(&["EXISTS", "tenure:lock"]), "1");
}

#[tokio::test]
async fn one_dead_and_one_hung_sentinel_hold_nobody_up() {
    for hang in [false, true] {
        let mut watched = Watched::start_calm();
        if hang {
            watched.sentinels[0].stop();
        } else {
            watched.sentinels[0].kill();
        }
        let peer = peer(&watched.url()).await;
        let lease = peer.take("lock", &bid()).await;
        let renewed = peer.renew("lock", lease).await;
        assert!(matches!(renewed, Outcome::Renewed { .. }), "{renewed:?}");
        assert_eq!(peer.release("lock", lease).await, Outcome::Released);
        // Before it is killed.
        watched.sentinels[0].resume_if_stopped();
    }
}

#[tokio::test]
async fn without_a_majority_nothing_is_granted_and_holds_end() {
    let mut watched = Watched::start_calm();
    let url = watched.url_with("", "?max_ttl=2s&call_timeout=1s");
    let peer = peer(&url).await;
    let ttl = Duration::from_secs(2);
    let mut short = bid();
    short.ttl = Ttl::new(ttl).expect("long enough");
    let lease = peer.take("lock", &short).await;
    watched.sentinels[0].kill();
    watched.sentinels[1].kill();

    let mut next = bid();
    next.ttl = short.ttl;
    let refused = peer.try_ask("other", Action::Acquire(next)).await;
    let error = refused.expect_err("one of three is no majority");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("1 of the 2"), "{error}");
    // The primary itself goes on renewing: what counts ends all the same.
    let mut last = ttl;
    let ended = async || match peer.try_ask("lock", lasting(lease, ttl)).await {
        Ok(Reply { now, outcome }) => {
            let Outcome::Renewed { expiry } = outcome else {
                panic!("the primary knows the hold: {outcome:?}");
            };
            let left = expiry.since(now);
            assert!(
                left <= last + Duration::from_millis(50),
                "{left:?} {last:?}"
            );
            last = left;
            None
        }
        Err(error) => Some(error),
    };
    let error = eventually_async("the hold cannot be relied upon any more", ended).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(last < ttl, "{last:?}");
}

#[tokio::test]
async fn a_sentinel_that_names_another_server_is_outvoted() {
    let stranger = RedisServer::start();
    let liar = Sentinel::start(&stranger);
    let watched = Watched::start_calm();
    let honest = &watched.sentinels;
    let url = format!(
        "redis+sentinel://{},{},{}/{SERVICE}?recovery=off",
        liar.address(),
        honest[0].address(),
        honest[1].address()
    );
    let peer = peer(&url).await;
    peer.take("lock", &bid()).await;
    assert_eq!(stranger.command(&["EXISTS", "tenure:lock"]), "0");
    assert_eq!(watched.servers[0].command(&["EXISTS", "tenure:lock"]), "1");
}

#[tokio::test]
async fn a_lonely_liar_is_not_believed() {
    let stranger = RedisServer::start();
    let liar = Sentinel::start(&stranger);
    let mut watched = Watched::start_calm();
    let hosts: Vec<_> = watched.sentinels.iter().map(Sentinel::address).collect();
    let url = format!(
        "redis+sentinel://{},{}/{SERVICE}?call_timeout=1s&recovery=off",
        liar.address(),
        hosts[..2].join(",")
    );
    watched.sentinels[0].kill();
    watched.sentinels[1].kill();
    let peer = peer(&url).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("nobody confirms the stranger");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn a_replica_that_is_named_by_mistake_is_passed_over() {
    let watched = Watched::start_calm();
    let wrong = FakeSentinel::start(Says::naming(&watched.servers[1])).await;
    let error = refusal(&format!("redis+sentinel://{}/{SERVICE}", wrong.address())).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("not a primary"), "{error}");

    let right = watched.sentinels[0].address();
    store(&format!(
        "redis+sentinel://{},{right}/{SERVICE}",
        wrong.address()
    ))
    .await;
}

#[tokio::test]
async fn a_vote_for_a_failover_counts_until_that_is_surely_over() {
    let server = RedisServer::start();
    let mut fakes = Vec::new();
    for id in ["one", "two", "three"] {
        let says = Says {
            id: id.to_owned(),
            vote_epoch: 7,
            config_epoch: 6,
            failover_timeout: Duration::from_millis(300),
            ..Says::naming(&server)
        };
        fakes.push(FakeSentinel::start(says).await);
    }
    let hosts: Vec<_> = fakes.iter().map(FakeSentinel::address).collect();
    let peer = peer(&format!(
        "redis+sentinel://{}/{SERVICE}?recovery=off",
        hosts.join(",")
    ))
    .await;
    let bid = Action::Acquire(bid());
    let error = peer.try_ask("lock", bid.clone()).await.expect_err("voted");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(
        error.to_string().contains("voted for a failover"),
        "{error}"
    );
    let granted = answered(&peer, "the failover was given up", bid).await;
    assert!(
        matches!(granted.outcome, Outcome::Granted(_)),
        "{granted:?}"
    );
}

#[tokio::test]
async fn an_announced_primary_is_looked_for_without_a_request() {
    let (before, after) = (RedisServer::start(), RedisServer::start());
    let sentinel = FakeSentinel::start(Says::naming(&before)).await;
    let peer = peer(&format!(
        "redis+sentinel://{}/{SERVICE}",
        sentinel.address()
    ))
    .await;
    // One connection to ask on, one to listen on.
    let listens = async || (before.is_used() && sentinel.listeners() >= 2).then_some(());
    eventually_async("the client listens to the sentinel", listens).await;
    let moved = async || {
        // Said again until somebody has subscribed.
        sentinel.switch(&after);
        after.is_used().then_some(())
    };
    eventually_async("the client is at the new primary", moved).await;
    let told = async || (peer.mailbox.missed() > 0).then_some(());
    eventually_async("waiters are told to ask again", told).await;
}

#[tokio::test]
async fn when_no_sentinel_answers_that_is_said() {
    let server = RedisServer::start();
    let sentinel = FakeSentinel::start(Says::naming(&server)).await;
    let url = format!("redis+sentinel://{}/{SERVICE}", sentinel.address());
    drop(sentinel);
    let error = refusal(&url).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(
        error.to_string().contains("none of the 1 sentinels"),
        "{error}"
    );
}

#[tokio::test]
async fn a_sentinel_with_two_addresses_has_one_vote() {
    let server = RedisServer::start();
    let says = Says::naming(&server);
    let one = FakeSentinel::start(says.clone()).await;
    let same = FakeSentinel::start(says).await;
    let (one, same) = (one.address(), same.address());
    let peer = peer(&format!(
        "redis+sentinel://{one},{same}/{SERVICE}?recovery=off"
    ))
    .await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("one is not two");
    assert!(error.to_string().contains("1 of the 2"), "{error}");
}

#[tokio::test]
async fn a_url_that_names_few_of_the_sentinels_has_no_majority() {
    let watched = Watched::start_calm();
    let one = watched.sentinels[0].address();
    let peer = peer(&format!("redis+sentinel://{one}/{SERVICE}?recovery=off")).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("one of three");
    assert!(error.to_string().contains("1 of the 2"), "{error}");
    let findings = peer.store.diagnose().await.expect("it can be looked at");
    let said = |severity| {
        let of_sentinels = |finding: &&Finding| finding.subject == "sentinels";
        let mut found = findings.iter().filter(of_sentinels);
        found.any(|finding| finding.severity == severity)
    };
    assert!(
        said(Severity::Danger) && said(Severity::Warning),
        "{findings:?}"
    );
}

#[tokio::test]
async fn sentinels_and_servers_have_their_own_passwords() {
    let passwords = Passwords {
        sentinels: "sentinel-secret",
        servers: "server-secret",
    };
    let watched = Watched::start_protected(&passwords);
    let right = watched.url_with(":server-secret@", "?sentinel_pass=sentinel-secret");
    let peer = peer(&right).await;
    peer.take("lock", &bid()).await;

    for options in ["", "?sentinel_pass=wrong-guess"] {
        let error = refusal(&watched.url_with(":server-secret@", options)).await;
        assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
        assert!(error.to_string().contains("?sentinel_pass="), "{error}");
        assert!(!error.to_string().contains("wrong-guess"), "{error}");
    }
    let wrong = watched.url_with(":wrong-guess@", "?sentinel_pass=sentinel-secret");
    let error = refusal(&wrong).await;
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
    assert!(!error.to_string().contains("wrong-guess"), "{error}");
}

#[tokio::test]
async fn what_cannot_work_is_refused_with_advice() {
    let watched = Watched::start_calm();
    let unknown = watched.url().replace(SERVICE, "unheard-of");
    let error = refusal(&unknown).await;
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    assert!(error.to_string().contains("`unheard-of`"), "{error}");

    let peer = peer(&watched.url_with("", "?max_ttl=5s")).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("30 s are longer than 5 s");
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    assert!(error.to_string().contains("?max_ttl="), "{error}");
}
