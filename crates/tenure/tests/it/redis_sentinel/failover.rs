//! Failovers during a hold, an acquire, a wait, a renewal and a release.

use super::*;

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
async fn a_renewal_during_a_failover_is_unknown_and_succeeds_when_it_is_over() {
    let watched = Watched::start();
    let peer = peer(&watched.url_with("", "?call_timeout=1s")).await;
    let lease = peer.take("lock", &bid()).await;
    watched.replicated("tenure:lock");
    watched.servers[0].stop();
    let unknown = peer.try_ask("lock", renewal(lease)).await;
    let error = unknown.expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    watched.promoted();
    let renewed = answered(&peer, "it is renewed on the new primary", renewal(lease)).await;
    assert!(
        matches!(renewed.outcome, Outcome::Renewed { .. }),
        "{renewed:?}"
    );
    // What was under way to the old one arrives there now, and means nothing.
    watched.servers[0].resume();
    let renewed = answered(&peer, "and there again", renewal(lease)).await;
    assert!(
        matches!(renewed.outcome, Outcome::Renewed { .. }),
        "{renewed:?}"
    );
    let value = watched.servers[1].command(&["GET", "tenure:lock"]);
    assert!(value.contains(&lease.owner.to_string()), "{value}");
}
