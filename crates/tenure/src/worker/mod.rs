//! [`WorkerNumber`]: a small number that nobody else has as long as this process lives; and in
//! `ids.rs` what it is good for: ids, put together in `stamp.rs` from what `sight.rs` knows of the store's time.

mod ids;
mod sight;
mod stamp;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tenure_core::{Clocks, Error, ErrorKind, Fence, LockName, Moment, Retry, Spelled};

use crate::client::Tenure;
use crate::guard::Guard;
use crate::link::Seen;
use crate::lock::Attempt;
use crate::random;
use crate::standing::Loss;

pub use ids::Ids;

/// A number from a pool that is described but not yet taken.
#[derive(Clone, Debug)]
#[must_use = "a number is not taken until it is acquired"]
pub struct WorkerPool {
    tenure: Tenure,
    name: String,
    size: u32,
    ttl: Option<Duration>,
    wait: Duration,
}

/// A small number, unique among the living: leased, and renewed in the background until it is released,
/// dropped or lost.
///
/// # What is not guaranteed
/// - **After it is lost, somebody else has it.** As with every lock, nothing stops this process from going on with it; ask
///   [`ensure`](Self::ensure) before each use, or await [`lost`](Self::lost) and stop. [`Ids`] needs neither.
/// - **The number of a process that ends without [`release`](Self::release)** (killed, crashed, or with a runtime that is gone before
///   what dropping starts is done) **stays taken until its lease ends**, 30 s if no [`ttl`](WorkerPool::ttl) is said: only SQLite sees
///   processes die. Make the pool larger than the fleet is when all of it restarts at once.
/// - The numbers in use are not the lowest, and a process that restarts gets another one.
///
/// ```
/// # async fn example() -> Result<(), tenure::Error> {
/// # let tenure = tenure::connect("memory:").await?;
/// let worker = tenure.worker_number("importers", 1024).acquire().await?;
/// assert!(worker.number() < 1024);
/// worker.ensure()?; // still mine?
/// worker.release().await
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "the number is released when this is dropped"]
pub struct WorkerNumber {
    tenure: Tenure,
    number: u32,
    guard: Guard,
    /// When the store had surely given it.
    taken: Moment,
    /// By how many clocks the store tells the time.
    clocks: Clocks,
}

/// What came of trying.
#[derive(Debug)]
enum Tried {
    Taken(WorkerNumber),
    Refused {
        /// For how long nobody is let in, because the store may have forgotten who has what.
        recovering: Option<Duration>,
    },
}

