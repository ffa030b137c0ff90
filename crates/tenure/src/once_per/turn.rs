//! [`Turn`] and [`Once`]: whose turn it is; [`OnceGuard`]: a run that is under way, and how its end is written down.

use std::fmt;

use tenure_core::{Error, Lease, LockName, Mode, Outcome, Timestamp};

use super::OncePer;
use super::record::{self, CountedRun, Ending};
use crate::guard::Guard;
use crate::link::out_of_place;

/// What [`OncePer::begin`] found.
#[derive(Debug)]
#[must_use = "whoever drops its turn gives the lock back, and a run that ended well is not counted"]
pub enum Turn {
    /// Run it.
    Yours(OnceGuard),
    /// It was run before in this period.
    Counted(CountedRun),
}

/// What [`OncePer::run`] did.
#[derive(Debug)]
#[must_use]
pub enum Once<T, E> {
    /// It was ours to run.
    Ran {
        /// What the work returned.
        result: Result<T, E>,
        /// Whether the store was told how it ended. If not, and successes are counted, somebody may
        /// run it again in the same period.
        recorded: Result<(), Error>,
    },
    /// It was run before in this period, by somebody else or by us.
    Counted(CountedRun),
}

/// A run that is ours: the lock is held, and how it ends is to be told.
///
/// Dropped without telling, the lock is given back in the background; counted is then only what counts from
/// its start.
#[must_use = "tell how it ended: succeeded() or failed()"]
pub struct OnceGuard {
    pub(super) once: Box<OncePer>,
    pub(super) guard: Guard,
    pub(super) started: Timestamp,
    pub(super) until: Timestamp,
    /// What stands for our start, if starts are counted.
    pub(super) claim: Option<Lease>,
}

impl OnceGuard {
    /// The guard of the lock that is held while it runs, with the fence.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// When it started, by the store's clock.
    #[must_use]
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// It ended well: counts it, then gives the lock back.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the lock was lost before: somebody else may be running it, and a success is not counted.
    /// Otherwise what kept the store from being told; then a success may not be counted, and somebody
    /// may run it again.
    ///
    /// # Cancel safety
    /// Dropping the future may leave a success uncounted; the lock is given back in the background.
    pub async fn succeeded(self) -> Result<(), Error> {
        self.end(Ending::Succeeded).await
    }

    /// It did not end well; `how` is for people. Then gives the lock back. Whoever asks next runs it again, unless
    /// starts are counted.
    ///
    /// # Errors
    /// As [`succeeded`](Self::succeeded).
    ///
    /// # Cancel safety
    /// As [`succeeded`](Self::succeeded).
    pub async fn failed(self, how: &str) -> Result<(), Error> {
        self.end(Ending::Failed(how.to_owned())).await
    }

    async fn end(self, ending: Ending) -> Result<(), Error> {
        let recorded = match (self.claim, &ending) {
            (Some(claim), _) => self.rewrite(claim, &ending).await,
            (None, Ending::Succeeded) => self.count(&ending).await,
            (None, _) => Ok(()),
        };
        let released = self.guard.release().await;
        recorded.and(released)
    }

    /// Counts a success, while the lock is still held.
    async fn count(&self, ending: &Ending) -> Result<(), Error> {
        self.guard.ensure()?;
        let (now, counted) = self.once.look().await?;
        let rest = self.until.since(now);
        if counted.is_some() || rest.is_zero() {
            // Its period is over: the next one has a run of its own.
            return Ok(());
        }
        let label = record::label(ending, now.since(self.started));
        self.once
            .write(Mode::Exclusive, &label, rest)
            .await
            .map(drop)
    }

    /// Puts the end in the place of the start, so that at no time there is neither.
    async fn rewrite(&self, claim: Lease, ending: &Ending) -> Result<(), Error> {
        let once = &self.once;
        let name = LockName::new(once.record_name())?;
        let converted = once.tenure.convert_lease(&name, claim).await?;
        let rest = self.until.since(converted.now);
        match converted.outcome {
            Outcome::Converted { .. } if !rest.is_zero() => {}
            // Its period is over, or somebody wants it to be run again.
            Outcome::Converted { .. } | Outcome::NotHeld { .. } | Outcome::Forgotten { .. } => {
                return Ok(());
            }
            other => return Err(out_of_place("convert", &other)),
        }
        let label = record::label(ending, converted.now.since(self.started));
        once.write(Mode::Shared, &label, rest).await?;
        once.tenure.release_lease(name.as_str(), claim).await
    }
}

impl fmt::Debug for OnceGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceGuard")
            .field("guard", &self.guard)
            .field("started", &self.started)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}
