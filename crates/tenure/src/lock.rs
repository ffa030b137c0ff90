//! [`Lock`]: a lock that is described but not yet held, and [`RwLock`], which makes two of them.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Error, ErrorKind, LockName, Mode, Party, Ttl};
use tokio::sync::watch;

use crate::acquire::{self, Blocked, Wait, WaitReport, Wanted};
use crate::client::Client;
use crate::clock::bounded;
use crate::guard::Guard;
use crate::hold::Renewing;
use crate::link::CALL_LIMIT;
use crate::owner::Owner;

/// A lock that is described but not yet held. Nothing happens until it is acquired.
///
/// | option | if nothing is said |
/// |---|---|
/// | [`ttl`](Self::ttl) | 30 s, renewed every third of it |
/// | [`wait`](Self::wait) | [`acquire`](Self::acquire) waits for ever, [`try_acquire`](Self::try_acquire) never |
/// | [`no_renew`](Self::no_renew) | renewed for as long as the guard lives |
/// | [`hold_at_most`](Self::hold_at_most) | no limit |
/// | [`local_handover`](Self::local_handover) | allowed |
#[derive(Clone)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    client: Arc<Client>,
    owner: Option<Owner>,
    name: String,
    // Wrong values are kept until the lock is acquired, so that a chain of options needs no `?`.
    mode: Result<Mode, Arc<Error>>,
    ttl: Duration,
    wait: Wait,
    renewing: Renewing,
    hold_at_most: Option<Duration>,
    detached: bool,
    local_handover: bool,
    party: Party,
    report: Option<watch::Sender<WaitReport>>,
    /// Whether it is one of the records that the library itself keeps.
    reserved: bool,
}

/// What [`Lock::try_acquire`] found.
#[derive(Debug)]
#[must_use = "an acquired lock is released when it is dropped"]
pub enum Attempt {
    /// It is yours.
    Acquired(Guard),
    /// Somebody is in the way.
    Busy(Blocked),
}

impl Lock {
    pub(crate) fn new(client: Arc<Client>, name: String, mode: Result<Mode, Error>) -> Self {
        let party = client.party.clone();
        Self {
            client,
            owner: None,
            name,
            mode: mode.map_err(Arc::new),
            ttl: Ttl::DEFAULT.duration(),
            wait: Wait::Forever,
            renewing: Renewing::Yes,
            hold_at_most: None,
            detached: false,
            local_handover: true,
            party,
            report: None,
            reserved: false,
        }
    }

    /// One of the records that the library itself keeps, whose names begin with `~`.
    #[doc(hidden)]
    pub fn reserved(mut self) -> Self {
        self.reserved = true;
        self
    }

    pub(crate) fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// How long the lease lasts unless it is renewed: 100 ms to 366 days. It is also how long others
    /// wait if this process dies, so shorter is better; renewal keeps it alive.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long [`acquire`](Self::acquire) waits at most, also when the store hangs. Zero: not for
    /// others, and for the store's answer as long as [`try_acquire`](Self::try_acquire) would.
    pub fn wait(self, wait: Duration) -> Self {
        self.waiting(Wait::For(wait))
    }

