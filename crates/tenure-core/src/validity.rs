//! [`Validity`]: how long a holder may believe that it holds. The one place where a store's time is
//! turned into local time.

use std::time::Duration;

use crate::{Moment, Timestamp};

/// Until when, by the local clock, a hold may be relied upon.
///
/// # Clock assumptions
/// The two clocks run at rates that differ by at most 0.1 %, and during one lease the store's clock
/// gains at most the margin (1 % of the lease, at least 50 ms), by step or slew. Then `until` comes
/// strictly before anybody else can hold the lock, because it counts from *before the request was
/// sent*, and the store's decision came after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Validity {
    /// From this moment on the hold must not be relied upon.
    pub until: Moment,
}

/// What a pushed grant is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushedValidity {
    /// As long as this.
    Trusted(Validity),
    /// The store's clock seems to have stepped: renew before believing anything.
    ConfirmFirst,
}

impl Validity {
    /// Of a grant or renewal until `expiry`, decided at `now`, asked for by a request that had not
    /// yet been written at `sent`.
    #[must_use]
    pub fn of_reply(sent: Moment, now: Timestamp, expiry: Timestamp) -> Self {
        let lease = expiry.since(now);
        Self {
            until: sent.plus(shrunk(lease).saturating_sub(margin(lease))),
        }
    }

    /// Of a grant until `expiry` that was pushed at `now` and received at `received`.
    ///
    /// A push answers no request, so its age is unknown; but the store's clock at an earlier reply
    /// (`earlier_now`, to a request sent at `earlier_sent`) anchors it: the grant ends no earlier
    /// than `expiry - earlier_now` after `earlier_sent`. So the store's clock must keep to the
    /// assumptions from that reply on; a step in between is only noticed if it is longer than both
    /// messages were under way.
    #[must_use]
    pub fn of_push(
        (earlier_sent, earlier_now): (Moment, Timestamp),
        received: Moment,
        now: Timestamp,
        expiry: Timestamp,
    ) -> PushedValidity {
        let elapsed_here = received.since(earlier_sent);
        let elapsed_there = now.since(earlier_now);
        if elapsed_there > elapsed_here + elapsed_here / 1000 {
            return PushedValidity::ConfirmFirst;
        }
        let lease = expiry.since(now);
        let anchored = earlier_sent.plus(shrunk(expiry.since(earlier_now)));
        let at_most = received.plus(lease);
        let until = anchored.min(at_most).minus(margin(lease));
        PushedValidity::Trusted(Self { until })
    }

    /// What is left at `now`.
    #[must_use]
    pub fn remaining(self, now: Moment) -> Duration {
        self.until.since(now)
    }
}

/// The safety margin of a lease: 1 % of it, at least 50 ms.
fn margin(lease: Duration) -> Duration {
    (lease / 100).max(Duration::from_millis(50))
}

/// `lease` less 0.1 %, for clocks that run at different rates.
fn shrunk(lease: Duration) -> Duration {
    lease.saturating_sub(lease / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Moment = Moment::from_nanos(5_000_000_000);
    const NOW: Timestamp = Timestamp::from_micros(900_000_000);

    #[test]
    fn counts_from_before_the_request_and_keeps_a_margin() {
        let validity = Validity::of_reply(SENT, NOW, NOW.plus(Duration::from_secs(30)));
        assert_eq!(
            validity.until,
            SENT.plus(Duration::from_millis(30_000 - 30 - 300))
        );
        let short = Validity::of_reply(SENT, NOW, NOW.plus(Duration::from_secs(1)));
        assert_eq!(short.until, SENT.plus(Duration::from_millis(1000 - 1 - 50)));
    }

    #[test]
    fn a_lease_shorter_than_the_margin_is_worth_nothing() {
        let validity = Validity::of_reply(SENT, NOW, NOW.plus(Duration::from_millis(20)));
        assert_eq!(validity.until, SENT);
        assert_eq!(
            Validity::of_reply(SENT, NOW, Timestamp::from_micros(1)).until,
            SENT
        );
    }

    #[test]
    fn a_push_is_anchored_at_an_earlier_reply() {
        let second = Duration::from_secs(1);
        let received = SENT.plus(second * 3);
        // Pushed 2 s after the earlier reply, received 1 s later: the delay does not prolong it.
        let validity = Validity::of_push(
            (SENT, NOW),
            received,
            NOW.plus(second * 2),
            NOW.plus(second * 7),
        );
        let expected = SENT.plus(second * 7 - second * 7 / 1000 - Duration::from_millis(50));
        assert_eq!(
            validity,
            PushedValidity::Trusted(Validity { until: expected })
        );
    }

    #[test]
    fn a_push_is_trusted_as_long_as_the_clocks_may_differ_in_rate_alone() {
        let second = Duration::from_secs(1);
        let received = SENT.plus(second * 100);
        let at = |elapsed| {
            let now = NOW.plus(elapsed);
            Validity::of_push((SENT, NOW), received, now, now.plus(second * 5))
        };
        let confirm = PushedValidity::ConfirmFirst;
        let most = second * 100 + second / 10;
        assert_ne!(at(second * 100), confirm);
        assert_ne!(at(most), confirm);
        assert_eq!(at(most + Duration::from_micros(1)), confirm);
    }

    #[test]
    fn what_is_left_of_a_validity_counts_to_its_end() {
        let until = SENT.plus(Duration::from_secs(5));
        let validity = Validity { until };
        assert_eq!(validity.remaining(SENT), Duration::from_secs(5));
        assert_eq!(validity.remaining(until), Duration::ZERO);
    }

    #[test]
    fn a_push_from_a_clock_that_ran_ahead_must_be_confirmed() {
        let second = Duration::from_secs(1);
        let stepped = NOW.plus(second * 60);
        let validity = Validity::of_push(
            (SENT, NOW),
            SENT.plus(second),
            stepped,
            stepped.plus(second * 5),
        );
        assert_eq!(validity, PushedValidity::ConfirmFirst);
    }
}
