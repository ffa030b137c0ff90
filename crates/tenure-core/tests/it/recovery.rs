//! A lock in a store that forgot, as a specification.

use tenure_core::{
    Action, Cancel, Convert, Fence, ForceRelease, LockState, Mode, Outcome, Party, Phase, Release,
    Removed, Renew, Terms, Timestamp,
};

use crate::support::{Lock, acquire, in_mode, owner, owners, permits, queue, seconds, ttl};

/// A lock in a store that recovers for 30 s, and had this state when it forgot.
fn recovering(state: LockState) -> Lock {
    let mut lock = Lock::new();
    lock.state = state;
    lock.phase = Phase::Recovering {
        until: lock.now.plus(seconds(30)),
    };
    lock
}

/// It has recovered by then.
fn open_since(since: Timestamp) -> Phase {
    Phase::Open { since }
}

fn forgotten() -> Lock {
    recovering(LockState::default())
}

fn reinstate(lock: &mut Lock, number: u8, fence: u64, mode: Mode) -> Outcome {
    lock.apply(&Action::Renew(Renew {
        owner: owner(number),
        fence: Fence::from_u64(fence),
        ttl: ttl(10),
        detach: false,
        terms: Some(Terms {
            mode,
            party: Party::default(),
        }),
    }))
}

fn renewed(lock: &Lock) -> Outcome {
    Outcome::Renewed {
        expiry: lock.now.plus(seconds(10)),
    }
}

fn until(lock: &Lock) -> Timestamp {
    lock.phase.recovering_until().expect("it is recovering")
}

/// The state after somebody took the lock and nobody let go.
fn held_by(number: u8, mode: Mode) -> (LockState, Fence) {
    let mut lock = Lock::new();
    let grant = lock.granted(&in_mode(acquire(number), mode));
    (lock.state, grant.fence)
}

#[test]
fn a_newcomer_is_told_that_the_store_recovers_and_until_when() {
    let mut lock = forgotten();
    let Outcome::Busy(contention) = lock.acquire(&acquire(1)) else {
        panic!("let in");
    };
    assert_eq!(contention.recovering, Some(until(&lock)));
    assert_eq!((contention.holder_count, contention.next_expiry), (0, None));
    let Outcome::Queued { contention, .. } = lock.acquire(&queue(1)) else {
        panic!("let in");
    };
    assert_eq!(contention.recovering, Some(until(&lock)));
    lock.phase = open_since(lock.now);
    assert!(matches!(lock.acquire(&queue(1)), Outcome::Granted(_)));
}

#[test]
fn a_holder_gets_back_what_was_forgotten_with_its_fence() {
    let mut lock = forgotten();
    assert_eq!(reinstate(&mut lock, 1, 5, Mode::Exclusive), renewed(&lock));
    let holder = &lock.state.holders[0];
    assert_eq!((holder.owner, holder.fence), (owner(1), Fence::from_u64(5)));
    assert_eq!(holder.since, Timestamp::from_micros(5));
    let last = holder.fence.last_of_grant(Mode::Exclusive);
    assert_eq!(
        lock.state.last_fence, last,
        "with what it may have handed on"
    );
    // Again, and then in a store that is open.
    assert_eq!(reinstate(&mut lock, 1, 5, Mode::Exclusive), renewed(&lock));
    lock.phase = open_since(lock.now);
    assert_eq!(reinstate(&mut lock, 1, 5, Mode::Exclusive), renewed(&lock));
    assert!(matches!(lock.acquire(&acquire(2)), Outcome::Busy(_)));
}

