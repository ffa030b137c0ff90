//! Release and force-release, as a specification.

use tenure_core::Outcome;

use crate::support::{Lock, NOT_HELD, acquire, owners, queue, seconds};

#[test]
fn a_released_lock_is_free() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    assert_eq!(lock.release(1, grant.fence), Outcome::Released);
    lock.granted(&acquire(2));
}

#[test]
fn a_second_release_changes_nothing() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.release(1, grant.fence);
    lock.granted(&acquire(2));
    assert_eq!(lock.release(1, grant.fence), NOT_HELD);
    assert_eq!(lock.holders(), owners(&[2]));
}

#[test]
fn a_late_release_does_not_end_a_later_hold_of_the_same_owner() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.pass(seconds(10));
    let second = lock.granted(&acquire(1));
    assert_eq!(lock.release(1, first.fence), NOT_HELD);
    assert_eq!(lock.release(1, second.fence), Outcome::Released);
}

#[test]
fn a_stranger_cannot_release() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    assert_eq!(lock.release(2, grant.fence), NOT_HELD);
    assert_eq!(lock.holders(), owners(&[1]));
}

#[test]
fn releasing_what_has_expired_tells_so() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.pass(seconds(10));
    assert_eq!(lock.release(1, grant.fence), NOT_HELD);
}

#[test]
fn a_hold_that_was_ended_by_force_passes_on_and_its_holder_is_told_why() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    assert_eq!(lock.force(1, grant.fence, "stuck"), Outcome::Released);
    assert_eq!(lock.told(), owners(&[2]));
    let Outcome::NotHeld { forced } = lock.renew(1, grant.fence, 10) else {
        panic!("renewed a hold that was ended");
    };
    let forced = forced.expect("the holder is told");
    assert_eq!(forced.reason, "stuck");
    assert_eq!(forced.by.who(), "operator@desk");
}

#[test]
fn force_needs_the_right_fence() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.pass(seconds(10));
    let second = lock.granted(&acquire(1));
    assert_eq!(lock.force(1, first.fence, "stuck"), NOT_HELD);
    assert_eq!(lock.holders(), owners(&[1]));
    assert_eq!(
        lock.release(1, second.fence),
        Outcome::Released,
        "a hold that was not ended by force is not said to be"
    );
    assert_eq!(lock.release(1, second.fence), NOT_HELD);
}
