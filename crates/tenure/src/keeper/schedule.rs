//! What is due when: deadlines in order, and how they are spaced.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Moment, Ttl};

use crate::hold::Hold;
use crate::random;
use crate::standing::Loss;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The lease ends unless it was renewed meanwhile.
    End,
    /// It is time to renew.
    Renewal,
    /// It is time to try again what has failed.
    Retry,
}

#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Apart from the renewals, so that an end which is not due does not hide what could go along.
    ends: BinaryHeap<Reverse<Entry>>,
    renewals: BinaryHeap<Reverse<Entry>>,
    added: u64,
    /// How many entries were left when holds that have ended were last cleared out.
    needed: usize,
}

/// Entries that may be there before clearing out is worth the trouble.
const ROOM: usize = 64;

#[derive(Debug)]
struct Entry {
    at: Moment,
    /// Breaks ties by order of arrival.
    number: u64,
    due: Due,
    hold: Arc<Hold>,
}

/// How long after a confirmation a lease is renewed: a third of its ttl, up to an eighth less for some.
pub(super) fn interval(ttl: Ttl) -> Duration {
    let third = ttl.duration() / 3;
    third - random::up_to(third / 8)
}

/// When to try again after a failed renewal, with this much of the lease left: often enough for
/// several tries before the end, not so often as to trouble a store that is in trouble.
pub(super) fn retry(remaining: Duration) -> Duration {
    random::jittered((remaining / 8).clamp(Duration::from_millis(20), Duration::from_secs(1)))
}

impl Schedule {
    pub(super) fn add(&mut self, at: Moment, due: Due, hold: Arc<Hold>) {
        // Many short holds with a long ttl would otherwise pile up until it has passed. Twice the
        // need is kept, so that clearing out costs next to nothing per hold.
        if self.len() > 2 * self.needed + ROOM {
            self.ends.retain(|Reverse(entry)| entry.matters());
            self.renewals.retain(|Reverse(entry)| entry.matters());
            self.needed = self.len();
        }
        self.added += 1;
        let heap = match due {
            Due::End => &mut self.ends,
            Due::Renewal | Due::Retry => &mut self.renewals,
        };
        heap.push(Reverse(Entry {
            at,
            number: self.added,
            due,
            hold,
        }));
    }

    /// When something is due next.
    pub(super) fn next(&self) -> Option<Moment> {
        let firsts = [self.ends.peek(), self.renewals.peek()];
        firsts
            .into_iter()
            .flatten()
            .map(|Reverse(entry)| entry.at)
            .min()
    }

    /// Takes what is due at `now`. If something is renewed anyway, a renewal that is nearly due goes
    /// `along`: the more of them travel together, the fewer calls. Not so one that has just failed,
    /// or a store in trouble would be asked without a pause.
    pub(super) fn pop_due(&mut self, now: Moment, along: bool) -> Option<(Due, Arc<Hold>)> {
        let is_due = |heap: &BinaryHeap<Reverse<Entry>>| {
            heap.peek().is_some_and(|Reverse(entry)| {
                let early = match entry.due {
                    Due::Renewal if along => entry.hold.ttl().duration() / 15,
                    _ => Duration::ZERO,
                };
                entry.at <= now.plus(early)
            })
        };
        let heap = if is_due(&self.ends) {
            &mut self.ends
        } else if is_due(&self.renewals) {
            &mut self.renewals
        } else {
            return None;
        };
        heap.pop().map(|Reverse(entry)| (entry.due, entry.hold))
    }

    fn len(&self) -> usize {
        self.ends.len() + self.renewals.len()
    }
}

impl Entry {
    /// Whether anything is left to do: a hold that was held too long must still be given back.
    fn matters(&self) -> bool {
        self.hold.valid_until().is_some() || self.hold.loss() == Some(Loss::HeldTooLong)
    }

    fn key(&self) -> (Moment, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tenure_core::{Fence, Lease, LockName, Mode, OwnerId, Validity};

    use super::*;
    use crate::hold::{NewHold, Renewing};

    const NOW: Moment = Moment::from_nanos(1_000_000_000);

    pub(in crate::keeper) fn hold(ttl: Ttl) -> Arc<Hold> {
        Arc::new(Hold::new(NewHold {
            name: LockName::new("x").unwrap(),
            lease: Lease {
                owner: OwnerId::from_bytes([7; 16]),
                fence: Fence::from_u64(1),
            },
            fence: Fence::from_u64(1),
            mode: Mode::Exclusive,
            ttl,
            validity: Validity {
                until: NOW.plus(ttl.duration()),
            },
            renewing: Renewing::Yes,
            party: tenure_core::Party::default(),
            limit: None,
        }))
    }

    #[test]
    fn many_short_holds_of_a_long_ttl_do_not_pile_up() {
        let mut schedule = Schedule::default();
        let living: Vec<_> = (0..100).map(|_| hold(Ttl::MAX)).collect();
        for hold in &living {
            schedule.add(NOW, Due::Renewal, hold.clone());
        }
        for _ in 0..100_000 {
            let hold = hold(Ttl::MAX);
            schedule.add(NOW.plus(Ttl::MAX.duration()), Due::End, hold.clone());
            schedule.add(
                NOW.plus(Ttl::MAX.duration() / 3),
                Due::Renewal,
                hold.clone(),
            );
            hold.give_up(NOW);
        }
        assert!(schedule.len() < 1_000, "{}", schedule.len());
        let kept = living.iter().all(|hold| Arc::strong_count(hold) == 2);
        assert!(kept, "none that lives was cleared out");
    }

    #[test]
    fn only_what_has_not_failed_goes_along_early() {
        let mut schedule = Schedule::default();
        let soon = NOW.plus(Duration::from_secs(1));
        for due in [Due::Renewal, Due::Retry, Due::End] {
            schedule.add(soon, due, hold(Ttl::DEFAULT));
            assert!(schedule.pop_due(NOW, false).is_none());
            let along = schedule.pop_due(NOW, true).is_some();
            assert_eq!(along, due == Due::Renewal, "{due:?}");
            assert_eq!(schedule.pop_due(soon, false).is_some(), !along);
        }
    }

    #[test]
    fn an_end_that_is_not_due_hides_no_renewal_that_could_go_along() {
        let mut schedule = Schedule::default();
        let (sooner, soon) = (Duration::from_millis(500), Duration::from_secs(1));
        schedule.add(NOW.plus(sooner), Due::End, hold(Ttl::DEFAULT));
        schedule.add(NOW.plus(soon), Due::Renewal, hold(Ttl::DEFAULT));
        let (due, _) = schedule.pop_due(NOW, true).unwrap();
        assert_eq!(due, Due::Renewal);
        assert!(schedule.pop_due(NOW, true).is_none());
        assert_eq!(schedule.next(), Some(NOW.plus(sooner)));
    }

    #[test]
    fn retries_leave_room_for_several_before_the_end() {
        let mut remaining = Duration::from_secs(20);
        let mut tries = 0;
        while remaining > Duration::from_millis(20) {
            remaining = remaining.saturating_sub(retry(remaining));
            tries += 1;
        }
        assert!((20..200).contains(&tries), "{tries}");
    }
}
