//! A store that fails, hangs or answers slowly: waits end on time and say why.

use std::time::Duration;

use tenure::test_util::{Fault, Rule};
use tenure::{ErrorKind, Retry};

use crate::client_world::{World, acquired, millis, secs};

#[tokio::test(start_paused = true)]
async fn a_wait_ends_on_time_and_does_not_call_an_outage_busy() {
    let faults = [
        Fault::Fail,
        Fault::Hang,
        Fault::LoseReply,
        Fault::Delay(secs(3)),
        Fault::DelayReply(secs(3)),
    ];
    for fault in faults {
        for wait in [Duration::from_nanos(1), millis(1), millis(500), secs(10)] {
            let world = World::new().await;
            world.script(Rule::on_everything().does(fault));
            let started = world.now();
            let lock = world.tenure.lock("x").wait(wait);
            let error = lock.acquire().await.unwrap_err();
            let waited = world.now().since(started);
            assert!(
                waited >= wait && waited <= wait + millis(2),
                "{fault:?}: {waited:?} instead of {wait:?}"
            );
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}: {error}");
            assert_eq!(error.retry(), Retry::Later);
            // What the store may have done for us is undone as soon as it is back.
            world.store.resume().await;
            world.tenure.settle().await;
            assert!(world.is_idle("x").await, "{fault:?}, {wait:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn several_locks_at_once_share_one_wait() {
    let world = World::new().await;
    world.script(Rule::on("acquire").of("b").does(Fault::Hang));
    let started = world.now();
    let all = world.tenure.all(["a", "b", "c"]).wait(secs(5));
    let error = all.acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(world.now().since(started) <= secs(5) + millis(2));
    world.store.resume().await;
    world.tenure.settle().await;
    assert!(world.tenure.list("").await.unwrap().locks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_local_waiter_behind_another_is_told_about_the_outage_too() {
    let world = World::new().await;
    world.script(Rule::on_everything());
    let first = tokio::spawn(world.tenure.lock("x").acquire());
    world.pass(secs(1)).await;
    let error = world
        .tenure
        .lock("x")
        .wait(secs(5))
        .acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("as scripted"), "{error}");
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn trying_ends_within_the_limit_of_a_call() {
    let world = World::new().await;
    world.script(Rule::on_everything().does(Fault::Hang));
    for wait in [None, Some(Duration::ZERO)] {
        let started = world.now();
        let lock = world.tenure.lock("x");
        let error = match wait {
            None => lock.try_acquire().await.unwrap_err(),
            Some(wait) => lock.wait(wait).acquire().await.unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(world.now().since(started) <= secs(2) + millis(2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_sits_out_an_outage() {
    let world = World::new().await;
    let holder = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    let waiting = tokio::spawn(other.lock("x").acquire());
    world.pass(secs(1)).await;
    world.script(Rule::on_everything().does(Fault::Hang));
    drop(holder);
    world.pass(secs(600)).await;
    assert!(!waiting.is_finished());
    world.store.resume().await;
    let guard = waiting.await.unwrap().unwrap();
    world.pass(secs(100)).await;
    guard.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_too_slow_for_the_ttl_is_named_as_the_problem() {
    let world = World::new().await;
    world.script(Rule::on_everything().does(Fault::DelayReply(millis(90))));
    let lock = world.tenure.lock("x").ttl(millis(100));
    let error = lock.clone().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("too slowly"), "{error}");
    world.tenure.settle().await;
    let error = lock.wait(secs(5)).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("too slowly"), "{error}");
    world.store.behave();
    world.tenure.settle().await;
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_reply_is_lost_is_recognised_when_asked_again() {
    let world = World::new().await;
    world.script(Rule::on("acquire").times(3).does(Fault::LoseReply));
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    assert_eq!(world.store.count("acquire"), 4);
    let (_, snapshot) = world.peek("x").await;
    assert_eq!(snapshot.holders.len(), 1);
    let last = guard.fence().last_of_grant(guard.mode());
    assert_eq!(snapshot.last_fence, last, "granted once");
}

#[tokio::test(start_paused = true)]
async fn a_grant_recognised_late_is_prolonged_at_once() {
    let world = World::new().await;
    // Granted at once, heard of 1.5 s before it ends.
    world.script(Rule::on("acquire").times(1).does(Fault::LoseReply));
    world.script(Rule::on("acquire").does(Fault::Fail));
    let acquiring = tokio::spawn(world.tenure.lock("x").acquire());
    world.pass(millis(28_500)).await;
    world.store.behave();
    let guard = acquiring.await.unwrap().unwrap();
    world.pass(secs(60)).await;
    guard.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_its_cancellation_takes_nothing() {
    let world = World::new().await;
    // The first answer tells the client what time it is at the store.
    world.tenure.inspect("x").await.unwrap();
    world.script(Rule::on("acquire").times(1).does(Fault::Hang));
    let lock = world.tenure.lock("x").wait(secs(5));
    world.script(Rule::on("acquire"));
    lock.acquire().await.unwrap_err();
    world.tenure.settle().await;
    // The server carries out now what it has kept since before the cancellation.
    world.store.resume().await;
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn the_very_first_request_takes_nothing_late_either() {
    let world = World::new().await;
    // Nothing is known of the store's clock yet, so the request cannot say until when it counts.
    world.script(Rule::on("acquire").does(Fault::Hang));
    let lock = world.tenure.lock("x").wait(secs(1));
    lock.acquire().await.unwrap_err();
    while world.store.count("cancel") == 0 {
        world.pass(millis(1)).await;
    }
    world.store.resume().await;
    assert!(
        !world.is_idle("x").await,
        "carried out after its cancellation"
    );
    world.tenure.settle().await;
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn what_the_store_refuses_for_good_is_not_repeated() {
    let world = World::new().await;
    world.script(Rule::on("acquire").does(Fault::Refuse));
    let error = world.tenure.lock("x").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert_eq!(world.store.count("acquire"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_busy_lock_is_busy_even_after_a_short_outage() {
    let world = World::new().await;
    let _holder = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    world.script(Rule::on("acquire").times(5));
    let error = other.lock("x").wait(secs(3)).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    world.tenure.settle().await;
    other.settle().await;
    let (_, snapshot) = world.peek("x").await;
    assert!(snapshot.waiters.is_empty());
    drop(_holder);
    world.tenure.settle().await;
    let next = acquired(other.lock("x").try_acquire().await.unwrap());
    next.ensure().unwrap();
}
