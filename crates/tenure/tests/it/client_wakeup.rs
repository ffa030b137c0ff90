//! Pushed grants: believed, claimed, lost, early, and from a clock that jumped.

use tenure::test_util::{Fault, Rule};
use tenure::{Loss, Standing};

use crate::client_world::{World, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn a_hand_over_takes_no_time_and_the_claim_is_renewed_to_the_full_ttl() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    world.store.forget_calls();
    let started = world.now();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(world.now(), started);
    assert_eq!(world.store.count("acquire"), 0, "the push was enough");
    world.pass(millis(50)).await;
    assert_eq!(world.store.count("renew"), 0, "a short hold needs none");
    world.pass(millis(100)).await;
    assert_eq!(world.store.count("renew"), 1);
    assert!(world.lasts("x").await > secs(29));
    assert!(next.remaining() > secs(29));
    world.pass(secs(120)).await;
    next.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pushed_grant_that_cannot_be_claimed_is_lost_before_its_window_ends() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    world.script(Rule::on("renew"));
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert!(next.is_valid());
    assert_eq!(next.lost().await, Loss::Expired);
    assert!(world.lasts("x").await > millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_renewal_gets_its_whole_ttl_by_push_too() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").no_renew().acquire());
    others_act().await;
    let started = world.now();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(next.lost().await, Loss::Expired);
    let held = world.now().since(started);
    assert!(held > secs(29) && held < secs(30), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pushed_grant_that_the_store_has_contradicted_since_is_not_believed() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    // It asks again, and while that is on its way the lock is handed to it and taken away again.
    world.script(
        Rule::on("acquire")
            .times(1)
            .does(Fault::Delay(millis(1000))),
    );
    world.store.announce_missed_pushes();
    others_act().await;
    let name = guard.name().clone();
    guard.release().await.unwrap();
    world.store.forget(&name).await.unwrap();
    let third = world.tenure.lock("x").acquire().await.unwrap();
    world.pass(secs(2)).await;
    others_act().await;
    assert!(!waiting.is_finished(), "it is in the queue, and knows it");
    let fence = third.fence();
    third.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().fence() > fence);
}

#[tokio::test(start_paused = true)]
async fn a_lost_push_costs_a_heartbeat_and_nothing_more() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    world.store.lose_pushes(1);
    let started = world.now();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    let waited = world.now().since(started);
    assert!(waited <= secs(5) + millis(310), "{waited:?}");
    // Only the rest of the claim window was left: it must be prolonged at once.
    world.pass(secs(120)).await;
    next.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_may_have_missed_a_push_asks_again() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    world.store.lose_pushes(1);
    guard.release().await.unwrap();
    let started = world.now();
    world.store.forget_calls();
    world.store.announce_missed_pushes();
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(world.now(), started);
    assert_eq!(world.store.count("acquire"), 1);
    world.pass(secs(120)).await;
    next.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_announcement_without_a_grant_wakes_each_waiter_once() {
    let world = World::new().await;
    let _guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    world.store.forget_calls();
    world.store.announce_missed_pushes();
    others_act().await;
    world.pass(secs(1)).await;
    assert_eq!(world.store.count("acquire"), 1);
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn a_push_may_overtake_the_reply_that_says_queued() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    world.script(
        Rule::on("acquire")
            .times(1)
            .does(Fault::DelayReply(secs(1))),
    );
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    world.store.forget_calls();
    let started = world.now();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    let waited = world.now().since(started);
    assert!(waited <= secs(1) + millis(2), "{waited:?}");
    assert_eq!(world.store.count("acquire"), 0);
    world.pass(secs(120)).await;
    next.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_push_from_a_clock_that_jumped_is_confirmed_first() {
    let world = World::with_two_clocks().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    world.store_clock.jump(secs(5));
    world.store.forget_calls();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(world.store.count("acquire"), 1, "not believed unasked");
    assert!(next.remaining() <= world.lasts("x").await);
    world.pass(secs(120)).await;
    next.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stale_push_is_not_believed() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    guard.release().await.unwrap();
    // Stopped after the push has arrived and before it was looked at, past the claim window.
    world.clock.jump(secs(20));
    let third = world.other_client().await;
    let thief = third.lock("x").try_acquire().await.unwrap();
    let thief = crate::client_world::acquired(thief);
    world.store.forget_calls();
    others_act().await;
    assert!(!waiting.is_finished());
    let asked = world.store.count("acquire");
    assert!(asked <= 1, "asked {asked} times because of one push");
    thief.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    next.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_in_when_the_lease_of_a_crashed_holder_ends() {
    let world = World::new().await;
    let dead = world.other_client().await;
    let lock = dead.lock("x").ttl(secs(8));
    let _ = lock.acquire().await.unwrap().into_lease();
    drop(dead);
    let started = world.now();
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let waited = world.now().since(started);
    assert!(
        waited >= secs(8) && waited < secs(8) + millis(100),
        "{waited:?}"
    );
    guard.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_process_is_gone_is_passed_over() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let gone = world.other_client().await;
    let mut waiting = Box::pin(gone.lock("x").acquire());
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    let other = world.other_client().await;
    let patient = tokio::spawn(other.lock("x").acquire());
    others_act().await;
    // As if the process had been killed: its future is gone, and nobody cancels for it.
    world.script(Rule::on("cancel"));
    drop(waiting);
    drop(gone);
    others_act().await;
    let started = world.now();
    guard.release().await.unwrap();
    let next = patient.await.unwrap().unwrap();
    assert!(world.now().since(started) < secs(8));
    assert!(matches!(*next.standing().borrow(), Standing::Held { .. }));
}
