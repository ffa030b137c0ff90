//! Cancel, as a specification.

use tenure_core::{Outcome, Removed};

use crate::support::{Lock, acquire, in_mode, owners, permits, queue};

#[test]
fn a_waiter_leaves_the_queue() {
    let mut lock = Lock::new();
    lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    assert_eq!(lock.cancel(2), Outcome::Cancelled(Removed::Waiter));
    assert!(lock.waiters().is_empty());
}

#[test]
fn the_grant_that_raced_with_the_cancellation_goes_to_the_next() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.queued(&queue(3), 1);
    lock.release(1, first.fence);
    assert_eq!(lock.holders(), owners(&[2]));
    assert_eq!(lock.cancel(2), Outcome::Cancelled(Removed::Grant));
    assert_eq!(lock.holders(), owners(&[3]));
    assert_eq!(lock.told(), owners(&[3]));
}

#[test]
fn cancelling_nothing_is_fine() {
    let mut lock = Lock::new();
    assert_eq!(lock.cancel(1), Outcome::Cancelled(Removed::Nothing));
}

#[test]
fn a_big_waiter_that_leaves_lets_the_small_one_behind_it_in() {
    let mut lock = Lock::new();
    lock.granted(&in_mode(acquire(1), permits(1, 2)));
    lock.queued(&in_mode(queue(2), permits(2, 2)), 0);
    lock.queued(&in_mode(queue(3), permits(1, 2)), 1);
    lock.cancel(2);
    assert_eq!(lock.told(), owners(&[3]));
}