    pub(crate) fn waiting(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// How many permits of a semaphore to take at once.
    pub fn permits(mut self, count: u32) -> Self {
        self.mode = match self.mode {
            Ok(Mode::Permits(permits)) => {
                Mode::permits(count, permits.capacity()).map_err(Arc::new)
            }
            Ok(_) => Err(Arc::new(Error::new(
                ErrorKind::InvalidInput,
                "only a semaphore has permits: use `semaphore(name, capacity)`",
            ))),
            Err(error) => Err(error),
        };
        self
    }

    /// Does not renew the lease: it ends after its ttl.
    pub fn no_renew(mut self) -> Self {
        self.renewing = Renewing::No;
        self
    }

    /// Stops renewing and gives the lock back after this long; the guard is then lost.
    pub fn hold_at_most(mut self, limit: Duration) -> Self {
        self.hold_at_most = Some(limit);
        self
    }

    /// The lease is meant to outlive this process: even a store that notices its death keeps the
    /// lease until its ttl has passed. For leases that are handed on with
    /// [`Guard::into_lease`].
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// With `false`, every grant is the store's: a release here lets in whoever waits longest among
    /// all processes.
    ///
    /// By default a hold may be handed on to the next task of this client that waits for it on the
    /// same terms, without asking the store. That is many times faster, and others are kept waiting
    /// for a bounded time only: after 32 grants, or 10 ms after the store's grant, the lock goes
    /// back to the store. Not handed on are holds that are shared, not renewed, limited, detached,
    /// prolonged or converted, that differ in ttl or label, or whose lease was asked for.
    ///
    /// Do not leave a future that waits in line unpolled: what it was handed then blocks others until
    /// its ttl has passed.
    pub fn local_handover(mut self, allowed: bool) -> Self {
        self.local_handover = allowed;
        self
    }

    /// A text that everybody sees who waits for this lock.
    pub fn label(mut self, label: &str) -> Self {
        self.party = Party::new(self.party.who(), label, self.party.host(), self.party.pid());
        self
    }

    /// Who holds or waits, in words for people; by default `user@host` of this process.
    pub fn who(mut self, who: &str) -> Self {
        self.party = Party::new(who, self.party.label(), self.party.host(), self.party.pid());
        self
    }

    /// Where to report how the wait is going: who holds the lock, how many wait before us, and
    /// whether the store answers.
    pub fn report_to(mut self, report: watch::Sender<WaitReport>) -> Self {
        self.report = Some(report);
        self
    }

    /// Takes the lock, waiting for it as long as [`wait`](Self::wait) allows, first come first
    /// served among all processes, but for short runs within one
    /// ([`local_handover`](Self::local_handover)).
    ///
    /// # What is not guaranteed
    /// See [`Guard`]: hold the fence against the resource.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if the wait ran out while others held it; [`ErrorKind::Unavailable`] if
    /// it ran out while the store could not be asked; [`ErrorKind::InvalidInput`] and
    /// [`ErrorKind::Conflict`] for a bad name, ttl or kind; what the store refuses for good.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future at any point leaves neither lock nor queue place behind.
    pub async fn acquire(self) -> Result<Guard, Error> {
        let wanted = self.wanted()?;
        match &self.owner {
            Some(owner) => owner.enter(&wanted, Some(self.wait)).await?.into_guard(),
            None => {
                let held = acquire::wait_for(&self.client, &wanted, self.wait).await?;
                Ok(Guard::new(&self.client, held))
            }
        }
    }

    /// Takes the lock if it can be had now. Never waits for others; waits for the store's answer at
    /// most two seconds, and asks again, a few times at most, if its answer came too late to be of
    /// use.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), except that busy is not an error.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future at any point leaves no lock behind.
    pub async fn try_acquire(self) -> Result<Attempt, Error> {
        let wanted = self.wanted()?;
        if let Some(owner) = &self.owner {
            return owner.enter(&wanted, None).await;
        }
        Ok(match acquire::try_once(&self.client, &wanted).await? {
            Ok(held) => Attempt::Acquired(Guard::new(&self.client, held)),
            Err(blocked) => Attempt::Busy(blocked),
        })
    }

    /// Acquires, runs `work`, releases. If the lease is lost meanwhile, `work` is dropped where it
    /// stands and the error says why.
    ///
    /// # What is not guaranteed
    /// `work` is only stopped at an await; what it started elsewhere goes on.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), and [`ErrorKind::Lost`]. A store that cannot be told of the
    /// release is not an error here and is not waited for: the work was done under the lock, and the
    /// release goes on in the background.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and releases in the background.
    ///
    /// ```
    /// # async fn example() -> Result<(), tenure::Error> {
    /// # let tenure = tenure::connect("memory:").await?;
    /// let answer = tenure.lock("x").run(async |guard| guard.fence().as_u64() + 1).await?;
    /// # assert!(answer > 1); Ok(()) }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn run<T>(self, work: impl AsyncFnOnce(&Guard) -> T) -> Result<T, Error> {
        let clock = self.client.link.clock().clone();
        let guard = self.acquire().await?;
        let outcome = tokio::select! {
            biased;
            error = guard.over() => Err(error),
            value = work(&guard) => Ok(value),
        };
        match outcome {
            Ok(value) => match bounded(&*clock, CALL_LIMIT, guard.release()).await {
                Some(Err(error)) if error.kind() == ErrorKind::Lost => Err(error),
                _ => Ok(value),
            },
            Err(error) => Err(error),
        }
    }

    fn wanted(&self) -> Result<Wanted, Error> {
        let mode = self
            .mode
            .as_ref()
            .map_err(|error| Error::new(error.kind(), error.message()).retrying(error.retry()))?;
        let name = LockName::new(&self.name)?;
        if name.is_reserved() && !self.reserved {
            return Err(Error::new(ErrorKind::InvalidInput, LockName::RESERVED));
        }
        Ok(Wanted {
            name,
            mode: *mode,
            ttl: Ttl::new(self.ttl)?,
            renewing: self.renewing,
            hold_at_most: self.hold_at_most,
            detached: self.detached,
            local_handover: self.local_handover,
            party: self.party.clone(),
            report: self.report.clone(),
        })
    }
}

impl Attempt {
    /// The guard, or the error that the lock is busy.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`].
    pub fn into_guard(self) -> Result<Guard, Error> {
        match self {
            Self::Acquired(guard) => Ok(guard),
            Self::Busy(blocked) => {
                let what = format!("the lock is busy: {blocked}");
                Err(Error::new(ErrorKind::Busy, what))
            }
        }
    }
}

/// A read/write lock that is described but not yet held.
///
/// Fair: readers who come after a waiting writer wait behind it, so nobody starves. Each reader has
/// its own lease: one that dies holds nobody up for longer than its own ttl.
#[derive(Clone)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct RwLock {
    client: Arc<Client>,
    owner: Option<Owner>,
    name: String,
}

impl RwLock {
    pub(crate) fn new(client: Arc<Client>, name: String) -> Self {
        Self {
            client,
            owner: None,
            name,
        }
    }

    pub(crate) fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// To read: together with other readers.
    pub fn read(&self) -> Lock {
        self.lock(Mode::Shared)
    }

    /// To write: alone. [`Guard::downgrade`] turns it into reading.
    pub fn write(&self) -> Lock {
        self.lock(Mode::Exclusive)
    }

    fn lock(&self, mode: Mode) -> Lock {
        let lock = Lock::new(self.client.clone(), self.name.clone(), Ok(mode));
        match &self.owner {
            Some(owner) => lock.owned_by(owner.clone()),
            None => lock,
        }
    }
}
