//! [`Ids`]: 63-bit ids from a leased number and the store's time. Why they cannot repeat is argued here,
//! and once more in decision 013.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{Error, ErrorKind, Fence, Moment, Retry};

use super::WorkerNumber;

/// Makes ids of 63 bits that grow with time, without asking anybody: "snowflakes".
///
/// | bits | what |
/// |---|---|
/// | 42 | milliseconds since 1970 by the store's clock, until 2109 |
/// | 10 | the worker's number |
/// | 11 | counts within the millisecond: 2048 ids, two million a second and worker |
///
/// # What is not guaranteed
/// - **A store whose clock is set back while a number changes hands**: whoever gets it next may repeat ids of its predecessor,
///   if that made some in the time that now comes once more. Otherwise such a clock costs waiting, or an error. (SQLite's cannot be
///   set.) The same with a failover, a slot that moves, or a quorum, where the next clock is behind the last one
///   by more than the round trips in between; and with a number that was taken by force, until its holder notices. In `memory:` ids begin anew
///   with the process.
/// - Order between workers is that of their ideas of the store's time, usually some milliseconds apart, at most 60 ms plus a round trip as
///   long as [`next`](Self::next) is used and the store answers.
///
/// # Why they are unique
/// No clock of this machine is believed but to measure how long ago the store told its time, and that
/// with a discount of 0.1 %: so the time in an id is never later than the store's. Whether the
/// number is still ours is judged *by the same reading of the clock*. So an id is
/// earlier than the end of the lease, and whoever has the number next gets a fence from after that end,
/// and makes only ids that are later than its fence. A wall clock that jumps, a process that is
/// paused between any two instructions, a number that is lost: none of it makes an id twice. A generator whose number is lost
/// makes no more ids.
///
/// ```
/// # async fn example() -> Result<(), tenure::Error> {
/// # let tenure = tenure::connect("memory:").await?;
/// let ids = tenure.worker_number("ids", 1024).acquire().await?.into_ids().await?;
/// let (first, second) = (ids.next().await?, ids.next().await?);
/// assert!(first < second && second < 1 << 63);
/// # Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
pub struct Ids {
    worker: WorkerNumber,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sight: Sight,
    stamp: Stamp,
}

/// What the store's clock had surely reached at some moment of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sight {
    at: Moment,
    micros: u64,
}

/// The last id of a worker. Pure: the time is an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    worker: u64,
    millis: u64,
    count: u64,
}

const MILLIS_BITS: u32 = 42;
const WORKER_BITS: u32 = 10;
const COUNT_BITS: u32 = 11;

/// Rates of clocks differ by no more: one part in so many.
const DISCOUNT: u64 = 1_000;
/// After this long the store is asked for its time again, so that the discount does not add up.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// The fences of a quorum are estimates of its members' time, off by a round trip or two.
const ESTIMATE: Duration = Duration::from_secs(1);
/// A wait for the store's clock that is longer than this is no wait but a clock that was set back.
const LONGEST_WAIT_MILLIS: u64 = 5_000;

impl Ids {
    pub(super) async fn new(worker: WorkerNumber) -> Result<Self, Error> {
        if worker.number >> WORKER_BITS != 0 {
            let what = format!(
                "worker number {}: an id has room for numbers below {}, so take it from a pool of \
                 that size",
                worker.number,
                1 << WORKER_BITS
            );
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        let (sight, further) = if worker.has_one_clock() {
            // The fence will not do: it is ahead of a clock that was set back.
            (look(&worker).await?, Duration::ZERO)
        } else {
            let (at, micros) = (worker.taken, worker.fence().as_u64());
            (Sight { at, micros }, ESTIMATE)
        };
        let stamp = Stamp::after(worker.fence(), further, worker.number);
        Ok(Self {
            worker,
            state: Mutex::new(State { sight, stamp }),
        })
    }

    /// The next id. Waits if 2048 were made in this millisecond, and for a millisecond at first (a
    /// second on a quorum); asks the store for its time once a minute.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] once the number is lost: take another one. [`ErrorKind::Refused`] if the store's
    /// clock was set back so far that one would have to wait for more than five seconds.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&self) -> Result<u64, Error> {
        let clock = self.worker.tenure.clock().clone();
        loop {
            self.look_again(clock.now()).await;
            match self.try_next()? {
                Some(id) => return Ok(id),
                None => clock.sleep(Duration::from_millis(1)).await,
            }
        }
    }

