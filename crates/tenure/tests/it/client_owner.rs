//! Re-entry: an owner enters its own locks again, and must leave as often.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, ErrorKind, Mode};

use crate::client_world::{World, acquired, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn an_owner_leaves_as_often_as_it_entered() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    let outer = owner.lock("x").acquire().await.unwrap();
    let inner = owner.lock("x").acquire().await.unwrap();
    let third = acquired(owner.clone().lock("x").try_acquire().await.unwrap());
    assert_eq!(world.store.count("acquire"), 1, "counted here, not there");
    assert_eq!(outer.lease(), inner.lease());
    assert_eq!(outer.lease(), third.lease());
    outer.release().await.unwrap();
    drop(third);
    world.tenure.settle().await;
    assert!(!world.is_idle("x").await);
    inner.ensure().unwrap();
    inner.release().await.unwrap();
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn two_owners_exclude_each_other() {
    let world = World::new().await;
    let (one, two) = (world.tenure.owner(), world.tenure.owner());
    let _guard = one.lock("x").acquire().await.unwrap();
    assert!(matches!(
        two.lock("x").try_acquire().await.unwrap(),
        Attempt::Busy(_)
    ));
    assert!(matches!(
        world.tenure.lock("x").try_acquire().await.unwrap(),
        Attempt::Busy(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_writer_may_read_and_a_reader_that_wants_to_write_is_refused() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    let writer = owner.rwlock("doc").write().acquire().await.unwrap();
    let reader = owner.rwlock("doc").read().acquire().await.unwrap();
    assert_eq!(writer.fence(), reader.fence());
    drop((writer, reader));
    world.tenure.settle().await;

    let reader = owner.rwlock("doc").read().acquire().await.unwrap();
    let started = world.now();
    let error = owner.rwlock("doc").write().acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(world.now(), started);
    let error = owner.rwlock("doc").write().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    reader.ensure().unwrap();
}

/// What renews at the same time would have a store that forgot take it back as a shared one.
#[tokio::test]
async fn a_downgrade_that_is_refused_is_not_shared_for_a_moment() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    let outer = owner.rwlock("x").write().acquire().await.unwrap();
    let inner = owner.rwlock("x").write().acquire().await.unwrap();
    let refused = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut looks = std::iter::from_fn(|| {
                let done = refused.load(Ordering::Acquire);
                (!done).then(|| inner.mode())
            });
            looks.all(|mode| mode == Mode::Exclusive)
        });
        for _ in 0..20_000 {
            let error = outer.downgrade().now_or_never().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
        }
        refused.store(true, Ordering::Release);
        assert!(looking.join().unwrap(), "shared for a moment");
    });
}

#[tokio::test(start_paused = true)]
async fn nobody_downgrades_what_another_guard_writes_under() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    let outer = owner.rwlock("doc").write().acquire().await.unwrap();
    let inner = owner.rwlock("doc").read().acquire().await.unwrap();
    let error = inner.downgrade().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(outer.mode(), Mode::Exclusive);
    drop(inner);
    outer.downgrade().await.unwrap();
    assert_eq!(outer.mode(), Mode::Shared);
    // Now it is a reader, and enters again as such only.
    let _again = owner.rwlock("doc").read().acquire().await.unwrap();
    let error = owner.rwlock("doc").write().acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test(start_paused = true)]
async fn nobody_leaves_behind_what_another_guard_relies_on() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    let outer = owner.lock("x").acquire().await.unwrap();
    let inner = owner.lock("x").acquire().await.unwrap();
    let error = inner.leave_for(millis(100)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    world.pass(secs(60)).await;
    outer.ensure().unwrap();
    assert!(world.lasts("x").await > outer.remaining());

    // Handed on by one guard: kept for the other, and not released by it.
    let inner = owner.lock("x").acquire().await.unwrap();
    let lease = inner.into_lease();
    world.pass(secs(60)).await;
    outer.ensure().unwrap();
    outer.release().await.unwrap();
    world.tenure.settle().await;
    assert!(!world.is_idle("x").await);
    world.tenure.release_lease("x", lease).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_expired_hold_is_not_entered_again() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    let old = owner.lock("x").acquire().await.unwrap();
    world.clock.jump(secs(31));
    let new = owner.lock("x").acquire().await.unwrap();
    assert!(new.is_valid() && !old.is_valid());
    assert!(new.fence() > old.fence());
    assert_eq!(old.release().await.unwrap_err().kind(), ErrorKind::Lost);
    world.tenure.settle().await;
    new.ensure().unwrap();
    new.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_guard_of_a_lost_hold_is_told_when_it_is_released() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    let outer = owner.lock("x").acquire().await.unwrap();
    let inner = owner.lock("x").acquire().await.unwrap();
    world.clock.jump(secs(31));
    assert_eq!(inner.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(outer.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test(start_paused = true)]
async fn trying_and_bounded_waits_do_not_wait_for_another_task_of_the_same_owner() {
    let world = World::new().await;
    let _holder = world
        .tenure
        .lock("x")
        .label("night shift")
        .acquire()
        .await
        .unwrap();
    let owner = world.tenure.owner();
    let patient = tokio::spawn(owner.lock("x").acquire());
    others_act().await;
    let started = world.now();
    let Attempt::Busy(blocked) = owner.lock("x").try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    assert_eq!(blocked.contention.holders[0].party.label(), "night shift");
    assert_eq!(world.now(), started);
    let error = owner.lock("x").wait(secs(2)).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert_eq!(world.now().since(started), secs(2));
    let error = owner
        .lock("x")
        .wait(std::time::Duration::ZERO)
        .acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    patient.abort();
}

#[tokio::test(start_paused = true)]
async fn tasks_of_one_owner_that_come_together_share_one_hold() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    world.script(Rule::on("acquire").does(Fault::DelayReply(secs(1))));
    let tasks: Vec<_> = (0..10)
        .map(|_| tokio::spawn(owner.lock("x").wait(secs(5)).acquire()))
        .collect();
    let mut guards = Vec::new();
    for task in tasks {
        guards.push(task.await.unwrap().unwrap());
    }
    assert_eq!(world.store.count("acquire"), 1);
    assert!(
        guards
            .iter()
            .all(|guard| guard.lease() == guards[0].lease())
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_can_have_many_names() {
    let world = World::new().await;
    let owner = world.tenure.owner();
    let mut guards = Vec::new();
    for number in 0..300 {
        let lock = owner.lock(format!("name-{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    for guard in &guards {
        let lock = owner.lock(guard.name().as_str());
        let again = acquired(lock.try_acquire().await.unwrap());
        assert_eq!(again.lease(), guard.lease());
    }
    assert_eq!(world.store.count("acquire"), 300);
    drop(guards);
    world.tenure.settle().await;
    assert!(world.tenure.list("").await.unwrap().locks.is_empty());
}
