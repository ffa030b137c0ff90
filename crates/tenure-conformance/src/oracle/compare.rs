//! Whether two answers are the same, up to what a store may round.

use std::time::Duration;

use tenure_core::{
    Action, Contention, ForcedRelease, HolderView, LockState, Outcome, PushedGrant, Snapshot,
    Timestamp,
};

/// Compares what a store said with what `decide` says, for one lock.
pub(crate) struct Compare {
    tolerance: Duration,
    /// How many waiters have fallen silent so far: a store may go on counting them for a while.
    silent: u32,
}

type Compared = Result<(), &'static str>;

fn same(holds: bool, words: &'static str) -> Compared {
    if holds { Ok(()) } else { Err(words) }
}

impl Compare {
    pub(crate) fn new(tolerance: Duration) -> Self {
        let silent = 0;
        Self { tolerance, silent }
    }

    /// Whether something ends so close to `now` that the tolerance decides whether it has ended.
    pub(crate) fn is_too_close(&self, state: &LockState, action: &Action, now: Timestamp) -> bool {
        if self.tolerance.is_zero() {
            return false;
        }
        let expiries = state.holders.iter().map(|holder| holder.expiry);
        let silences = state.queue.iter().map(|waiter| waiter.alive_until);
        let limit = match action {
            Action::Acquire(acquire) => acquire.not_after,
            Action::Vote(vote) => vote.not_after,
            _ => None,
        };
        let mut ends = expiries.chain(silences).chain(limit);
        // A limit in the past is a microsecond old at least and is compared exactly by every store.
        ends.any(|end| end.since(now) + now.since(end) <= self.tolerance && Some(end) != limit)
    }

    /// Whether something ends after `from` and not after `to`.
    pub(crate) fn ends_within(state: &LockState, from: Timestamp, to: Timestamp) -> bool {
        let expiries = state.holders.iter().map(|holder| holder.expiry);
        let silences = state.queue.iter().map(|waiter| waiter.alive_until);
        expiries.chain(silences).any(|end| from < end && end <= to)
    }

    /// Takes note of the waiters that fall silent at this step.
    pub(crate) fn forgets_silent(&mut self, before: &LockState, now: Timestamp) {
        let silent = before.queue.iter().filter(|w| w.alive_until <= now);
        self.silent += u32::try_from(silent.count()).unwrap_or(u32::MAX);
    }

    pub(crate) fn outcomes(&self, store: &Outcome, expected: &Outcome) -> Compared {
        match (store, expected) {
            (Outcome::Granted(one), Outcome::Granted(two)) => {
                same(one.fence == two.fence, "another fence")?;
                self.times(one.expiry, two.expiry, "another expiry")
            }
            (
                Outcome::Queued { ahead, contention },
                Outcome::Queued {
                    ahead: other,
                    contention: others,
                },
            ) => {
                self.counts(*ahead, *other, "another place in the queue")?;
                self.contentions(contention, others)
            }
            (Outcome::Busy(one), Outcome::Busy(two)) => self.contentions(one, two),
            (Outcome::Renewed { expiry }, Outcome::Renewed { expiry: other })
            | (Outcome::Converted { expiry }, Outcome::Converted { expiry: other }) => {
                self.times(*expiry, *other, "another expiry")
            }
            (Outcome::NotHeld { forced: one }, Outcome::NotHeld { forced: two }) => {
                self.forced(one.as_ref(), two.as_ref())
            }
            (Outcome::State(one), Outcome::State(two)) => self.snapshots(one, two),
            _ => same(store == expected, "another outcome"),
        }
    }

    fn contentions(&self, store: &Contention, expected: &Contention) -> Compared {
        self.holders(&store.holders, &expected.holders)?;
        let (one, two) = (store.holder_count, expected.holder_count);
        same(one == two, "another number of holders")?;
        let (one, two) = (store.waiter_count, expected.waiter_count);
        self.counts(one, two, "another number of waiters")?;
        let (one, two) = (store.next_expiry, expected.next_expiry);
        self.optional_times(one, two, "another next expiry")
    }

    fn holders(&self, store: &[HolderView], expected: &[HolderView]) -> Compared {
        same(store.len() == expected.len(), "other holders shown")?;
        for (one, two) in store.iter().zip(expected) {
            let what = (one.owner, one.mode, one.fence);
            let other = (two.owner, two.mode, two.fence);
            same(what == other, "another holder shown")?;
            same(one.party == two.party, "another party shown")?;
            self.optional_times(one.since, two.since, "held since another time")?;
            self.optional_times(one.expiry, two.expiry, "another expiry shown")?;
        }
        Ok(())
    }

    fn snapshots(&self, store: &Snapshot, expected: &Snapshot) -> Compared {
        same(store.kind == expected.kind, "another kind")?;
        let (one, two) = (store.last_fence, expected.last_fence);
        same(one == two, "another last fence")?;
        self.holders(&store.holders, &expected.holders)?;
        let (ones, twos) = (&store.waiters, &expected.waiters);
        same(ones.len() == twos.len(), "other waiters shown")?;
        for (one, two) in ones.iter().zip(twos) {
            let what = (one.owner, one.mode, &one.party);
            let other = (two.owner, two.mode, &two.party);
            same(what == other, "another waiter shown")?;
            self.times(one.since, two.since, "waiting since another time")?;
        }
        Ok(())
    }

    fn forced(&self, store: Option<&ForcedRelease>, expected: Option<&ForcedRelease>) -> Compared {
        match (store, expected) {
            (Some(one), Some(two)) => {
                let what = (one.owner, one.fence, &one.by, &one.reason);
                let other = (two.owner, two.fence, &two.by, &two.reason);
                same(what == other, "another forced release")?;
                self.times(one.at, two.at, "forced at another time")
            }
            (None, None) => Ok(()),
            _ => Err("another word about force"),
        }
    }

    /// The same grants, for each name in the same order.
    pub(crate) fn pushes(&self, store: &[PushedGrant], expected: &[PushedGrant]) -> Compared {
        same(
            store.len() == expected.len(),
            "another number of pushed grants",
        )?;
        let sorted = |grants: &[PushedGrant]| {
            let mut grants = grants.to_vec();
            grants.sort_by(|one, two| (&one.name, one.fence).cmp(&(&two.name, two.fence)));
            grants
        };
        for (one, two) in sorted(store).iter().zip(&sorted(expected)) {
            let what = (&one.name, one.owner, one.fence);
            let other = (&two.name, two.owner, two.fence);
            same(what == other, "another grant pushed")?;
            self.times(one.now, two.now, "pushed at another time")?;
            self.times(one.expiry, two.expiry, "another expiry pushed")?;
        }
        Ok(())
    }

    fn counts(&self, store: u32, expected: u32, words: &'static str) -> Compared {
        let most = expected.saturating_add(self.silent);
        same((expected..=most).contains(&store), words)
    }

    fn times(&self, store: Timestamp, expected: Timestamp, words: &'static str) -> Compared {
        let off = store.since(expected) + expected.since(store);
        same(off <= self.tolerance, words)
    }

    fn optional_times(
        &self,
        store: Option<Timestamp>,
        expected: Option<Timestamp>,
        words: &'static str,
    ) -> Compared {
        match (store, expected) {
            (Some(one), Some(two)) => self.times(one, two, words),
            (None, None) => Ok(()),
            _ => Err(words),
        }
    }
}
