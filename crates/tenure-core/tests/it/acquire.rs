//! Acquire, as a specification.

use std::time::Duration;

use tenure_core::{Acquire, Fence, Kind, Mode, Outcome, Timestamp, Waiting};

use crate::support::{
    Lock, START, acquire, in_mode, inbox, owner, owners, permits, queue, seconds,
};

#[test]
fn a_free_lock_is_taken_for_a_full_ttl() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    assert_eq!(grant.expiry, START.plus(seconds(10)));
    assert_eq!(grant.fence.as_u64(), START.as_micros());
}

#[test]
fn asking_again_answers_the_same_grant_and_does_not_prolong_it() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.pass(seconds(4));
    assert_eq!(lock.granted(&acquire(1)), grant);
}

#[test]
fn without_waiting_a_held_lock_is_busy_and_says_who_holds_it() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    let Outcome::Busy(contention) = lock.acquire(&acquire(2)) else {
        panic!("two holders");
    };
    assert_eq!(contention.holder_count, 1);
    assert_eq!(contention.waiter_count, 0);
    assert_eq!(contention.next_expiry, Some(grant.expiry));
    let holder = &contention.holders[0];
    assert_eq!(
        (holder.owner, holder.fence),
        (Some(owner(1)), Some(grant.fence))
    );
    assert_eq!(holder.party.pid(), 1);
}

#[test]
fn a_hold_ends_at_its_expiry_and_not_before() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.pass(seconds(10) - Duration::from_micros(1));
    assert!(matches!(lock.acquire(&acquire(2)), Outcome::Busy(_)));
    lock.pass(Duration::from_micros(1));
    let second = lock.granted(&acquire(2));
    assert!(second.fence > first.fence);
    assert_eq!(lock.holders(), owners(&[2]));
}

#[test]
fn fences_grow_even_if_the_clock_steps_back_and_everything_is_released() {
    let mut lock = Lock::new();
    let first = lock.granted(&acquire(1));
    lock.release(1, first.fence);
    lock.now = Timestamp::from_micros(5);
    let second = lock.granted(&acquire(2));
    assert_eq!(
        second.fence.as_u64(),
        first.fence.as_u64() + u64::from(Fence::RANGE)
    );
}

#[test]
fn waiting_takes_a_place_and_asking_again_keeps_it() {
    let mut lock = Lock::new();
    lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.queued(&queue(3), 1);
    lock.pass(seconds(5));
    lock.queued(&queue(2), 0);
    lock.queued(&queue(3), 1);
    assert_eq!(lock.waiters(), owners(&[2, 3]));
}

#[test]
fn a_sign_of_life_keeps_the_place_for_longer_and_never_for_less() {
    let mut lock = Lock::new();
    lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.pass(seconds(4));
    lock.queued(&queue(2), 0);
    let hasty = Acquire {
        waiting: Waiting::Queue {
            inbox: inbox(2),
            alive_for: seconds(1),
        },
        ..queue(2)
    };
    lock.queued(&hasty, 0);
    lock.pass(seconds(4));
    lock.queued(&queue(3), 1);
    assert_eq!(lock.waiters(), owners(&[2, 3]));
}

#[test]
fn a_waiter_that_falls_silent_loses_its_place() {
    let mut lock = Lock::new();
    lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.pass(seconds(3));
    lock.queued(&queue(3), 1);
    lock.pass(seconds(3));
    lock.queued(&queue(3), 0);
    lock.queued(&queue(2), 1);
}

#[test]
fn a_waiter_that_asks_when_the_lock_is_free_gets_a_full_ttl_and_no_push() {
    let mut lock = Lock::new();
    lock.granted(&acquire(1));
    lock.pass(seconds(5));
    lock.queued(&queue(2), 0);
    lock.pass(seconds(5));
    let grant = lock.granted(&queue(2));
    assert_eq!(grant.expiry, lock.now.plus(seconds(10)));
    assert!(lock.pushed.is_empty());
}

#[test]
fn a_waiter_that_no_longer_wants_to_wait_gives_its_place_up() {
    let mut lock = Lock::new();
    lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    assert!(matches!(lock.acquire(&acquire(2)), Outcome::Busy(_)));
    assert!(lock.waiters().is_empty());
}

#[test]
fn nobody_overtakes_the_queue_by_not_waiting() {
    let mut lock = Lock::new();
    lock.granted(&in_mode(acquire(1), Mode::Shared));
    lock.queued(&queue(2), 0);
    let reader = in_mode(acquire(3), Mode::Shared);
    assert!(matches!(lock.acquire(&reader), Outcome::Busy(_)));
}

#[test]
fn a_request_that_arrives_after_its_limit_takes_nothing() {
    let mut lock = Lock::new();
    let late = Acquire {
        not_after: Some(START),
        ..queue(1)
    };
    lock.pass(Duration::from_micros(1));
    assert_eq!(lock.acquire(&late), Outcome::TooLate);
    assert!(lock.state.is_idle());
}

#[test]
fn a_request_that_arrives_at_its_limit_is_in_time() {
    let mut lock = Lock::new();
    lock.granted(&Acquire {
        not_after: Some(START),
        ..acquire(1)
    });
}

#[test]
fn a_holder_that_asks_late_is_still_told_its_grant() {
    let mut lock = Lock::new();
    let once = Acquire {
        not_after: Some(START),
        ..acquire(1)
    };
    let grant = lock.granted(&once);
    lock.pass(seconds(1));
    assert_eq!(lock.granted(&once), grant);
}

#[test]
fn a_name_has_one_kind_for_as_long_as_it_is_in_use() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    let semaphore = in_mode(acquire(2), permits(1, 2));
    let conflict = Outcome::Conflict {
        in_force: Kind::Lock,
    };
    assert_eq!(lock.acquire(&semaphore), conflict);
    lock.release(1, grant.fence);
    lock.granted(&semaphore);
    let other_capacity = in_mode(queue(3), permits(1, 3));
    let conflict = Outcome::Conflict {
        in_force: Kind::Semaphore { capacity: 2 },
    };
    assert_eq!(lock.acquire(&other_capacity), conflict);
    assert!(lock.waiters().is_empty());
}

#[test]
fn permits_are_given_while_they_fit() {
    let mut lock = Lock::new();
    lock.granted(&in_mode(acquire(1), permits(2, 3)));
    let two = in_mode(acquire(2), permits(2, 3));
    assert!(matches!(lock.acquire(&two), Outcome::Busy(_)));
    lock.granted(&in_mode(acquire(3), permits(1, 3)));
    assert_eq!(lock.holders(), owners(&[1, 3]));
}

#[test]
fn a_holder_that_asks_again_also_serves_the_queue() {
    let mut lock = Lock::new();
    lock.granted(&in_mode(acquire(1), permits(2, 3)));
    lock.pass(seconds(5));
    lock.granted(&in_mode(acquire(2), permits(1, 3)));
    lock.queued(&in_mode(queue(3), permits(2, 3)), 0);
    // The first hold ends; the next thing the store hears is the second owner repeating itself.
    lock.pass(seconds(5));
    lock.granted(&in_mode(acquire(2), permits(1, 3)));
    assert_eq!(lock.told(), owners(&[3]));
}