    /// The next id, if one can be had in this millisecond. Never waits and never asks the store; if only
    /// this is used, the time in ids falls behind by up to 0.1 %.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn try_next(&self) -> Result<Option<u64>, Error> {
        // The one reading that judges the lease and makes the id.
        let now = self.worker.tenure.clock().now();
        let valid = self.worker.guard.valid_until();
        if valid.is_none_or(|until| until <= now) {
            self.worker.ensure()?;
            let what = "the worker number was lost just now";
            return Err(Error::new(ErrorKind::Lost, what));
        }
        let State { sight, stamp } = &mut *self.state();
        let millis = sight.surely_reached(now) / 1_000;
        if stamp.millis.saturating_sub(millis) > LONGEST_WAIT_MILLIS {
            let what = "the store's clock is behind a fence that it has given: it was set back; take \
                        another worker number, or wait";
            return Err(Error::new(ErrorKind::Refused, what));
        }
        if millis >> MILLIS_BITS != 0 {
            let what = "the store's clock shows a year after 2109: ids have no room for it";
            return Err(Error::new(ErrorKind::Refused, what).retrying(Retry::Never));
        }
        Ok(stamp.next(millis))
    }

    /// The worker's number, its fence, and whether it is lost.
    pub fn worker(&self) -> &WorkerNumber {
        &self.worker
    }

    /// Asks the store for its time now and then. If it does not answer, ids lag behind a little more.
    async fn look_again(&self, now: Moment) {
        let due = self.state().sight.at.plus(LOOK_AGAIN);
        if now < due || !self.worker.has_one_clock() {
            return;
        }
        // Whoever comes meanwhile need not ask, too.
        self.state().sight.renew_at(now);
        if let Ok(sight) = look(&self.worker).await {
            self.state().sight = sight;
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the store for its time.
async fn look(worker: &WorkerNumber) -> Result<Sight, Error> {
    let name = worker.guard.name().as_str();
    let (time, _) = worker.tenure.inspect(name).await?;
    Ok(Sight {
        at: worker.tenure.clock().now(),
        micros: time.as_micros(),
    })
}

impl Sight {
    /// What the store's clock has surely reached at `now`, in microseconds.
    fn surely_reached(self, now: Moment) -> u64 {
        let passed = u64::try_from(now.since(self.at).as_micros()).unwrap_or(0);
        let discount = passed.div_ceil(DISCOUNT);
        self.micros.saturating_add(passed - discount)
    }

    /// The same, seen from a later moment.
    fn renew_at(&mut self, now: Moment) {
        let micros = self.surely_reached(now);
        *self = Self { at: now, micros };
    }
}

impl Stamp {
    /// Of a worker that has made no id yet: all of them will be later than its fence and `further`.
    fn after(fence: Fence, further: Duration, worker: u32) -> Self {
        let further = u64::try_from(further.as_micros()).unwrap_or(u64::MAX);
        Self {
            worker: worker.into(),
            millis: fence.as_u64().saturating_add(further) / 1_000,
            // None are left in the millisecond of the fence.
            count: (1 << COUNT_BITS) - 1,
        }
    }

    /// The next id at a time, unless all of its millisecond have been made.
    fn next(&mut self, millis: u64) -> Option<u64> {
        if millis > self.millis {
            self.millis = millis;
            self.count = 0;
        } else if self.count + 1 < 1 << COUNT_BITS {
            self.count += 1;
        } else {
            return None;
        }
        let worker = self.worker << COUNT_BITS;
        Some(self.millis << (WORKER_BITS + COUNT_BITS) | worker | self.count)
    }
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
        let id = stamp.next(1_700_000_000_124).unwrap();
        assert_eq!(id >> 21, 1_700_000_000_124);
        assert_eq!((id >> 11) & 1_023, 5);
        assert_eq!(id & 2_047, 0);
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
        let id = (0..2_048).filter_map(|_| stamp.next(last)).last();
        assert_eq!(id, Some(u64::MAX >> 1));
    }

    #[test]
    fn the_stores_time_is_never_overestimated_by_a_clock_that_is_a_little_fast() {
        let at = Moment::from_nanos(5_000_000_000);
        let sight = Sight { at, micros: 1_000 };
        assert_eq!(sight.surely_reached(at), 1_000);
        // Our clock says that 1001 µs have passed where 1000 have.
        let later = at.plus(Duration::from_micros(1_001));
        assert!(sight.surely_reached(later) <= 2_000);
        assert_eq!(
            sight.surely_reached(Moment::from_nanos(0)),
            1_000,
            "never backwards"
        );
        let mut renewed = sight;
        renewed.renew_at(later);
        let much_later = at.plus(Duration::from_secs(100));
        assert!(renewed.surely_reached(much_later) <= sight.surely_reached(much_later) + 1);
    }
}
