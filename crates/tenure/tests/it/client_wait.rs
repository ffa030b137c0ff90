//! Waiting for a lock that others have: trying, bounded waits, many waiters, who comes next.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{Attempt, ErrorKind, Mode, WaitReport};
use tokio::sync::watch;

use crate::client_world::{World, acquired, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn trying_never_waits_and_says_who_is_in_the_way() {
    let world = World::new().await;
    let holder = world.tenure.lock("x").label("the holder");
    let guard = holder.acquire().await.unwrap();
    world.pass(secs(7)).await;
    let started = world.now();
    let other = world.other_client().await;
    let Attempt::Busy(blocked) = other.lock("x").try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    assert_eq!(world.now(), started);
    let holder = &blocked.contention.holders[0];
    assert_eq!(holder.party.label(), "the holder");
    assert_eq!(holder.fence, Some(guard.fence()));
    assert_eq!(blocked.held_for(holder), Some(secs(7)));
    assert!(blocked.expires_in(holder).unwrap() <= secs(30));
    let (_, snapshot) = world.peek("x").await;
    assert!(snapshot.waiters.is_empty(), "trying leaves no trace");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_runs_out_names_the_holder() {
    let world = World::new().await;
    let _guard = world
        .tenure
        .lock("x")
        .label("night shift")
        .acquire()
        .await
        .unwrap();
    let other = world.other_client().await;
    for wait in [Duration::ZERO, millis(1), millis(500), secs(20)] {
        let started = world.now();
        let error = other.lock("x").wait(wait).acquire().await.unwrap_err();
        let waited = world.now().since(started);
        assert!(waited >= wait && waited <= wait + millis(2), "{waited:?}");
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("night shift"), "{error}");
    }
    other.settle().await;
    let (_, snapshot) = world.peek("x").await;
    assert!(snapshot.waiters.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_local_waiter_behind_another_is_told_busy_too() {
    let world = World::new().await;
    let _guard = world
        .tenure
        .lock("x")
        .label("night shift")
        .acquire()
        .await
        .unwrap();
    let first = tokio::spawn(world.tenure.lock("x").acquire());
    others_act().await;
    let second = world.tenure.lock("x").wait(secs(1));
    let error = second.acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("night shift"), "{error}");
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn a_wait_can_be_followed() {
    let world = World::new().await;
    let _guard = world
        .tenure
        .lock("x")
        .label("night shift")
        .acquire()
        .await
        .unwrap();
    let other = world.other_client().await;
    let report = watch::Sender::<WaitReport>::default();
    let mut reports = report.subscribe();
    let waiting = tokio::spawn(other.lock("x").report_to(report).acquire());
    let seen = reports
        .wait_for(|report| report.blocked.is_some())
        .await
        .unwrap();
    let blocked = seen.blocked.as_ref().unwrap();
    assert_eq!(blocked.ahead, Some(0));
    assert_eq!(blocked.contention.holders[0].party.label(), "night shift");
    drop(seen);
    world.script(tenure::test_util::Rule::on("acquire"));
    let seen = reports
        .wait_for(|report| report.silence.is_some())
        .await
        .unwrap();
    assert!(seen.blocked.is_some(), "the last answer is kept");
    drop(seen);
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn a_thousand_local_waiters_are_one_to_the_store_and_are_served_in_order() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..1_000 {
        let lock = world.tenure.lock("x").local_handover(false);
        let order = order.clone();
        tasks.push(tokio::spawn(async move {
            let guard = lock.acquire().await.unwrap();
            order.lock().unwrap().push((number, guard.fence()));
            // Long enough for the next in line to queue up.
            others_act().await;
            guard.release().await.unwrap();
        }));
        tokio::task::yield_now().await;
    }
    others_act().await;
    let (_, snapshot) = world.peek("x").await;
    assert_eq!(snapshot.waiters.len(), 1);
    world.store.forget_calls();
    world.pass(secs(60)).await;
    let asked = world.store.count("acquire");
    assert!(asked <= 20, "{asked} questions while waiting for a minute");

    world.store.forget_calls();
    let pushes = world.store.pushes();
    guard.release().await.unwrap();
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock().unwrap();
    assert!(
        order.iter().map(|(number, _)| *number).eq(0..1_000),
        "in order"
    );
    assert!(order.is_sorted_by(|a, b| a.1 < b.1), "fences grow");
    // A hand-over is one release, one push, and the question of whoever is next in line.
    assert_eq!(world.store.count("release"), 1_001);
    assert_eq!(world.store.pushes() - pushes, 1_000);
    assert!(world.store.count("acquire") <= 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_with_one_lock_never_share_a_lease() {
    let world = World::new().await;
    let lock = world.tenure.lock("x");
    let tasks: Vec<_> = (0..1_000)
        .map(|_| {
            tokio::spawn(lock.clone().run(async |guard| {
                tokio::task::yield_now().await;
                guard.lease()
            }))
        })
        .collect();
    let mut owners = HashSet::new();
    let mut fences = HashSet::new();
    for task in tasks {
        let lease = task.await.unwrap().unwrap();
        assert!(owners.insert(lease.owner) && fences.insert(lease.fence));
    }
    assert_eq!(owners.len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn clients_are_served_in_order() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..20 {
        let (client, order) = (world.other_client().await, order.clone());
        tasks.push(tokio::spawn(async move {
            let guard = client.lock("x").acquire().await.unwrap();
            order.lock().unwrap().push(number);
            guard.release().await.unwrap();
        }));
        others_act().await;
    }
    guard.release().await.unwrap();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(order.lock().unwrap().iter().copied().eq(0..20));
}

#[tokio::test(start_paused = true)]
async fn readers_share_and_a_waiting_writer_is_not_starved() {
    let world = World::new().await;
    let rwlock = world.tenure.rwlock("doc");
    let first = rwlock.read().acquire().await.unwrap();
    let second = acquired(rwlock.read().try_acquire().await.unwrap());
    let other = world.other_client().await;
    let writing = tokio::spawn(other.rwlock("doc").write().acquire());
    others_act().await;
    // Whoever wants to read now comes after the writer.
    assert!(matches!(
        rwlock.read().try_acquire().await.unwrap(),
        Attempt::Busy(_)
    ));
    drop((first, second));
    let writer = writing.await.unwrap().unwrap();
    assert_eq!(writer.mode(), Mode::Exclusive);
}

#[tokio::test(start_paused = true)]
async fn a_dead_reader_holds_the_writer_up_for_its_own_lease_only() {
    let world = World::new().await;
    let dead = world.other_client().await;
    let lock = dead.rwlock("doc").read().ttl(secs(10));
    let _ = lock.acquire().await.unwrap().into_lease();
    let reader = world
        .tenure
        .rwlock("doc")
        .read()
        .ttl(secs(60))
        .acquire()
        .await
        .unwrap();
    world.pass(secs(30)).await;
    let (_, snapshot) = world.peek("doc").await;
    assert_eq!(
        snapshot.holders.len(),
        1,
        "the living reader renews only its own"
    );
    let started = world.now();
    let writing = tokio::spawn(dead.rwlock("doc").write().acquire());
    world.pass(secs(1)).await;
    reader.release().await.unwrap();
    let _writer = writing.await.unwrap().unwrap();
    assert!(world.now().since(started) < secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_semaphore_counts_without_the_dead() {
    let world = World::new().await;
    let dead = world.other_client().await;
    for _ in 0..2 {
        let lock = dead.semaphore("gpu", 3).ttl(secs(5));
        let _ = lock.acquire().await.unwrap().into_lease();
    }
    let semaphore = world.tenure.semaphore("gpu", 3);
    let _one = semaphore.clone().acquire().await.unwrap();
    let full = semaphore.clone().try_acquire().await.unwrap();
    assert!(matches!(full, Attempt::Busy(_)));
    let started = world.now();
    let two = semaphore.clone().permits(2).acquire().await.unwrap();
    let waited = world.now().since(started);
    assert!(waited >= secs(5) && waited < secs(6), "{waited:?}");
    let full = semaphore.clone().try_acquire().await.unwrap();
    assert!(matches!(full, Attempt::Busy(_)), "3 of 3 are taken");
    drop(two);
    world.tenure.settle().await;
    let next = acquired(semaphore.try_acquire().await.unwrap());
    next.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_name_in_use_as_something_else_is_a_conflict() {
    let world = World::new().await;
    let _guard = world.tenure.lock("x").acquire().await.unwrap();
    for lock in [
        world.tenure.semaphore("x", 2),
        world.tenure.semaphore("x", 3),
    ] {
        for error in [
            lock.clone().acquire().await.unwrap_err(),
            lock.try_acquire().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert!(error.to_string().contains("a lock"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_pushed_is_relied_upon_for_its_ttl_at_most() {
    let world = World::new().await;
    let lock = || {
        let lock = world.tenure.lock("x").local_handover(false);
        lock.ttl(secs(1))
    };
    let first = lock().acquire().await.unwrap();
    let next = tokio::spawn(lock().acquire());
    others_act().await;
    first.release().await.unwrap();
    let second = next.await.unwrap().unwrap();
    // The store keeps it for the claim window, but a server that forgets waits for ttls only.
    assert!(second.remaining() <= secs(1), "{:?}", second.remaining());
}
