//! Renew, as a specification.

use tenure_core::{Acquire, Action, Fence, Outcome, Renew};

use crate::support::{Lock, NOT_HELD, acquire, inbox, owner, owners, queue, seconds, ttl};

#[test]
fn a_renewal_counts_from_now() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.pass(seconds(4));
    let expiry = lock.now.plus(seconds(10));
    assert_eq!(lock.renew(1, grant.fence, 10), Outcome::Renewed { expiry });
    assert!(lock.pushed.is_empty());
}

#[test]
fn a_renewal_never_shortens() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    let expiry = grant.expiry;
    assert_eq!(lock.renew(1, grant.fence, 2), Outcome::Renewed { expiry });
}

#[test]
fn what_has_expired_is_not_renewed_even_if_nobody_else_came() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.pass(seconds(10));
    assert_eq!(lock.renew(1, grant.fence, 10), NOT_HELD);
    assert!(lock.holders().is_empty());
}

#[test]
fn a_strangers_renewal_does_not_prolong() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    assert_eq!(lock.renew(2, grant.fence, 100), NOT_HELD);
    assert_eq!(lock.renew(1, Fence::NONE, 100), NOT_HELD);
    assert_eq!(lock.state.holders[0].expiry, grant.expiry);
}

#[test]
fn a_late_renewal_lets_the_next_one_in() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.pass(seconds(5));
    lock.queued(&queue(2), 0);
    lock.pass(seconds(5));
    assert_eq!(lock.renew(1, grant.fence, 10), NOT_HELD);
    assert_eq!(lock.told(), owners(&[2]));
}

#[test]
fn a_detached_hold_outlives_its_process() {
    let mut lock = Lock::new();
    let anchor = Some(inbox(1));
    let grant = lock.granted(&Acquire {
        anchor,
        ..acquire(1)
    });
    leave_behind(&mut lock, grant.fence, 10);
    lock.seen.dead.insert(inbox(1));
    assert!(matches!(lock.acquire(&acquire(2)), Outcome::Busy(_)));
}

#[test]
fn whoever_leaves_its_hold_behind_may_also_shorten_it() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    let expiry = lock.now.plus(seconds(2));
    let outcome = leave_behind(&mut lock, grant.fence, 2);
    assert_eq!(outcome, Outcome::Renewed { expiry });
}

fn leave_behind(lock: &mut Lock, fence: Fence, length: u64) -> Outcome {
    lock.apply(&Action::Renew(Renew {
        owner: owner(1),
        fence,
        ttl: ttl(length),
        detach: true,
        terms: None,
    }))
}
