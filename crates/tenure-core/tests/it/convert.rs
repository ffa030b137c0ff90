//! Convert, as a specification.

use tenure_core::{Kind, Mode, Outcome};

use crate::support::{Lock, NOT_HELD, acquire, in_mode, owners, permits, queue, seconds};

#[test]
fn a_writer_becomes_a_reader_with_the_same_fence_and_expiry() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.pass(seconds(4));
    let expiry = grant.expiry;
    assert_eq!(lock.convert(1, grant.fence), Outcome::Converted { expiry });
    let holder = &lock.state.holders[0];
    assert_eq!(
        (holder.mode, holder.fence, holder.expiry),
        (Mode::Shared, grant.fence, expiry)
    );
}

#[test]
fn readers_who_wait_next_get_in_at_once() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.queued(&in_mode(queue(2), Mode::Shared), 0);
    lock.queued(&queue(3), 1);
    lock.queued(&in_mode(queue(4), Mode::Shared), 2);
    lock.convert(1, grant.fence);
    assert_eq!(lock.told(), owners(&[2]));
    assert_eq!(lock.waiters(), owners(&[3, 4]));
}

#[test]
fn a_reader_stays_a_reader() {
    let mut lock = Lock::new();
    let grant = lock.granted(&in_mode(acquire(1), Mode::Shared));
    let expiry = grant.expiry;
    assert_eq!(lock.convert(1, grant.fence), Outcome::Converted { expiry });
}

#[test]
fn permits_do_not_convert() {
    let mut lock = Lock::new();
    let grant = lock.granted(&in_mode(acquire(1), permits(2, 2)));
    let in_force = Kind::Semaphore { capacity: 2 };
    assert_eq!(lock.convert(1, grant.fence), Outcome::Conflict { in_force });
}

#[test]
fn what_has_expired_does_not_convert() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.pass(seconds(10));
    assert_eq!(lock.convert(1, grant.fence), NOT_HELD);
}
