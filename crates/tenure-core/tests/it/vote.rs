//! Vote, as a specification.

use tenure_core::{Action, Ballot, Fence, Grant, Mode, Outcome, Party, Phase, Vote};

use crate::support::{Lock, NOT_HELD, acquire, owner, owners, queue, seconds, ttl};

fn fence(number: u64) -> Fence {
    Fence::from_u64(number)
}

fn vote(number: u8, ballot: Ballot) -> Action {
    Action::Vote(Vote {
        owner: owner(number),
        mode: Mode::Exclusive,
        ttl: ttl(10),
        party: Party::default(),
        not_after: None,
        ballot,
    })
}

fn new(number: u8, proposal: u64) -> Action {
    let proposal = fence(proposal);
    vote(number, Ballot::New { proposal })
}

fn raise(number: u8, to: u64) -> Action {
    vote(number, Ballot::Raise { to: fence(to) })
}

fn held(number: u8, number_of_fence: u64) -> Action {
    let fence = fence(number_of_fence);
    vote(number, Ballot::Held { fence })
}

/// A lock at which the fences up to 50 have been given.
fn used() -> Lock {
    let mut lock = Lock::new();
    let first = 51 - u64::from(Fence::RANGE);
    assert_eq!(given(&mut lock, &new(9, first)).fence, fence(first));
    lock.cancel(9);
    lock
}

/// A vote for a reader.
fn reader(number: u8, ballot: Ballot) -> Action {
    match vote(number, ballot) {
        Action::Vote(vote) => Action::Vote(Vote {
            mode: Mode::Shared,
            ..vote
        }),
        other => other,
    }
}

/// Two readers, with the fences 60 and 61.
fn two_readers() -> Lock {
    let mut lock = used();
    for number in [1, 2] {
        let proposal = fence(60);
        given(&mut lock, &reader(number, Ballot::New { proposal }));
    }
    lock
}

fn given(lock: &mut Lock, action: &Action) -> Grant {
    match lock.apply(action) {
        Outcome::Granted(grant) => grant,
        other => panic!("expected a vote, got {other:?}"),
    }
}

#[test]
fn a_new_vote_has_the_fence_that_was_proposed_or_the_next_free_one() {
    let mut lock = used();
    assert_eq!(given(&mut lock, &new(1, 70)).fence, fence(70));
    lock.cancel(1);
    let after = 70 + u64::from(Fence::RANGE);
    assert_eq!(given(&mut lock, &new(2, 70)).fence, fence(after));
    lock.cancel(2);
    let after = after + u64::from(Fence::RANGE);
    assert_eq!(given(&mut lock, &new(3, 5)).fence, fence(after));
}

#[test]
fn a_repeated_vote_is_the_same_vote() {
    let mut lock = used();
    let first = given(&mut lock, &new(1, 70));
    lock.pass(seconds(3));
    assert_eq!(given(&mut lock, &new(1, 99)), first);
}

#[test]
fn a_vote_is_given_to_one_and_never_queues() {
    let mut lock = used();
    given(&mut lock, &new(1, 70));
    assert!(matches!(lock.apply(&new(2, 80)), Outcome::Busy(_)));
    assert!(lock.waiters().is_empty());
    lock.cancel(1);
    assert_eq!(lock.holders(), []);
}

#[test]
fn a_vote_does_not_overtake_a_queue() {
    let mut lock = used();
    let grant = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    lock.release(1, grant.fence);
    assert_eq!(lock.told(), owners(&[2]));
    assert!(matches!(lock.apply(&new(3, 80)), Outcome::Busy(_)));
}

#[test]
fn a_vote_is_raised_to_the_fence_that_others_gave_and_lasts_no_longer() {
    let mut lock = used();
    let first = given(&mut lock, &new(1, 70));
    lock.pass(seconds(3));
    let raised = given(&mut lock, &raise(1, 90));
    assert_eq!((raised.fence, raised.expiry), (fence(90), first.expiry));
    assert_eq!(
        given(&mut lock, &raise(1, 80)).fence,
        fence(90),
        "never down"
    );
    let last = fence(90).last_of_grant(Mode::Exclusive);
    assert_eq!(lock.state.last_fence, last);
    assert_eq!(lock.release(1, fence(90)), Outcome::Released);
    assert_eq!(lock.apply(&raise(1, 99)), NOT_HELD);
}

