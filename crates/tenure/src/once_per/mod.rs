//! [`OncePer`]: at most one counted run per period in the whole fleet.
//!
//! Two names: the lock of the given name, held while it runs (never two at once, also when a run
//! outlasts its period), and beside it a *record*, a lease that is left behind until the period ends and
//! stands for "counted". Why so: `docs/decisions/014-once-per-and-election.md`.

mod period;
mod record;
mod turn;

use std::fmt;
use std::time::Duration;

use tenure_core::{Error, ErrorKind, Lease, Mode, Retry, Timestamp, Ttl};

use self::period::{Begins, Period};
use crate::client::Tenure;
use crate::guard::Guard;
use crate::lock::Lock;

pub use self::record::{CountedRun, Ending};
pub use self::turn::{Once, OnceGuard, Turn};

/// How long to try to write the record, which nobody else should be writing.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// Something that is to be run at most once per period, by whoever comes first.
///
/// # What is not guaranteed
/// - **A server that loses its data forgets that it was counted**, and it runs again in the same period: an
///   empty restart, a failover before the record was replicated, `FLUSHALL`. The rule for servers that forgot
///   ([`connect`](crate::connect) and the docs of the stores) protects leases of up to `max_ttl` (30 s), not records.
///   Persistence and replicas do (`?min_replicas=`). SQLite keeps records over a reboot; memory keeps them as long
///   as the process.
/// - **Exactly once does not exist.** Counting successes (the default), a run that did its work and died before it could
///   say so is not counted, and is run again. Counting [starts](Self::count_starts), a run that died in the middle is
///   counted, and nobody makes up for it. Make the work harmless to repeat, or check [`Guard::fence`] where it writes.
/// - All times are the store's: if its wall clock jumps ahead, a period ends early. On a quorum they are its servers' when the client
///   connected: clients from before and after their clocks were set differ by so much.
/// - Everybody must name the same period. If they do not, that of the run which was counted holds.
///
/// Never two at once, as with any lock: a run that outlasts its period keeps the next one waiting. A run belongs to
/// the period in which it *started*.
///
/// ```
/// # async fn example() -> Result<(), tenure::Error> {
/// use std::time::Duration;
/// use tenure::Once;
///
/// # let tenure = tenure::connect("memory:").await?;
/// let nightly = tenure.once_per("nightly-report", Duration::from_secs(24 * 60 * 60));
/// match nightly.run(async |_guard| Ok::<_, std::io::Error>("report")).await? {
///     Once::Ran { result, recorded } => {
///         println!("{}", result.expect("did not fail"));
///         recorded?; // it succeeded, but somebody may run it again
///     }
///     Once::Counted(run) => println!("{run}"), // who, when, how it ended, until when it counts
/// }
/// # assert!(matches!(nightly.begin().await?, tenure::Turn::Counted(_)));
/// # Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "nothing runs until it is begun"]
pub struct OncePer {
    tenure: Tenure,
    name: String,
    length: Duration,
    begins: Begins,
    counting: Counting,
    /// Of the lock, and of the record until it is left behind.
    ttl: Duration,
    who: Option<String>,
    lock: Lock,
}

/// Which runs are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    Starts,
    Successes,
}

impl OncePer {
    pub(crate) fn new(tenure: Tenure, name: String, length: Duration) -> Self {
        let lock = tenure.lock(&name);
        Self {
            tenure,
            name,
            length,
            begins: Begins::Aligned(Duration::ZERO),
            counting: Counting::Successes,
            ttl: Ttl::DEFAULT.duration(),
            who: None,
            lock,
        }
    }

    /// The period begins with the counted run, instead of at whole multiples since the store's epoch (a day: at
    /// midnight UTC).
    ///
    /// A job that is started once a day by a clock is a little early on some days, and then skipped: choose
    /// a period a little shorter than the interval.
    pub fn sliding(mut self) -> Self {
        self.begins = Begins::WithTheRun;
        self
    }

    /// Aligned periods begin this much later: a day with an offset of 6 hours begins at 6:00 UTC.
    ///
    /// Choose it so that the job is *not* started at the boundary: those whose clock is a little ahead of the
    /// store's would belong to the period before. The clock of the memory store starts with the machine.
    pub fn offset(mut self, offset: Duration) -> Self {
        self.begins = Begins::Aligned(offset);
        self
    }

    /// Counts a run from its start, however it ends. By default only runs that succeed are counted,
    /// and after a failure the next who asks runs it again.
    pub fn count_starts(mut self) -> Self {
        self.counting = Counting::Starts;
        self
    }

