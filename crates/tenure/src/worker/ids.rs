//! [`Ids`]: 63-bit ids from a leased number and the store's time. Why they cannot repeat is argued here,
//! and once more in decision 013.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{Clocks, Error, ErrorKind, Moment, Retry};

use super::WorkerNumber;
use super::sight::Sight;
use super::stamp::{self, Stamp, WORKER_BITS};

/// Makes ids of 63 bits that grow with time, without asking anybody: "snowflakes".
///
/// | bits | what |
/// |---|---|
/// | 42 | milliseconds since 1970 by the store's clock, until 2109 |
/// | 10 | the worker's number |
/// | 11 | counts within the millisecond: 2048 ids, two million a second and worker |
///
/// # What is not guaranteed
/// - **A store that forgot a number and has a clock that is behind by more than a second** may give it to somebody who
///   repeats ids of its predecessor: an empty restart with a clock that was set back, or a failover that lost the lease to a
///   server that is behind by more than `max_ttl` (30 s), which a new server waits; by more than a second with `recovery=off`.
///   So it is with a number that was taken by force.
/// - **The servers of a quorum must agree on the time within a second** (`tenure doctor` says whether they do): its fences are
///   estimates, made by whichever of them answer.
/// - A server that takes over, or a slot that moves, with its data may be behind as far as it likes: that costs waiting or an
///   error, but repeats no id. A number that is dropped is then given back only when the new clock has passed its last id. (If the
///   clock changes between that look and the release right after it, by more than a second, ids may repeat.)
/// - In `memory:` ids begin anew with the process.
/// - Order between workers is that of their ideas of the store's time, usually some milliseconds apart, at most 60 ms plus a round
///   trip as long as [`next`](Self::next) is used and the store answers, and as much as the clocks of two servers differ.
///
/// # Why they are unique
/// No clock of this machine is believed but to measure how long ago the store told its time, and that
/// with a discount of 0.1 %: so the time in an id is never later than the store's. Whether the
/// number is still ours is judged *by the same reading of the clock*. So an id is
/// earlier than the end of the lease, and whoever has the number next gets a fence from after that end,
/// and makes only ids that are later than its fence; by a second if it may come from another clock. A wall clock that
/// jumps, a process that is paused between any two instructions, a number that is lost: none of it makes an id twice. A generator
/// whose number is lost makes no more ids.
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
    /// When somebody looked at the store's clock for its own sake.
    looked: Moment,
}

/// After this long the store is asked for its time again, so that the discount does not add up. Renewals usually tell it before.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// By so much the clocks of several servers may differ, and their estimates of each other's time.
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
        let further = match worker.clocks {
            Clocks::One => Duration::ZERO,
            Clocks::OneAtATime | Clocks::Several => ESTIMATE,
        };
        let sight = match (worker.clocks, worker.seen()) {
            // What it tells is its client's time, not that of its fences.
            (Clocks::Several, _) => Sight {
                at: worker.taken,
                micros: worker.fence().as_u64(),
            },
            // The fence will not do: it is ahead of a clock that was set back.
            (_, Some(seen)) => Sight::of(seen),
            (_, None) => look(&worker).await?,
        };
        let stamp = Stamp::after(worker.fence(), further, worker.number);
        let looked = sight.at;
        Ok(Self {
            worker,
            state: Mutex::new(State {
                sight,
                stamp,
                looked,
            }),
        })
    }

    /// The next id. Waits if 2048 were made in this millisecond, and at first: for a millisecond, or a second if the store may
    /// change its clock (everywhere but in memory and SQLite). If it hears nothing of the store for a minute, it asks it for its time.
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
    /// this is used, the time in ids falls behind by up to 0.1 % of the time between two renewals.
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
        let mut state = self.state();
        self.follow(&mut state);
        let millis = state.sight.surely_reached(now) / 1_000;
        if state.stamp.ahead_of(millis) > LONGEST_WAIT_MILLIS {
            let what = "the store's clock is behind a fence that it has given or an id that was made: it \
                        was set back, or another server's is behind; take another worker number, or wait";
            return Err(Error::new(ErrorKind::Refused, what));
        }
        if !stamp::fits(millis) {
            let what = "the store's clock shows a year after 2109: ids have no room for it";
            return Err(Error::new(ErrorKind::Refused, what).retrying(Retry::Never));
        }
        Ok(state.stamp.next(millis))
    }

    /// The worker's number, its fence, and whether it is lost.
    pub fn worker(&self) -> &WorkerNumber {
        &self.worker
    }

    /// Whatever the store answered last, to whomever, tells its time. So a server that has taken over is known by its first answer.
    fn follow(&self, state: &mut State) {
        if self.worker.clocks != Clocks::Several
            && let Some(seen) = self.worker.seen()
        {
            state.sight.follow(seen);
        }
    }

    /// Asks the store for its time if nobody has asked it anything for long. If it does not answer, ids lag behind a little more.
    async fn look_again(&self, now: Moment) {
        {
            let mut state = self.state();
            self.follow(&mut state);
            let due = state.sight.at.max(state.looked).plus(LOOK_AGAIN);
            if now < due || self.worker.clocks == Clocks::Several {
                return;
            }
            // Whoever comes meanwhile need not ask, too.
            state.looked = now;
        }
        // What it answers is seen above.
        let _ = look(&self.worker).await;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ids {
    /// By the clock of a server that has taken over since, the last id may be in the future: whoever had the number then would get
    /// a fence from before it.
    fn drop(&mut self) {
        let last = self.state().stamp.is_past_at();
        if let (Clocks::OneAtATime, Some(last)) = (self.worker.clocks, last) {
            self.worker.guard.keep_until(last);
        }
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