#[test]
fn two_readers_are_never_raised_to_one_fence() {
    let mut lock = two_readers();
    let to = fence(90);
    let one = given(&mut lock, &reader(1, Ballot::Raise { to }));
    assert_eq!(lock.holders(), owners(&[2, 1]), "in the order of fences");
    let two = given(&mut lock, &reader(2, Ballot::Raise { to }));
    assert_eq!((one.fence, two.fence), (fence(90), fence(91)));
    assert_eq!(lock.holders(), owners(&[1, 2]));
    let again = given(&mut lock, &reader(1, Ballot::Raise { to }));
    assert_eq!(again, one, "a repetition changes nothing");
}

#[test]
fn a_reader_comes_back_with_its_own_fence_and_never_with_that_of_another() {
    let mut lock = two_readers();
    let held = |number, value| {
        let fence = fence(value);
        reader(number, Ballot::Held { fence })
    };
    assert_eq!(lock.apply(&held(1, 61)), NOT_HELD, "it is the other's");
    assert_eq!(lock.apply(&held(2, 60)), NOT_HELD, "lower than its own");
    assert_eq!(given(&mut lock, &held(1, 95)).fence, fence(95));
    assert_eq!(lock.holders(), owners(&[2, 1]));
}

#[test]
fn a_holder_gets_the_vote_that_was_lost() {
    let mut lock = used();
    let grant = given(&mut lock, &held(1, 70));
    assert_eq!(grant.fence, fence(70));
    lock.pass(seconds(4));
    let again = given(&mut lock, &held(1, 70));
    assert_eq!(again.expiry, lock.now.plus(seconds(10)), "and it lasts");
}

#[test]
fn a_holder_gets_no_vote_where_somebody_is() {
    let mut lock = used();
    given(&mut lock, &new(2, 60));
    assert_eq!(lock.apply(&held(1, 70)), NOT_HELD);
}

#[test]
fn a_holder_gets_the_vote_where_somebody_was_in_vain_and_no_fence_is_given_twice() {
    let mut lock = used();
    let last = lock.state.last_fence;
    assert_eq!(given(&mut lock, &held(1, 7)).fence, fence(7));
    assert_eq!(lock.state.last_fence, last, "it does not go back");
    assert_eq!(lock.release(1, fence(7)), Outcome::Released);
    assert!(given(&mut lock, &new(2, 8)).fence > last);
}

#[test]
fn what_was_ended_by_force_is_not_given_again() {
    let mut lock = used();
    let grant = given(&mut lock, &new(1, 70));
    lock.force(1, grant.fence, "stuck");
    let outcome = lock.apply(&held(1, 70));
    assert!(matches!(outcome, Outcome::NotHeld { forced: Some(_) }));
    // That hold, and no other of the same owner.
    let later = 70 + u64::from(Fence::RANGE);
    assert_eq!(given(&mut lock, &held(1, later)).fence, fence(later));
}

#[test]
fn while_recovering_nobody_gets_a_new_vote_and_an_inherited_one_does_not_count() {
    let mut lock = used();
    given(&mut lock, &new(1, 70));
    let until = lock.now.plus(seconds(30));
    lock.phase = Phase::Recovering { until };
    for action in [new(1, 70), raise(1, 80), new(2, 90)] {
        let Outcome::Busy(contention) = lock.apply(&action) else {
            panic!("a vote while recovering");
        };
        assert_eq!(contention.recovering, Some(until));
    }
    given(&mut lock, &held(1, 70));
    lock.cancel(1);
    let outcome = lock.apply(&new(2, 90));
    assert!(matches!(outcome, Outcome::Busy(_)), "{outcome:?}");
}

#[test]
fn a_vote_that_arrives_late_takes_nothing() {
    let mut lock = used();
    let limit = lock.now;
    let Action::Vote(vote_in_time) = new(1, 60) else {
        unreachable!("made above");
    };
    given(
        &mut lock,
        &Action::Vote(Vote {
            not_after: Some(limit),
            ..vote_in_time
        }),
    );
    lock.cancel(1);
    lock.pass(seconds(1));
    for ballot in [
        Ballot::New {
            proposal: fence(70),
        },
        Ballot::Held { fence: fence(70) },
    ] {
        let Action::Vote(late) = vote(1, ballot) else {
            unreachable!("made above");
        };
        let not_after = Some(limit);
        let late = Action::Vote(Vote { not_after, ..late });
        assert_eq!(lock.apply(&late), Outcome::TooLate);
    }
    assert!(lock.holders().is_empty());
}