    /// As [`Lock::ttl`], of the lock that is held while it runs.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lock = self.lock.ttl(ttl);
        self.ttl = ttl;
        self
    }

    /// As [`Lock::wait`]: how long to wait for somebody who is running it.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.lock = self.lock.wait(wait);
        self
    }

    /// As [`Lock::who`].
    pub fn who(mut self, who: &str) -> Self {
        self.lock = self.lock.who(who);
        self.who = Some(who.to_owned());
        self
    }

    /// The name under which the record is kept, which is seen in listings.
    #[must_use]
    pub fn record_name(&self) -> String {
        record::name(&self.name)
    }

    /// The run that is counted in the present period; `None` if nobody's is (yet).
    ///
    /// # Errors
    /// Whatever keeps the store from answering, and [`ErrorKind::InvalidInput`] for a bad name or period.
    pub async fn counted(&self) -> Result<Option<CountedRun>, Error> {
        self.period()?;
        self.look().await.map(|(_, counted)| counted)
    }

    /// Begins a run, or says who ran it before in this period. Waits for somebody who is running it, and
    /// then looks again.
    ///
    /// # Errors
    /// As [`Lock::acquire`], of which [`ErrorKind::Busy`] means that somebody is running it.
    ///
    /// # Cancel safety
    /// Dropping the future leaves neither lock nor queue place behind. If it was about to begin a run that
    /// counts from its start, that may count.
    pub async fn begin(&self) -> Result<Turn, Error> {
        match self.counted().await {
            Ok(Some(counted)) => return Ok(Turn::Counted(counted)),
            // An outage is sat out as the lock is told to, and under the lock it is looked again.
            Err(error) if error.retry() == Retry::Later => {}
            Err(error) => return Err(error),
            Ok(None) => {}
        }
        let guard = self.lock.clone().acquire().await?;
        self.begin_under(guard).await
    }

    /// Like [`begin`](Self::begin), for those who have taken the lock of this name themselves.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a guard of another name or a shared one; [`ErrorKind::Lost`]; whatever keeps
    /// the store from answering. The lock is then given back.
    ///
    /// # Cancel safety
    /// As [`begin`](Self::begin).
    pub async fn begin_under(&self, guard: Guard) -> Result<Turn, Error> {
        let period = self.period()?;
        if guard.name().as_str() != self.name || guard.mode() != Mode::Exclusive {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a run of {:?} needs the exclusive lock of that name",
                    self.name
                ),
            ));
        }
        let (started, counted) = self.look().await?;
        if let Some(counted) = counted {
            // Who cannot be told now that it is free learns it when the lease ends.
            let _ = guard.release().await;
            return Ok(Turn::Counted(counted));
        }
        let until = period.end(started);
        let claim = match self.counting {
            Counting::Successes => None,
            Counting::Starts => match self.claim(&guard, until.since(started)).await? {
                Ok(claim) => Some(claim),
                Err(counted) => return Ok(Turn::Counted(counted)),
            },
        };
        guard.ensure()?;
        Ok(Turn::Yours(OnceGuard {
            once: Box::new(self.clone()),
            guard,
            started,
            until,
            claim,
        }))
    }

    /// Begins, runs `work`, and tells how it ended: `Ok` is a success. If the lease is lost meanwhile, `work` is
    /// dropped where it stands.
    ///
    /// # What is not guaranteed
    /// `work` is only stopped at an await; what it started elsewhere goes on.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), and [`ErrorKind::Lost`].
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and gives the lock back in the background; counted is then only what
    /// counts from its start.
    pub async fn run<T, E: fmt::Display>(
        &self,
        work: impl AsyncFnOnce(&Guard) -> Result<T, E>,
    ) -> Result<Once<T, E>, Error> {
        let turn = match self.begin().await? {
            Turn::Yours(turn) => turn,
            Turn::Counted(counted) => return Ok(Once::Counted(counted)),
        };
        let worked = tokio::select! {
            biased;
            error = turn.guard.over() => Err(error),
            result = work(&turn.guard) => Ok(result),
        };
        let result = match worked {
            Ok(result) => result,
            Err(lost) => {
                // It counts if starts do, so it should say how it ended.
                let _ = turn.failed("the lock was lost").await;
                return Err(lost);
            }
        };
        let recorded = match &result {
            Ok(_) => turn.succeeded().await,
            Err(error) => turn.failed(&error.to_string()).await,
        };
        Ok(Once::Ran { result, recorded })
    }

    /// Counts from now, if nobody has been counted meanwhile.
    async fn claim(
        &self,
        guard: &Guard,
        rest: Duration,
    ) -> Result<Result<Lease, CountedRun>, Error> {
        match self.write(Mode::Exclusive, record::STARTED, rest).await {
            Ok(claim) => match guard.ensure() {
                Ok(()) => Ok(Ok(claim)),
                Err(lost) => {
                    // It has not started, so it should not count; if that fails, it does.
                    let _ = self.tenure.release_lease(&self.record_name(), claim).await;
                    Err(lost)
                }
            },
            Err(error) if error.kind() == ErrorKind::Busy => {
                // We were paused past our lease, and somebody else ran it.
                let (_, counted) = self.look().await?;
                counted.map(Err).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Leaves a record for `rest` from now. Not shorter: it is asked for later than `rest` was computed.
    async fn write(&self, mode: Mode, label: &str, rest: Duration) -> Result<Lease, Error> {
        let asked = self.tenure.clock().now();
        let both = self.tenure.rwlock(self.record_name());
        let record = match mode {
            Mode::Shared => both.read(),
            _ => both.write(),
        };
        let record = match &self.who {
            Some(who) => record.who(who),
            None => record,
        };
        let guard = record
            .reserved()
            .label(label)
            .ttl(self.ttl)
            .local_handover(false)
            .wait(WRITE_LIMIT)
            .acquire()
            .await?;
        let passed = self.tenure.clock().now().since(asked);
        // What has passed here has passed there, but for the difference of the clocks' rates.
        let rest = rest.saturating_sub(passed - passed / 1000);
        guard.leave_for(rest + Duration::from_millis(1)).await
    }

    async fn look(&self) -> Result<(Timestamp, Option<CountedRun>), Error> {
        let (now, snapshot) = self.tenure.inspect(&self.record_name()).await?;
        Ok((now, CountedRun::read(now, &snapshot)))
    }

    fn period(&self) -> Result<Period, Error> {
        Period::new(self.length, self.begins)
    }
}
