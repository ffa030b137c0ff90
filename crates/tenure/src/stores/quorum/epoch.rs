//! The clocks of a quorum: its own, which is the client's with another zero, and what is known of
//! those of its members.

use std::time::Duration;

use tenure_core::{Moment, Timestamp};

use super::Shared;

/// Ties the quorum's timestamps to the client's clock. Every client of a quorum has a clock of its
/// own: what they have in common are the members' clocks, and only differences of those count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    start: Moment,
    reading: Timestamp,
}

/// What a member's clock showed in answer to a request that was sent at `sent`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) sent: Moment,
    pub(super) now: Timestamp,
}

impl Epoch {
    /// The quorum's clock shows `reading` at `start`.
    pub(super) fn new(start: Moment, reading: Timestamp) -> Self {
        Self { start, reading }
    }

    pub(super) fn timestamp(&self, moment: Moment) -> Timestamp {
        let before = self.start.since(moment).as_micros();
        let before = u64::try_from(before).unwrap_or(u64::MAX);
        let start = self.reading.as_micros().saturating_sub(before);
        Timestamp::from_micros(start).plus(moment.since(self.start))
    }

    pub(super) fn moment(&self, timestamp: Timestamp) -> Moment {
        let later = self.start.plus(timestamp.since(self.reading));
        later.minus(self.reading.since(timestamp))
    }
}

impl Reading {
    /// What the member's clock shows at `moment`, if it is as fast as ours.
    pub(super) fn at(&self, moment: Moment) -> Timestamp {
        self.now.plus(moment.since(self.sent))
    }

    /// When `there` is, by our clock, if the request that was answered took no time: as long after
    /// it was sent as `there` is after the answer. Earlier than the truth, never later.
    pub(super) fn here(&self, there: Timestamp) -> Moment {
        let later = self.sent.plus(there.since(self.now));
        later.minus(self.now.since(there))
    }

    /// The end of a lease that was to last `ttl` at most: a clock that was set back makes none longer.
    pub(super) fn end(&self, expiry: Timestamp, ttl: Duration) -> Moment {
        self.here(expiry.min(self.now.plus(ttl)))
    }
}

impl Shared {
    /// The latest that a request sent at `now` may be carried out, by the member's clock.
    pub(super) fn not_after(
        &self,
        member: usize,
        now: Moment,
        limit: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let member = &self.members[member];
        let ours = member.clock_at(now.plus(self.adrift()));
        let theirs = limit.and_then(|limit| {
            let passed = now.since(self.epoch.moment(limit));
            let reading = member.clock_at(self.epoch.moment(limit).max(now))?;
            let micros = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
            Some(Timestamp::from_micros(
                reading.as_micros().saturating_sub(micros),
            ))
        });
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn timestamps_and_moments_are_two_names_of_one_time() {
        let start = Moment::from_nanos(50_000_000_000);
        let epoch = Epoch::new(start, Timestamp::from_micros(1_000_000_000));
        for moment in [start, start.plus(SECOND * 7), start.minus(SECOND * 3)] {
            assert_eq!(epoch.moment(epoch.timestamp(moment)), moment);
        }
        let later = epoch.timestamp(start.plus(SECOND));
        assert_eq!(later.since(epoch.timestamp(start)), SECOND);
    }

    #[test]
    fn an_end_is_counted_from_before_the_request_and_is_no_later_than_asked_for() {
        let reading = Reading {
            sent: Moment::from_nanos(1_000),
            now: Timestamp::from_micros(77),
        };
        let in_ten = reading.now.plus(SECOND * 10);
        assert_eq!(
            reading.end(in_ten, SECOND * 30),
            reading.sent.plus(SECOND * 10)
        );
        assert_eq!(
            reading.end(in_ten, SECOND * 3),
            reading.sent.plus(SECOND * 3)
        );
        assert_eq!(
            reading.here(Timestamp::from_micros(76)),
            Moment::from_nanos(0)
        );
    }
}
