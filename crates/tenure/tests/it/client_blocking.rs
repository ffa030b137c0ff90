//! The face without async, from plain threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tenure::ErrorKind;
use tenure::blocking::{self, Attempt};

use crate::support::wait::eventually;

#[test]
fn threads_exclude_each_other() {
    let tenure = blocking::connect("memory:").unwrap();
    let inside = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (tenure, inside) = (tenure.clone(), inside.clone());
            thread::spawn(move || {
                for _ in 0..20 {
                    let guard = tenure.acquire(tenure.client().lock("x")).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    guard.ensure().unwrap();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    guard.release().unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn trying_waiting_and_giving_back_work_as_with_async() {
    let tenure = blocking::connect("memory:").unwrap();
    let rwlock = tenure.client().rwlock("doc");
    let writer = tenure.acquire(rwlock.write()).unwrap();
    let Attempt::Busy(blocked) = tenure.try_acquire(rwlock.read()).unwrap() else {
        panic!("two holders");
    };
    assert_eq!(blocked.contention.holder_count, 1);
    let bounded = rwlock.read().wait(Duration::from_millis(50));
    let error = tenure.acquire(bounded).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    writer.extend(Duration::from_secs(60)).unwrap();
    writer.downgrade().unwrap();
    let reader = tenure.acquire(rwlock.read()).unwrap();
    drop(reader);
    writer.release().unwrap();
    let all = tenure.client().all(["a", "b"]);
    let all = tenure.block_on(all.acquire()).unwrap();
    assert_eq!(tenure.release_all().unwrap(), 2);
    assert!(!all.is_valid());
}

#[test]
fn a_dropped_guard_is_given_back_even_if_it_is_the_last_thing_left() {
    let store = "memory:blocking-last-thing";
    let observer = blocking::connect(store).unwrap();
    let tenure = blocking::connect(store).unwrap();
    let guard = tenure.acquire(tenure.client().lock("x")).unwrap();
    drop(tenure);
    drop(guard);
    let attempt = observer.try_acquire(observer.client().lock("x")).unwrap();
    assert!(matches!(attempt, Attempt::Acquired(_)));
}

#[test]
fn a_lease_is_renewed_while_its_thread_sleeps() {
    let tenure = blocking::connect("memory:").unwrap();
    let lock = tenure.client().lock("x").ttl(Duration::from_secs(6));
    let guard = tenure.acquire(lock).unwrap();
    let first = guard.valid_until().unwrap();
    eventually("its end has moved", || {
        (guard.valid_until()? > first).then_some(())
    });
    guard.ensure().unwrap();
    guard.release().unwrap();
}