#[test]
fn what_is_left_of_another_kind_is_waited_for_and_not_an_error() {
    // Rolled back to when it was a semaphore; it is in use as a lock since.
    let (state, _) = held_by(1, permits(1, 2));
    let mut lock = recovering(state);
    assert!(matches!(lock.acquire(&acquire(2)), Outcome::Busy(_)));
    assert!(matches!(lock.acquire(&queue(3)), Outcome::Queued { .. }));
    assert_eq!(
        reinstate(&mut lock, 4, u64::MAX / 2, Mode::Exclusive),
        renewed(&lock)
    );
    assert_eq!(lock.state.holders.len(), 1, "whoever comes back is right");
    let (state, _) = held_by(1, permits(1, 2));
    lock = recovering(state);
    lock.phase = open_since(lock.now);
    assert!(matches!(lock.acquire(&queue(3)), Outcome::Conflict { .. }));
}

#[test]
fn an_open_store_takes_nothing_back() {
    let mut lock = Lock::new();
    let not_held = Outcome::NotHeld { forced: None };
    assert_eq!(reinstate(&mut lock, 1, 5, Mode::Exclusive), not_held);
    assert_eq!(lock.state.last_fence, Fence::NONE);
}

#[test]
fn the_next_fence_is_above_what_was_taken_back() {
    let mut lock = forgotten();
    let ahead = lock.now.plus(seconds(100)).as_micros();
    reinstate(&mut lock, 1, ahead, Mode::Exclusive);
    lock.release(1, Fence::from_u64(ahead));
    lock.phase = open_since(lock.now);
    let next = lock.granted(&acquire(2)).fence.as_u64();
    assert_eq!(next, ahead + u64::from(Fence::RANGE));
}

#[test]
fn no_step_lets_anybody_in() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let (owner, by) = (owner(1), Party::default());
    for action in [
        Action::Release(Release { owner, fence }),
        Action::Cancel(Cancel { owner }),
        Action::Convert(Convert { owner, fence }),
        Action::ForceRelease(ForceRelease {
            owner,
            fence,
            by,
            reason: String::new(),
        }),
        Action::Acquire(queue(3)),
    ] {
        let mut lock = recovering(state.clone());
        lock.queued(&in_mode(queue(2), Mode::Shared), 0);
        if matches!(action, Action::Acquire(_)) {
            lock.pass(seconds(5));
            lock.queued(&in_mode(queue(2), Mode::Shared), 0);
            lock.pass(seconds(5));
        }
        lock.apply(&action);
        assert!(lock.pushed.is_empty(), "{action:?}");
        assert!(
            !lock.holders().contains(&crate::support::owner(2)),
            "{action:?}"
        );
    }
}

#[test]
fn an_inherited_grant_is_no_answer_to_an_acquire() {
    let (state, _) = held_by(1, Mode::Exclusive);
    let mut lock = recovering(state);
    assert!(matches!(lock.acquire(&acquire(1)), Outcome::Busy(_)));
    lock.queued(&queue(1), 0);
    assert_eq!(lock.waiters(), []);
    assert_eq!(lock.holders(), owners(&[1]));
}

#[test]
fn the_higher_fence_wins() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let later = fence.as_u64() + 1;
    let mut lock = recovering(state.clone());
    assert_eq!(
        reinstate(&mut lock, 2, later, Mode::Exclusive),
        renewed(&lock)
    );
    assert_eq!(lock.holders(), owners(&[2]));
    let not_held = Outcome::NotHeld { forced: None };
    let earlier = fence.as_u64();
    assert_eq!(reinstate(&mut lock, 1, earlier, Mode::Exclusive), not_held);
    assert_eq!(lock.holders(), owners(&[2]));
}

#[test]
fn whoever_was_succeeded_does_not_get_it_back_even_if_it_is_free_again() {
    let (mut state, fence) = held_by(2, Mode::Exclusive);
    state.holders.clear();
    let mut lock = recovering(state);
    let earlier = fence.as_u64() - 1;
    let outcome = reinstate(&mut lock, 1, earlier, Mode::Exclusive);
    assert_eq!(outcome, Outcome::NotHeld { forced: None });
}

#[test]
fn readers_are_taken_back_together_in_any_order() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let mut lock = recovering(state);
    for (number, later) in [(3, 2), (2, 1), (4, 3)] {
        let fence = fence.as_u64() + later;
        assert_eq!(
            reinstate(&mut lock, number, fence, Mode::Shared),
            renewed(&lock)
        );
    }
    assert_eq!(lock.holders(), owners(&[2, 3, 4]), "in grant order");
}

