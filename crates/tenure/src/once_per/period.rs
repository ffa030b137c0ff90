//! When a period ends, by the store's clock. Pure.

use std::time::Duration;

use tenure_core::{Error, ErrorKind, Spelled, Timestamp, Ttl};

/// A length of time, and when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    length: Duration,
    begins: Begins,
}

/// When a period begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// At whole multiples of its length since the store's epoch, moved by this much.
    Aligned(Duration),
    /// With the run that is counted.
    WithTheRun,
}

impl Period {
    pub(crate) fn new(length: Duration, begins: Begins) -> Result<Self, Error> {
        if length < Ttl::MIN.duration() || length > Ttl::MAX.duration() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a period of {} is out of range: choose from 100 ms to 366 days",
                    Spelled(length)
                ),
            ));
        }
        Ok(Self { length, begins })
    }

    /// The end of the period in which a run that starts at `started` is counted.
    pub(crate) fn end(self, started: Timestamp) -> Timestamp {
        match self.begins {
            Begins::WithTheRun => started.plus(self.length),
            Begins::Aligned(offset) => {
                let length = micros(self.length);
                let offset = micros(offset) % length;
                let passed = (started.as_micros() % length + length - offset) % length;
                started.plus(Duration::from_micros(length - passed))
            }
        }
    }
}

fn micros(duration: Duration) -> u64 {
    // At most 366 days, or a remainder of it.
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(hours: u32) -> Timestamp {
        Timestamp::from_micros(0).plus(HOUR * hours)
    }

    fn day(begins: Begins) -> Period {
        Period::new(HOUR * 24, begins).unwrap()
    }

    #[test]
    fn an_aligned_day_ends_at_midnight_of_the_stores_clock() {
        let day = day(Begins::Aligned(Duration::ZERO));
        assert_eq!(day.end(at(24 * 700 + 3)), at(24 * 701));
        assert_eq!(day.end(at(24 * 700 + 23)), at(24 * 701));
        assert_eq!(day.end(at(24 * 701)), at(24 * 702), "midnight is the next");
    }

    #[test]
    fn an_offset_moves_it_and_more_than_a_period_is_none() {
        for offset in [HOUR * 6, HOUR * 30] {
            let day = day(Begins::Aligned(offset));
            assert_eq!(day.end(at(24 * 700 + 5)), at(24 * 700 + 6));
            assert_eq!(day.end(at(24 * 700 + 6)), at(24 * 701 + 6));
        }
    }

    #[test]
    fn a_sliding_day_ends_a_day_after_the_run_began() {
        assert_eq!(day(Begins::WithTheRun).end(at(7)), at(31));
    }

    #[test]
    fn what_no_lease_can_last_is_refused() {
        let refused = |length| Period::new(length, Begins::WithTheRun).unwrap_err().kind();
        assert_eq!(refused(Duration::ZERO), ErrorKind::InvalidInput);
        assert_eq!(refused(HOUR * 24 * 367), ErrorKind::InvalidInput);
    }
}
