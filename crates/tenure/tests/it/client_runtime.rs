//! Runtimes that end, many threads, and the system's own clock: in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tenure::{ErrorKind, Loss};
use tokio::runtime::{Builder, Runtime};

use crate::support::wait::eventually;

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn a_guard_that_outlives_its_runtime_is_not_valid_for_ever() {
    let first = runtime();
    let (tenure, guard, other) = first.block_on(async {
        let tenure = tenure::connect("memory:").await.unwrap();
        let lock = tenure.lock("x").ttl(Duration::from_millis(300));
        let guard = lock.acquire().await.unwrap();
        let other = tenure.lock("y").acquire().await.unwrap();
        (tenure, guard, other)
    });
    first.shutdown_background();
    eventually("the guard says that it is lost", || {
        (!guard.is_valid()).then_some(())
    });
    assert_eq!(guard.ensure().unwrap_err().kind(), ErrorKind::Lost);
    let second = runtime();
    second.block_on(async {
        assert_eq!(guard.lost().await, Loss::Expired);
        // No keeper: better no lock than one that nobody renews.
        let error = tenure.lock("z").acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        tenure.settle().await;
    });
    drop((guard, other, tenure));
}

#[test]
fn losing_is_noticed_even_if_the_runtime_of_the_client_ends_meanwhile() {
    let first = runtime();
    let guard = first.block_on(async {
        let tenure = tenure::connect("memory:").await.unwrap();
        let lock = tenure.lock("x").ttl(Duration::from_millis(500));
        lock.acquire().await.unwrap()
    });
    let second = runtime();
    let losing = second.spawn(async move { guard.lost().await });
    first.shutdown_background();
    assert_eq!(second.block_on(losing).unwrap(), Loss::Expired);
}

#[test]
fn dropping_everything_in_any_order_neither_panics_nor_hangs() {
    for order in 0..6 {
        let runtime = runtime();
        let (tenure, guard, waiting) = runtime.block_on(async {
            let tenure = tenure::connect("memory:").await.unwrap();
            let guard = tenure.lock("x").acquire().await.unwrap();
            let waiting = tokio::spawn(tenure.lock("x").acquire());
            (tenure, guard, waiting)
        });
        match order {
            0 => {
                drop(tenure);
                drop(guard);
                drop(waiting);
                drop(runtime);
            }
            1 => {
                drop(runtime);
                drop(tenure);
                drop(guard);
                drop(waiting);
            }
            2 => {
                drop(guard);
                drop(runtime);
                drop(tenure);
            }
            3 => {
                drop(runtime);
                drop(guard);
                drop(tenure);
            }
            4 => {
                drop(tenure);
                drop(runtime);
                drop(guard);
            }
            _ => {
                runtime.shutdown_background();
                drop((guard, tenure, waiting));
            }
        }
    }
}

#[test]
fn a_lock_excludes_many_tasks_on_many_threads() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let clients = [
            tenure::connect("memory:many-threads").await.unwrap(),
            tenure::connect("memory:many-threads").await.unwrap(),
        ];
        let (inside, rounds) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let last_fence = Arc::new(AtomicU64::new(0));
        let mut tasks = Vec::new();
        for number in 0..50 {
            let tenure = clients[number % 2].clone();
            let (inside, rounds) = (inside.clone(), rounds.clone());
            let last_fence = last_fence.clone();
            tasks.push(tokio::spawn(async move {
                for _ in 0..20 {
                    let guard = tenure.lock("x").acquire().await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    let fence = guard.fence().as_u64();
                    assert!(last_fence.swap(fence, Ordering::SeqCst) < fence);
                    tokio::task::yield_now().await;
                    rounds.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    guard.release().await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(rounds.load(Ordering::SeqCst), 1_000);
    });
}

#[test]
fn a_renewed_lease_outlives_its_ttl_by_the_systems_clock() {
    runtime().block_on(async {
        let tenure = tenure::connect("memory:").await.unwrap();
        let lock = tenure.lock("x").ttl(Duration::from_secs(4));
        let guard = lock.acquire().await.unwrap();
        let clock = tenure.clock().clone();
        let first = guard.valid_until().unwrap();
        clock.sleep(first.since(clock.now())).await;
        guard.ensure().unwrap();
        guard.release().await.unwrap();
    });
}
