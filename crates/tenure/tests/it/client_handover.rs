//! Handing a hold on from task to task of one process: fast, bounded, and never unsafe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::test_util::{Fault, Rule};
use tenure::{ErrorKind, Fence, Guard, Lock, LockName, Standing, Tenure};
use tokio::task::JoinHandle;

use crate::client_world::{World, acquired, millis, others_act, secs};

/// A task that waits for the lock, and stands in line by now.
async fn waits_for(lock: Lock) -> JoinHandle<Guard> {
    let task = tokio::spawn(async move { lock.acquire().await.unwrap() });
    others_act().await;
    task
}

/// The fences of all who were let in, in order.
type Log = Arc<Mutex<Vec<Fence>>>;

/// Tasks that all want "x" and hold it for this long.
fn crowd(tenure: &Tenure, count: usize, hold: Duration, log: &Log) -> Vec<JoinHandle<()>> {
    (0..count)
        .map(|_| {
            let (tenure, log) = (tenure.clone(), log.clone());
            tokio::spawn(async move {
                let guard = tenure.lock("x").acquire().await.unwrap();
                log.lock().unwrap().push(guard.fence());
                tenure.clock().sleep(hold).await;
                guard.ensure().unwrap();
                guard.release().await.unwrap();
            })
        })
        .collect()
}

