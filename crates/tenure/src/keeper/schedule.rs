//! What is due when: a heap of deadlines, and how they are spaced.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Moment, Ttl};

use crate::hold::Hold;
use crate::random;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The lease ends unless it was renewed meanwhile.
    End,
    /// It is time to renew.
    Renewal,
}

#[derive(Debug, Default)]
pub(super) struct Schedule {
    heap: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

#[derive(Debug)]
struct Entry {
    at: Moment,
    /// Breaks ties by order of arrival.
    number: u64,
    due: Due,
    hold: Arc<Hold>,
}

/// How long after a confirmation a lease is renewed: a third of its ttl, a little less for some.
pub(super) fn interval(ttl: Ttl) -> Duration {
    random::jittered(ttl.duration() / 3)
}

/// When to try again after a failed renewal, with this much of the lease left: often enough for
/// several tries before the end, not so often as to trouble a store that is in trouble.
pub(super) fn retry(remaining: Duration) -> Duration {
    random::jittered((remaining / 8).clamp(Duration::from_millis(20), Duration::from_secs(1)))
}

impl Schedule {
    pub(super) fn add(&mut self, at: Moment, due: Due, hold: Arc<Hold>) {
        self.added += 1;
        self.heap.push(Reverse(Entry {
            at,
            number: self.added,
            due,
            hold,
        }));
    }

    /// When something is due next.
    pub(super) fn next(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes what is due at `now`. A renewal that is nearly due goes along with one that is: the
    /// more of them travel together, the fewer calls.
    pub(super) fn pop_due(&mut self, now: Moment) -> Option<(Due, Arc<Hold>)> {
        let Reverse(entry) = self.heap.peek()?;
        let early = match entry.due {
            Due::End => Duration::ZERO,
            Due::Renewal => entry.hold.ttl().duration() / 15,
        };
        if entry.at > now.plus(early) {
            return None;
        }
        self.heap
            .pop()
            .map(|Reverse(entry)| (entry.due, entry.hold))
    }
}

impl Entry {
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