/// How many numbers are tried before the store is asked which are free: with half of them taken, one
/// in 250 has to.
const TRIES: usize = 8;
/// Longer than a store needs to recover from a loss of its data.
const WAIT: Duration = Duration::from_secs(45);
/// The first and the longest pause before it is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl WorkerPool {
    pub(crate) fn new(tenure: Tenure, name: String, size: u32) -> Self {
        Self {
            tenure,
            name,
            size,
            ttl: None,
            wait: WAIT,
        }
    }

    /// How long a number is kept for a process that died, unless the store sees it die; 30 s if nothing
    /// is said.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long to wait at most if all numbers are taken, or the store cannot be asked or recovers; 45 s
    /// if nothing is said. Whoever waits tries now and then: there is no queue.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Takes a number: one round trip while the pool is rather empty, a few if it is rather full.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if all are taken or the store recovers, which it says, [`ErrorKind::Unavailable`] if the store could not be asked, for as
    /// long as [`wait`](Self::wait) says; [`ErrorKind::InvalidInput`] for a bad name or an empty pool.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future leaves no number taken.
    pub async fn acquire(self) -> Result<WorkerNumber, Error> {
        LockName::new(&self.name)?;
        if self.size == 0 {
            let what = "a pool of no numbers: say how many there are, 1024 for example";
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        let clock = self.tenure.clock().clone();
        let deadline = clock.now().plus(self.wait);
        let mut pause = FIRST_PAUSE;
        loop {
            let failure = match self.try_some().await {
                Ok(Tried::Taken(number)) => return Ok(number),
                Ok(Tried::Refused { recovering }) => self.none_left(recovering),
                Err(error) if error.retry() == Retry::Later => error,
                Err(error) => return Err(error),
            };
            let left = deadline.since(clock.now());
            if left.is_zero() {
                return Err(failure);
            }
            clock.sleep(random::jittered(pause).min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Tries a few at random, then those of which the store says that they are free.
    async fn try_some(&self) -> Result<Tried, Error> {
        let mut tried = HashSet::new();
        // On a cluster, each slot recovers for itself.
        let mut recovers = None;
        for _ in 0..TRIES {
            let number = any_below(self.size);
            if !tried.insert(number) {
                continue;
            }
            match self.try_number(number).await? {
                Tried::Refused { recovering } => recovers = recovers.max(recovering),
                taken @ Tried::Taken(_) => return Ok(taken),
            }
        }
        let prefix = self.lock_name("");
        let listing = self.tenure.list(&prefix).await?;
        let held = listing.locks.iter();
        let held: HashSet<u32> = held
            .filter_map(|(name, _)| name.as_str().strip_prefix(&prefix)?.parse().ok())
            .collect();
        let mut free: Vec<u32> = (0..self.size).filter(|it| !held.contains(it)).collect();
        for _ in 0..TRIES.min(free.len()) {
            let chosen = any_below(u32::try_from(free.len()).unwrap_or(u32::MAX));
            let number = free.swap_remove(chosen as usize);
            match self.try_number(number).await? {
                Tried::Refused { recovering } => recovers = recovers.max(recovering),
                taken @ Tried::Taken(_) => return Ok(taken),
            }
        }
        let recovering = recovers;
        Ok(Tried::Refused { recovering })
    }

    async fn try_number(&self, number: u32) -> Result<Tried, Error> {
        let lock = self.tenure.lock(self.lock_name(&number.to_string()));
        let lock = lock.reserved();
        let lock = match self.ttl {
            Some(ttl) => lock.ttl(ttl),
            None => lock,
        };
        match lock.local_handover(false).try_acquire().await? {
            Attempt::Acquired(guard) => Ok(Tried::Taken(WorkerNumber {
                tenure: self.tenure.clone(),
                number,
                guard,
                taken: self.tenure.clock().now(),
                clocks: self.tenure.guarantees().clocks,
            })),
            Attempt::Busy(blocked) => Ok(Tried::Refused {
                recovering: blocked.recovering(),
            }),
        }
    }

    fn lock_name(&self, number: &str) -> String {
        format!("~worker:{}:{number}", self.name)
    }

    fn none_left(&self, recovering: Option<Duration>) -> Error {
        let Self { name, size, .. } = self;
        let what = match recovering {
            Some(left) => format!(
                "no number of {name:?} is given before the store has recovered, {} left: it may have \
                 forgotten which are taken",
                Spelled(left)
            ),
            None => format!("all {size} numbers of {name:?} are taken"),
        };
        Error::new(ErrorKind::Busy, what)
    }
}

impl WorkerNumber {
    /// The number, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Higher than the fence of whoever had this number before, for a resource that can refuse.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.guard.fence()
    }

    /// Whether it is still ours. Reads a clock, asks nobody.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] that says why.
    pub fn ensure(&self) -> Result<(), Error> {
        self.guard.ensure()
    }

    /// Waits until it is lost, and says why.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// Gives it back.
    ///
    /// # Errors
    /// As [`Guard::release`].
    ///
    /// # Cancel safety
    /// Dropping the future goes on releasing in the background.
    pub async fn release(self) -> Result<(), Error> {
        self.guard.release().await
    }

    /// A generator of ids that are never made twice, with this number in them.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a number of 1024 or more: there is no room for it in an id. Whatever
    /// keeps the store from telling its time.
    ///
    /// # Cancel safety
    /// Dropping the future gives the number back in the background.
    pub async fn into_ids(self) -> Result<Ids, Error> {
        Ids::new(self).await
    }

    /// What the store's clock said last.
    fn seen(&self) -> Option<Seen> {
        self.tenure.link().seen(self.guard.name())
    }
}

fn any_below(bound: u32) -> u32 {
    let number = RandomState::new().hash_one(()) % u64::from(bound.max(1));
    u32::try_from(number).unwrap_or(0)
}