async fn all(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_task_gets_the_hold_without_a_word_to_the_store() {
    let world = World::new().await;
    let first = world.tenure.lock("x").acquire().await.unwrap();
    let (lease, standing) = (first.fence(), first.standing());
    let next = waits_for(world.tenure.lock("x")).await;
    world.store.forget_calls();
    first.release().await.unwrap();
    let second = next.await.unwrap();
    assert_eq!(
        world.store.count("release") + world.store.count("acquire"),
        0
    );
    assert_eq!(
        *standing.borrow(),
        Standing::Released,
        "the first is told that it gave it up"
    );
    assert!(second.fence() > lease);
    assert!(second.is_valid());
    let (_, snapshot) = world.peek("x").await;
    assert_eq!(snapshot.holders[0].fence, Some(lease), "the store's fence");
    assert!(
        snapshot.last_fence >= second.fence(),
        "nobody else gets that fence"
    );
    second.release().await.unwrap();
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_is_handed_on_as_well() {
    let world = World::new().await;
    let first = world.tenure.lock("x").acquire().await.unwrap();
    let next = waits_for(world.tenure.lock("x")).await;
    world.store.forget_calls();
    drop(first);
    let second = next.await.unwrap();
    world.tenure.settle().await;
    assert_eq!(world.store.count("release"), 0);
    drop(second);
    world.tenure.settle().await;
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn what_was_handed_on_is_renewed_and_released_like_any_other() {
    let world = World::new().await;
    let first = world.tenure.lock("x").ttl(secs(1)).acquire().await.unwrap();
    let next = waits_for(world.tenure.lock("x").ttl(secs(1))).await;
    first.release().await.unwrap();
    let second = next.await.unwrap();
    world.pass(secs(20)).await;
    second.ensure().unwrap();
    assert!(world.lasts("x").await > millis(500));
    let lease = second.lease();
    assert_ne!(lease.fence, second.fence());
    world
        .tenure
        .renew_lease("x", lease, tenure::Ttl::DEFAULT)
        .await
        .unwrap();
    assert_eq!(world.tenure.release_all().await.unwrap(), 1);
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn one_grant_of_the_store_serves_thirty_two_tasks_and_fences_grow() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let log = Log::default();
    log.lock().unwrap().push(guard.fence());
    let tasks = crowd(&world.tenure, 99, Duration::ZERO, &log);
    others_act().await;
    world.store.forget_calls();
    guard.release().await.unwrap();
    all(tasks).await;
    let fences = log.lock().unwrap().clone();
    assert!(fences.is_sorted_by(|one, other| one < other), "{fences:?}");
    assert_eq!(fences.len(), 100);
    // 32 + 32 + 32 + 4, and the first was granted before.
    assert_eq!(world.store.count("release"), 4);
    assert_eq!(world.store.count("acquire"), 3);
    assert_eq!(
        world.store.pushes(),
        0,
        "the release comes before the question"
    );
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn another_process_gets_its_turn_after_ten_milliseconds_at_most() {
    let world = World::new().await;
    let other = world.other_client().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let granted = world.now();
    let theirs = waits_for(other.lock("x")).await;
    let (log, hold) = (Log::default(), millis(1));
    let tasks = crowd(&world.tenure, 50, hold, &log);
    others_act().await;
    guard.release().await.unwrap();
    let theirs = theirs.await.unwrap();
    let waited = world.now().since(granted);
    assert!(waited <= millis(10) + hold * 2, "{waited:?}");
    let before = log.lock().unwrap().clone();
    assert!((5..=11).contains(&before.len()), "{}", before.len());
    let their_fence = theirs.fence();
    assert!(before.iter().all(|fence| *fence < their_fence));
    theirs.release().await.unwrap();
    all(tasks).await;
    let fences = log.lock().unwrap().clone();
    assert!(fences.is_sorted_by(|one, other| one < other), "{fences:?}");
    assert!(fences[before.len()] > their_fence);
}

#[tokio::test(start_paused = true)]
async fn behind_a_long_hold_the_first_in_line_soon_stands_in_the_stores_queue() {
    let world = World::new().await;
    let other = world.other_client().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let ours = waits_for(world.tenure.lock("x")).await;
    assert!(world.peek("x").await.1.waiters.is_empty(), "not yet");
    world.pass(millis(15)).await;
    assert_eq!(world.peek("x").await.1.waiters.len(), 1);
    let theirs = waits_for(other.lock("x")).await;
    guard.release().await.unwrap();
    let ours = ours.await.unwrap();
    assert!(!theirs.is_finished(), "it came later");
    ours.release().await.unwrap();
    theirs.await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_was_handed_a_hold_and_keeps_it_does_not_keep_the_next_from_the_queue() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let second = waits_for(world.tenure.lock("x")).await;
    let third = waits_for(world.tenure.lock("x")).await;
    guard.release().await.unwrap();
    let second = second.await.unwrap();
    world.pass(millis(15)).await;
    assert_eq!(world.peek("x").await.1.waiters.len(), 1);
    drop(second);
    third.await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_holds_that_are_alike_are_handed_on() {
    let world = World::new().await;
    let lock = || world.tenure.lock("x");
    let others: [(&str, Lock); 6] = [
        ("ttl", lock().ttl(secs(7))),
        ("label", lock().label("else")),
        ("renewal", lock().no_renew()),
        ("limit", lock().hold_at_most(secs(5))),
        ("process", lock().detached()),
        ("setting", lock().local_handover(false)),
    ];
    for (what, other) in others {
        for (first, second) in [(lock(), other.clone()), (other.clone(), lock())] {
            let first = first.acquire().await.unwrap();
            let next = waits_for(second).await;
            world.store.forget_calls();
            first.release().await.unwrap();
            let second = next.await.unwrap();
            assert_eq!(world.store.count("release"), 1, "{what}");
            assert_eq!(second.lease().fence, second.fence(), "{what}");
            second.release().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_somebody_else_may_know_or_that_was_changed_goes_back_to_the_store() {
    let world = World::new().await;
    for what in ["lease", "extended", "downgraded"] {
        let first = world.tenure.rwlock("x").write().acquire().await.unwrap();
        match what {
            "lease" => drop(first.lease().to_string()),
            "extended" => first.extend(secs(60)).await.unwrap(),
            _ => first.downgrade().await.unwrap(),
        }
        let next = waits_for(world.tenure.lock("x")).await;
        first.release().await.unwrap();
        let second = next.await.unwrap();
        assert_eq!(second.lease().fence, second.fence(), "{what}");
        second.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_behind_a_writer_waits_at_the_store_from_the_start() {
    let world = World::new().await;
    let writer = world.tenure.rwlock("x").write().acquire().await.unwrap();
    let second = waits_for(world.tenure.rwlock("x").write()).await;
    let reader = waits_for(world.tenure.rwlock("x").read()).await;
    assert!(
        world.peek("x").await.1.waiters.is_empty(),
        "not the first in line"
    );
    writer.release().await.unwrap();
    let second = second.await.unwrap();
    others_act().await;
    assert_eq!(world.peek("x").await.1.waiters.len(), 1, "now it is");
    second.downgrade().await.unwrap();
    drop(reader.await.unwrap());
}

/// Whoever was stopped must not hand on what may be somebody else's by now.
#[tokio::test(start_paused = true)]
async fn what_is_not_surely_valid_is_not_handed_on() {
    let world = World::new().await;
    let other = world.other_client().await;
    let ttl = secs(1);
    let lock = || world.tenure.lock("x").ttl(ttl);
    let first = lock().acquire().await.unwrap();
    let next = waits_for(lock()).await;
    world.clock.jump(secs(2));
    let theirs = acquired(other.lock("x").try_acquire().await.unwrap());
    drop(first);
    others_act().await;
    assert!(!next.is_finished(), "two holders");
    theirs.release().await.unwrap();
    next.await.unwrap().release().await.unwrap();
}

/// The hold is on its way to a task that is not looked at until it has ended.
#[tokio::test(start_paused = true)]
async fn what_has_ended_on_its_way_is_not_taken() {
    let world = World::new().await;
    let other = world.other_client().await;
    let lock = || world.tenure.lock("x").ttl(secs(1));
    let first = lock().acquire().await.unwrap();
    let mut next = Box::pin(lock().acquire());
    assert!(futures_util::poll!(next.as_mut()).is_pending());
    first.release().await.unwrap();
    world.clock.jump(secs(2));
    let theirs = acquired(other.lock("x").try_acquire().await.unwrap());
    assert!(
        futures_util::poll!(next.as_mut()).is_pending(),
        "two holders"
    );
    world.tenure.settle().await;
    theirs.ensure().unwrap();
    let waits = tokio::spawn(next);
    others_act().await;
    theirs.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hold_whose_renewal_is_on_its_way_is_not_handed_on() {
    let world = World::new().await;
    let lock = || world.tenure.lock("x").ttl(millis(120));
    // Granted a while ago, to a reply that was lost: it is renewed within 7 ms.
    world.script(Rule::on("acquire").times(1).does(Fault::LoseReply));
    world.script(Rule::on("renew").does(Fault::Hang));
    let first = lock().acquire().await.unwrap();
    let next = waits_for(lock()).await;
    world.pass(millis(8)).await;
    assert!(world.store.count("renew") > 0, "one is on its way");
    world.store.forget_calls();
    first.release().await.unwrap();
    drop(next.await.unwrap());
    assert_eq!(world.store.count("release"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_the_store_has_forgotten_is_lost_to_whoever_has_it_now() {
    let world = World::new().await;
    let first = world.tenure.lock("x").acquire().await.unwrap();
    let next = waits_for(world.tenure.lock("x")).await;
    world
        .store
        .forget(&LockName::new("x").unwrap())
        .await
        .unwrap();
    first.release().await.unwrap();
    let second = next.await.unwrap();
    world.pass(millis(200)).await;
    assert_eq!(
        second.ensure().unwrap_err().kind(),
        ErrorKind::Lost,
        "told soon"
    );
}

#[tokio::test(start_paused = true)]
async fn after_release_all_nothing_is_handed_on() {
    let world = World::new().await;
    let first = world.tenure.lock("x").acquire().await.unwrap();
    let next = waits_for(world.tenure.lock("x")).await;
    world.tenure.release_all().await.unwrap();
    first.release().await.unwrap();
    let second = next.await.unwrap();
    assert_eq!(second.lease().fence, second.fence());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_runs_out_behind_a_task_of_ours_is_busy() {
    let world = World::new().await;
    let lock = || world.tenure.lock("x").label("me");
    let _guard = lock().acquire().await.unwrap();
    let error = lock().wait(millis(3)).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(format!("{error:?}").contains("me"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn those_who_gave_up_are_passed_over_and_leave_nothing_behind() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    for _ in 0..500 {
        let waited = world
            .tenure
            .lock("x")
            .wait(Duration::from_micros(1))
            .acquire()
            .await;
        waited.unwrap_err();
        let mut given_up = Box::pin(world.tenure.lock("x").acquire());
        assert!(futures_util::poll!(given_up.as_mut()).is_pending());
    }
    let next = waits_for(world.tenure.lock("x")).await;
    guard.release().await.unwrap();
    next.await.unwrap().release().await.unwrap();
    world.tenure.settle().await;
    assert!(world.is_idle("x").await);
}

/// Each of those in line is dropped, after the hold was handed to it or before.
#[tokio::test(start_paused = true)]
async fn a_hold_handed_to_a_task_that_is_gone_goes_on_to_the_next() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let mut waiting: Vec<_> = (0..5)
        .map(|_| Box::pin(world.tenure.lock("x").acquire()))
        .collect();
    for wait in &mut waiting {
        assert!(futures_util::poll!(wait.as_mut()).is_pending());
    }
    world.store.forget_calls();
    let mut last = waiting.pop().unwrap();
    guard.release().await.unwrap();
    for wait in waiting {
        drop(wait);
    }
    let guard = last.as_mut().await.unwrap();
    assert_eq!(world.store.count("release"), 0, "from hand to hand");
    let again = world.tenure.lock("x").acquire();
    let mut again = Box::pin(again);
    assert!(futures_util::poll!(again.as_mut()).is_pending());
    guard.release().await.unwrap();
    drop(again);
    world.tenure.settle().await;
    assert!(
        world.is_idle("x").await,
        "and back to the store if nobody is left"
    );
}

/// On a store of any kind: many tasks of two clients, one at a time, with fences that grow; and a
/// crowd that never stops handing the lock on among itself does not keep another client out.
pub(crate) async fn takes_turns(one: &Tenure, two: &Tenure) {
    let inside = Arc::new(Mutex::new(Fence::NONE));
    let served = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for number in 0..16 {
        let tenure = if number % 2 == 0 { one } else { two }.clone();
        let (inside, served) = (inside.clone(), served.clone());
        tasks.push(tokio::spawn(async move {
            let mut turns = 0;
            while turns < 40 || !served.load(Ordering::SeqCst) {
                turns += 1;
                let guard = tenure.lock("turns").acquire().await.unwrap();
                work(&guard, &inside);
                guard.release().await.unwrap();
            }
        }));
    }
    // Not handed on within a client, so it is the store that lets it in.
    let theirs = two.lock("turns").local_handover(false).wait(secs(20));
    theirs.acquire().await.unwrap().release().await.unwrap();
    served.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    for tenure in [one, two] {
        tenure.settle().await;
        let (_, snapshot) = tenure.inspect("turns").await.unwrap();
        let idle = snapshot.holders.is_empty() && snapshot.waiters.is_empty();
        assert!(idle, "{snapshot:?}");
    }
}

/// What only one may do at a time, in the order of its fences.
fn work(guard: &Guard, last: &Mutex<Fence>) {
    let mut last = last.try_lock().expect("two holders");
    assert!(guard.fence() > *last, "{guard:?} after {last}");
    *last = guard.fence();
    std::thread::yield_now();
    guard.ensure().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clients_take_turns_in_memory() {
    let clock = Arc::new(tenure::clock::SystemClock::start().unwrap());
    let store = Arc::new(tenure::stores::memory::MemoryStore::new(clock.clone()));
    let one = Tenure::new(store.clone(), clock.clone()).await.unwrap();
    let two = Tenure::new(store, clock).await.unwrap();
    takes_turns(&one, &two).await;
}