#[test]
fn a_downgrade_that_was_forgotten_is_made_good() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let later = fence.as_u64() + 1;
    for reader_first in [false, true] {
        let mut lock = recovering(state.clone());
        if reader_first {
            assert_eq!(reinstate(&mut lock, 2, later, Mode::Shared), renewed(&lock));
        }
        let outcome = reinstate(&mut lock, 1, fence.as_u64(), Mode::Shared);
        assert_eq!(outcome, renewed(&lock));
        assert_eq!(reinstate(&mut lock, 2, later, Mode::Shared), renewed(&lock));
        assert_eq!(lock.holders(), owners(&[1, 2]));
    }
}

#[test]
fn inherited_permits_do_not_count_against_those_who_renew() {
    let mut before = Lock::new();
    let first = before.granted(&in_mode(acquire(1), permits(1, 2)));
    let second = before.granted(&in_mode(acquire(2), permits(1, 2)));
    let mut lock = recovering(before.state);
    let later = second.fence.as_u64() + 1;
    assert_eq!(
        reinstate(&mut lock, 3, later, permits(1, 2)),
        renewed(&lock)
    );
    let outcome = reinstate(&mut lock, 1, first.fence.as_u64(), permits(1, 2));
    assert_eq!(outcome, renewed(&lock));
    // Those who do not renew have ended by the time that the store opens.
    lock.pass(seconds(9));
    reinstate(&mut lock, 1, first.fence.as_u64(), permits(1, 2));
    reinstate(&mut lock, 3, later, permits(1, 2));
    lock.pass(seconds(1));
    lock.phase = open_since(lock.now);
    assert!(matches!(
        lock.acquire(&in_mode(acquire(4), permits(1, 2))),
        Outcome::Busy(_)
    ));
    assert_eq!(lock.holders(), owners(&[1, 3]));
}

#[test]
fn a_holder_that_the_store_remembers_as_waiting_leaves_the_queue() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let mut before = Lock::new();
    before.state = state;
    before.queued(&queue(2), 0);
    let mut lock = recovering(before.state);
    reinstate(&mut lock, 2, fence.as_u64() + 1, Mode::Exclusive);
    assert_eq!((lock.holders(), lock.waiters()), (owners(&[2]), vec![]));
}

#[test]
fn what_was_ended_by_force_stays_ended() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let mut lock = recovering(state);
    assert_eq!(lock.force(1, fence, "stuck"), Outcome::Released);
    for outcome in [
        reinstate(&mut lock, 1, fence.as_u64(), Mode::Exclusive),
        lock.renew(1, fence, 10),
        lock.release(1, fence),
    ] {
        let told = matches!(outcome, Outcome::NotHeld { forced: Some(_) });
        assert!(told, "{outcome:?}");
    }
    // That hold, and no other of the same owner.
    let later = fence.as_u64() + u64::from(Fence::RANGE);
    let outcome = reinstate(&mut lock, 1, later, Mode::Exclusive);
    assert_eq!(outcome, renewed(&lock));
}

#[test]
fn a_hold_that_was_dropped_but_not_succeeded_is_taken_back() {
    let (mut state, fence) = held_by(1, Mode::Exclusive);
    state.holders.clear();
    let mut lock = recovering(state);
    let outcome = reinstate(&mut lock, 1, fence.as_u64(), Mode::Exclusive);
    assert_eq!(outcome, renewed(&lock));
}

#[test]
fn nobody_is_taken_back_with_the_fence_of_another() {
    let (state, fence) = held_by(1, Mode::Shared);
    let mut lock = recovering(state);
    let outcome = reinstate(&mut lock, 2, fence.as_u64(), Mode::Shared);
    assert_eq!(outcome, Outcome::NotHeld { forced: None });
    assert_eq!(lock.holders(), owners(&[1]));
}

