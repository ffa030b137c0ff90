//! [`Holds`]: what this process holds, as far as the quorum has to know: until when a late vote is
//! welcome, and which members have to be told what.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tenure_core::{Fence, ForcedRelease, Moment, OwnerId, Ttl};

use super::epoch::Reading;

/// The holds of this process, by owner.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<HashMap<OwnerId, Held>>);

/// One hold.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) fence: Fence,
    pub(super) until: Moment,
    pub(super) notes: Arc<Notes>,
}

/// What becomes known of a hold while it lasts.
#[derive(Debug, Default)]
pub(super) struct Notes {
    end: OnceLock<End>,
    forced: OnceLock<(ForcedRelease, Reading)>,
    /// Members that know of no vote, and since when that is known.
    missing: Mutex<HashMap<usize, Moment>>,
    /// Members that may not know that it is shared by now.
    unconverted: Mutex<BTreeSet<usize>>,
    /// It lasts for a time that was said, whoever holds it.
    left: AtomicBool,
    /// The longest that one of its votes was ever asked to last, in milliseconds.
    longest: AtomicU64,
}

/// What to do about a member that knows of no vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// It was so before, and the hold has been confirmed since: ask for the vote.
    Lasting,
    /// Wait for a later renewal to confirm the hold once more.
    New,
}

/// How a hold ended, as far as its votes are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Every member is told, and asked again if it does not confirm it.
    Released,
    /// It was lost or given up: nobody sees to votes that come late.
    GivenUp,
}

impl Held {
    pub(super) fn new(ttl: Ttl, fence: Fence, until: Moment) -> Self {
        let held = Self {
            fence,
            until,
            notes: Arc::default(),
        };
        held.notes.is_to_last(ttl);
        held
    }

    /// For how long a vote of it may last that was given, or prolonged, by now.
    pub(super) fn longest(&self) -> Duration {
        Duration::from_millis(self.notes.longest.load(Ordering::Acquire))
    }

    /// Whether it has been released or given up.
    pub(super) fn is_over(&self) -> bool {
        self.notes.end.get().is_some()
    }

    /// Whether a vote that came late must be taken back by whoever hears of it.
    pub(super) fn is_given_up(&self) -> bool {
        self.notes.end.get() == Some(&End::GivenUp)
    }
}

impl Notes {
    /// A member has said that it was ended by force. Whoever forced it need not have reached the others.
    pub(super) fn was_forced(&self, forced: ForcedRelease, reading: Reading) {
        // The first to say so is as good as any.
        let _ = self.forced.set((forced, reading));
    }

    pub(super) fn forced(&self) -> Option<(ForcedRelease, Reading)> {
        self.forced.get().cloned()
    }

    /// A member has the vote.
    pub(super) fn found(&self, member: usize) {
        self.missing().remove(&member);
    }

    /// A member has said `now`, in a round that began at `sent` and confirmed the hold, that it has no vote. It is lasting if it
    /// was said a `while` before that round.
    pub(super) fn absence(
        &self,
        member: usize,
        (sent, now): (Moment, Moment),
        lasting: Duration,
    ) -> Absence {
        let mut missing = self.missing();
        let since = *missing.entry(member).or_insert(now);
        if sent < since.plus(lasting) {
            return Absence::New;
        }
        // The vote may be got back now and be released then: what is missing after that is missing anew.
        missing.remove(&member);
        Absence::Lasting
    }

    /// Members are about to be asked to prolong it: what is not answered may have been done.
    pub(super) fn is_to_last(&self, ttl: Ttl) {
        self.longest.fetch_max(ttl.as_millis(), Ordering::AcqRel);
    }

    /// Its holder leaves it behind, for exactly as long as it says: no vote is asked for any more.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    pub(super) fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// Whether it has become shared, as far as this member knows.
    pub(super) fn converted(&self, member: usize, known: bool) {
        let mut unconverted = self.unconverted();
        if known {
            unconverted.remove(&member);
        } else {
            unconverted.insert(member);
        }
    }

    /// The members that may not know that it is shared.
    pub(super) fn to_convert(&self) -> Vec<usize> {
        self.unconverted().iter().copied().collect()
    }

    fn missing(&self) -> MutexGuard<'_, HashMap<usize, Moment>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unconverted(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        let unconverted = self.unconverted.lock();
        unconverted.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fewer holds than this are not worth a look at which of them have ended.
const TIDIED_FROM: usize = 64;

impl Holds {
    pub(super) fn add(&self, owner: OwnerId, held: Held, now: Moment) {
        let mut holds = self.map();
        if holds.len() >= TIDIED_FROM && holds.len().is_power_of_two() {
            holds.retain(|_, held| now < held.until);
        }
        holds.insert(owner, held);
    }

    /// The hold of `owner`, if it was taken by this process and has not run out. One that has ended is known for a while yet.
    pub(super) fn get(&self, owner: OwnerId, now: Moment) -> Option<Held> {
        let holds = self.map();
        holds.get(&owner).filter(|held| now < held.until).cloned()
    }

    pub(super) fn prolong(&self, owner: OwnerId, until: Moment) {
        if let Some(held) = self.map().get_mut(&owner) {
            held.until = held.until.max(until);
        }
    }

    /// It is over: nobody asks for its votes any more. A renewal may be about to set out, so that it is over is remembered
    /// `until` then. Answers what it was; nothing if it had ended before, or `fence` is that of another hold of the owner.
    pub(super) fn end(
        &self,
        owner: OwnerId,
        fence: Option<Fence>,
        end: End,
        until: Moment,
    ) -> Option<Held> {
        let mut holds = self.map();
        let held = holds.get_mut(&owner)?;
        if fence.is_some_and(|fence| fence != held.fence) {
            return None;
        }
        held.notes.end.set(end).ok()?;
        let ended = held.clone();
        held.until = until;
        Some(ended)
    }

    fn map(&self) -> MutexGuard<'_, HashMap<OwnerId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
