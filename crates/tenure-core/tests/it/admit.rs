//! Who gets in next, as a specification.

use tenure_core::{Acquire, Mode, Outcome};

use crate::support::{
    Lock, NOT_HELD, acquire, in_mode, inbox, owner, owners, permits, queue, seconds,
};

#[test]
fn a_release_hands_over_to_the_first_in_the_queue_and_tells_it() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.queued(&queue(3), 1);
    assert_eq!(lock.release(1, first.fence), Outcome::Released);
    assert_eq!(lock.holders(), owners(&[2]));
    assert_eq!(lock.waiters(), owners(&[3]));
    let handover = &lock.pushed[0];
    assert_eq!(
        (handover.owner, &handover.inbox),
        (owner(2), &inbox(2)),
        "the push goes to the inbox of the waiter"
    );
    assert!(handover.fence > first.fence);
}

#[test]
fn a_pushed_grant_lasts_for_its_claim_window_only_until_it_is_renewed() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.release(1, first.fence);
    let pushed = lock.pushed[0].clone();
    assert_eq!(pushed.expiry, lock.now.plus(seconds(3)));
    lock.pass(seconds(1));
    let expiry = lock.now.plus(seconds(10));
    assert_eq!(
        lock.renew(2, pushed.fence, 10),
        Outcome::Renewed { expiry },
        "claimed: from now on it lasts for its ttl"
    );
}

#[test]
fn a_grant_that_is_not_claimed_passes_on() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.queued(&queue(3), 1);
    lock.release(1, first.fence);
    let unclaimed = lock.pushed[0].fence;
    lock.pass(seconds(3));
    assert_eq!(lock.renew(2, unclaimed, 10), NOT_HELD);
    assert_eq!(lock.told(), owners(&[3]));
}

#[test]
fn a_lost_push_is_made_good_by_asking_again() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.release(1, first.fence);
    let pushed = lock.pushed[0].clone();
    lock.pass(seconds(2));
    let grant = lock.granted(&queue(2));
    assert_eq!((grant.fence, grant.expiry), (pushed.fence, pushed.expiry));
}

#[test]
fn adjacent_readers_get_in_together_and_a_writer_waits_for_all_of_them() {
    let mut lock = Lock::new();
    let writer = lock.granted(&acquire(1));
    lock.queued(&in_mode(queue(2), Mode::Shared), 0);
    lock.queued(&in_mode(queue(3), Mode::Shared), 1);
    lock.queued(&queue(4), 2);
    lock.queued(&in_mode(queue(5), Mode::Shared), 3);
    lock.release(1, writer.fence);
    assert_eq!(lock.told(), owners(&[2, 3]));
    assert_eq!(lock.waiters(), owners(&[4, 5]));
}

#[test]
fn a_big_request_for_permits_is_not_starved_by_small_ones() {
    let mut lock = Lock::new();
    let first = lock.granted(&in_mode(acquire(1), permits(1, 3)));
    lock.queued(&in_mode(queue(2), permits(3, 3)), 0);
    lock.queued(&in_mode(queue(3), permits(1, 3)), 1);
    assert!(lock.pushed.is_empty());
    lock.release(1, first.fence);
    assert_eq!(lock.told(), owners(&[2]));
}

#[test]
fn a_waiter_that_cannot_be_reached_is_passed_over_but_keeps_its_place() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.queued(&queue(3), 1);
    lock.seen.unreachable.insert(inbox(2));
    lock.release(1, first.fence);
    assert_eq!(lock.told(), owners(&[3]));
    let second = lock.pushed[0].fence;
    lock.seen.unreachable.clear();
    lock.release(3, second);
    assert_eq!(lock.told(), owners(&[2]));
}

#[test]
fn a_waiter_that_cannot_be_reached_gets_in_by_asking() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.seen.unreachable.insert(inbox(2));
    lock.release(1, first.fence);
    assert!(lock.holders().is_empty());
    lock.granted(&queue(2));
}

#[test]
fn a_hold_ends_with_the_process_that_it_is_tied_to() {
    let mut lock = Lock::new();
    let anchor = Some(inbox(1));
    lock.granted(&Acquire {
        anchor,
        ..acquire(1)
    });
    lock.seen.dead.insert(inbox(1));
    lock.granted(&acquire(2));
    assert_eq!(lock.holders(), owners(&[2]));
}

#[test]
fn a_waiter_whose_process_is_dead_is_never_let_in() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    let anchor = Some(inbox(2));
    lock.queued(&Acquire { anchor, ..queue(2) }, 0);
    lock.queued(&queue(3), 1);
    // The store sees the death of the process, though its inbox still seems to be there.
    lock.seen.dead.insert(inbox(2));
    lock.release(1, first.fence);
    assert_eq!(lock.told(), owners(&[3]));
    assert!(lock.waiters().is_empty());
}

#[test]
fn a_waiter_that_fell_silent_is_never_let_in() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.pass(seconds(6));
    lock.release(1, first.fence);
    assert!(lock.told().is_empty());
    assert!(lock.state.is_idle());
}