#[test]
fn a_store_that_recovers_does_not_say_that_something_is_not_held() {
    let mut lock = forgotten();
    let fence = Fence::from_u64(5);
    let until = until(&lock);
    let forgotten = Outcome::Forgotten { until };
    assert_eq!(lock.renew(1, fence, 10), forgotten);
    assert_eq!(lock.release(1, fence), forgotten);
    assert_eq!(lock.convert(1, fence), forgotten);
    assert_eq!(lock.force(1, fence, ""), forgotten);
    assert_eq!(lock.cancel(1), Outcome::Cancelled(Removed::Nothing));
}

/// A promoted replica whose clock is behind has what has ended, and somebody else may hold the lock since.
#[test]
fn whoever_does_not_say_how_it_holds_is_not_told_that_it_does() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let mut lock = recovering(state);
    lock.pass(seconds(5));
    let until = until(&lock);
    assert_eq!(lock.renew(1, fence, 10), Outcome::Forgotten { until });
    let later = fence.as_u64() + u64::from(Fence::RANGE);
    assert_eq!(
        reinstate(&mut lock, 2, later, Mode::Exclusive),
        renewed(&lock)
    );
    assert_eq!(lock.holders(), owners(&[2]), "by right");
}

#[test]
fn what_nobody_else_comes_for_is_still_there_when_the_store_opens() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let mut lock = recovering(state);
    lock.pass(seconds(9));
    lock.renew(1, fence, 10);
    lock.pass(seconds(9));
    lock.phase = open_since(lock.now);
    assert_eq!(lock.renew(1, fence, 10), renewed(&lock));
}

#[test]
fn what_was_granted_before_is_granted_anew_to_whoever_asks_for_it_again() {
    let (state, fence) = held_by(1, Mode::Exclusive);
    let mut lock = recovering(state);
    lock.pass(seconds(5));
    lock.phase = open_since(lock.now);
    let again = lock.granted(&acquire(1));
    assert!(again.fence > fence.last_of_grant(Mode::Exclusive));
    assert_eq!(again.expiry, lock.now.plus(seconds(10)));
    assert_eq!(lock.holders(), owners(&[1]));
    // From here on it is an ordinary hold.
    lock.pass(seconds(1));
    assert_eq!(lock.granted(&acquire(1)), again);
    assert_eq!(lock.renew(1, again.fence, 10), renewed(&lock));
}

#[test]
fn what_was_taken_back_is_never_ended_by_a_question_that_comes_late() {
    let mut lock = forgotten();
    let Outcome::Renewed { expiry } = reinstate(&mut lock, 1, 5, Mode::Shared) else {
        panic!("taken back");
    };
    lock.pass(seconds(5));
    lock.phase = open_since(lock.now);
    lock.queued(&queue(2), 0);
    let late = tenure_core::Acquire {
        not_after: Some(Timestamp::from_micros(lock.now.as_micros() - 1)),
        ..in_mode(acquire(1), Mode::Shared)
    };
    assert_eq!(lock.acquire(&late), Outcome::TooLate);
    assert_eq!(lock.state.holders[0].fence, Fence::from_u64(5));
    let short = tenure_core::Acquire {
        ttl: ttl(1),
        ..in_mode(acquire(1), Mode::Shared)
    };
    let again = lock.granted(&short);
    assert_eq!((again.expiry, lock.holders()), (expiry, owners(&[1])));
}

#[test]
fn readers_who_ask_again_get_in_line_with_the_fences() {
    let mut before = Lock::new();
    for number in [1, 2] {
        before.granted(&in_mode(acquire(number), Mode::Shared));
    }
    let mut lock = recovering(before.state);
    lock.pass(seconds(1));
    lock.phase = open_since(lock.now);
    let again = lock.granted(&in_mode(acquire(1), Mode::Shared));
    assert_eq!(lock.holders(), owners(&[2, 1]));
    assert_eq!(lock.state.last_fence, again.fence);
}
