//! [`Stamp`]: how an id is put together. Pure: the time is an argument.

use std::time::Duration;

use tenure_core::{Fence, Timestamp};

/// The last id of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    worker: u64,
    millis: u64,
    count: u64,
    made: Made,
}

/// Whether there is a last id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    None,
    Some,
}

const MILLIS_BITS: u32 = 42;
pub(super) const WORKER_BITS: u32 = 10;
const COUNT_BITS: u32 = 11;

impl Stamp {
    /// Of a worker that has made no id yet: all of them will be later than its fence and `further`.
    pub(super) fn after(fence: Fence, further: Duration, worker: u32) -> Self {
        let further = u64::try_from(further.as_micros()).unwrap_or(u64::MAX);
        Self {
            worker: worker.into(),
            millis: fence.as_u64().saturating_add(further) / 1_000,
            // None are left in the millisecond of the fence.
            count: (1 << COUNT_BITS) - 1,
            made: Made::None,
        }
    }

    /// The next id at a time, unless all of its millisecond have been made.
    pub(super) fn next(&mut self, millis: u64) -> Option<u64> {
        if millis > self.millis {
            self.millis = millis;
            self.count = 0;
        } else if self.count + 1 < 1 << COUNT_BITS {
            self.count += 1;
        } else {
            return None;
        }
        self.made = Made::Some;
        let worker = self.worker << COUNT_BITS;
        Some(self.millis << (WORKER_BITS + COUNT_BITS) | worker | self.count)
    }

    /// How far ahead of `millis` its time is, in milliseconds.
    pub(super) fn ahead_of(&self, millis: u64) -> u64 {
        self.millis.saturating_sub(millis)
    }

    /// From then on nobody can make an id that this worker has made; `None` if it has made none.
    pub(super) fn is_past_at(&self) -> Option<Timestamp> {
        let end = Timestamp::from_micros((self.millis + 1).saturating_mul(1_000));
        (self.made == Made::Some).then_some(end)
    }
}

/// Whether an id has room for this time.
pub(super) fn fits(millis: u64) -> bool {
    millis >> MILLIS_BITS == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: Fence = Fence::from_u64(1_700_000_000_123_456);

    fn stamp() -> Stamp {
        Stamp::after(FENCE, Duration::ZERO, 5)
    }

    #[test]
    fn nothing_is_made_in_the_millisecond_of_the_fence() {
        let mut stamp = stamp();
        assert_eq!(stamp.next(1_700_000_000_122), None, "before");
        assert_eq!(
            stamp.next(1_700_000_000_123),
            None,
            "a predecessor may have made some"
        );
        assert_eq!(stamp.is_past_at(), None, "none was made");
        let id = stamp.next(1_700_000_000_124).unwrap();
        assert_eq!(id >> 21, 1_700_000_000_124);
        assert_eq!((id >> 11) & 1_023, 5);
        assert_eq!(id & 2_047, 0);
        let past = Timestamp::from_micros(1_700_000_000_125_000);
        assert_eq!(stamp.is_past_at(), Some(past));
    }

    #[test]
    fn ids_grow_whatever_the_time_does() {
        let mut stamp = stamp();
        let mut last = 0;
        for step in 0..20_000_u64 {
            let time = 1_700_000_000_200 + (step * 7_919) % 11;
            if let Some(id) = stamp.next(time) {
                assert!(id > last, "{id} after {last}");
                last = id;
            }
        }
        assert!(last > 0 && last < 1 << 63);
    }

    #[test]
    fn a_millisecond_has_room_for_2048() {
        let mut stamp = stamp();
        let made = (0..3_000).filter(|_| stamp.next(1_700_000_000_200).is_some());
        assert_eq!(made.count(), 2_048);
        assert!(stamp.next(1_700_000_000_201).is_some());
    }

    #[test]
    fn the_largest_of_everything_fits_63_bits() {
        let mut stamp = Stamp::after(Fence::from_u64(0), Duration::ZERO, 1_023);
        let last = (1 << MILLIS_BITS) - 1;
        assert!(fits(last) && !fits(last + 1));
        let id = (0..2_048).filter_map(|_| stamp.next(last)).last();
        assert_eq!(id, Some(u64::MAX >> 1));
    }
}
