//! [`Sight`]: what the store's clock has surely reached, from what it said last.

use std::time::Duration;

use tenure_core::Moment;

use crate::link::Seen;

/// What the store's clock had surely reached at some moment of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) at: Moment,
    pub(super) micros: u64,
}

/// Rates of clocks differ by no more: one part in so many.
const DISCOUNT: u64 = 1_000;
/// An answer that was longer under way than this tells nothing of the time meanwhile.
const UNDER_WAY: Duration = Duration::from_millis(50);

impl Sight {
    /// From one answer.
    pub(super) fn of(seen: Seen) -> Self {
        Self {
            at: seen.received,
            micros: seen.now.as_micros(),
        }
    }

    /// What the store's clock has surely reached at `now`, in microseconds.
    pub(super) fn surely_reached(self, now: Moment) -> u64 {
        let passed = u64::try_from(now.since(self.at).as_micros()).unwrap_or(0);
        let discount = passed.div_ceil(DISCOUNT);
        self.micros.saturating_add(passed - discount)
    }

    /// Goes by a later answer from now on, also if it is behind: then it is another clock, or it was set back. What
    /// an answer that took its time seems to be behind is not believed.
    pub(super) fn follow(&mut self, seen: Seen) {
        if seen.received <= self.at {
            return;
        }
        let under_way = seen.received.since(seen.sent).min(UNDER_WAY);
        let at_most = seen.now.plus(under_way).as_micros();
        let expected = self.surely_reached(seen.received);
        *self = Self::of(seen);
        if expected <= at_most {
            self.micros = self.micros.max(expected);
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::Timestamp;

    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn seen(sent: u64, received: u64, now: u64) -> Seen {
        Seen {
            sent: at(sent),
            received: at(received),
            now: Timestamp::from_micros(now * 1_000),
        }
    }

    #[test]
    fn the_stores_time_is_never_overestimated_by_a_clock_that_is_a_little_fast() {
        let start = at(5_000);
        let sight = Sight {
            at: start,
            micros: 1_000,
        };
        assert_eq!(sight.surely_reached(start), 1_000);
        // Our clock says that 1001 µs have passed where 1000 have.
        let later = start.plus(Duration::from_micros(1_001));
        assert!(sight.surely_reached(later) <= 2_000);
        assert_eq!(sight.surely_reached(at(0)), 1_000, "never backwards");
    }

    #[test]
    fn a_clock_that_is_behind_is_followed_at_once() {
        let mut sight = Sight::of(seen(0, 0, 100_000));
        sight.follow(seen(1_000, 1_001, 98_000));
        assert_eq!(sight.surely_reached(at(1_001)), 98_000_000);
    }

    #[test]
    fn an_answer_that_took_its_time_does_not_set_it_back() {
        let mut sight = Sight::of(seen(0, 0, 100_000));
        sight.follow(seen(1_000, 1_040, 101_000));
        let reached = sight.surely_reached(at(1_040));
        assert!((101_038_000..=101_040_000).contains(&reached), "{reached}");
    }

    #[test]
    fn an_older_answer_changes_nothing() {
        let mut sight = Sight::of(seen(0, 10, 100_000));
        let before = sight;
        sight.follow(seen(5, 9, 1));
        assert_eq!(sight, before);
    }
}
