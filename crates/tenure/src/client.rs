//! [`Tenure`]: the client. Hands out locks, looks at them, and ends what is to be ended.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{
    Action, Convert, Error, ErrorKind, Fence, Finding, ForceRelease, Guarantees, Inbox, Lease,
    Listing, LockName, Mode, Outcome, OwnerId, Party, Recovering, Release, Renew, Request,
    Snapshot, Spelled, Store, Timestamp, Ttl,
};

use crate::all::All;
use crate::clock::Clock;
use crate::coalesce::Coalesce;
use crate::election::Election;
use crate::gate::Gates;
use crate::hold::{GivenUp, Hold};
use crate::identity;
use crate::keeper::{Errand, Keeper};
use crate::link::{Answer, CALL_LIMIT, Link, out_of_place};
use crate::lock::{Lock, RwLock};
use crate::mailbox::Mailbox;
use crate::once_per::OncePer;
use crate::owner::Owner;
use crate::random;
use crate::sequence::Sequence;
use crate::standing::Loss;
use crate::worker::WorkerPool;

/// A client of one store. Cheap to clone; all clones are the same client.
///
/// It lives on the tokio runtime that it was made on: its keeper, which renews leases, runs there.
/// When the last clone and the last guard are gone, what is still held is given back in the
/// background and the keeper ends.
#[derive(Clone)]
pub struct Tenure {
    client: Arc<Client>,
    anchor: Option<Arc<Anchor>>,
    protects: Option<Ttl>,
}

/// Gives the descriptor whose last copy proves to the store that a process is gone.
type Anchor = dyn Fn(&Inbox) -> Option<OwnedFd> + Send + Sync;

/// What all clones and guards share.
pub(crate) struct Client {
    pub(crate) link: Arc<Link>,
    pub(crate) keeper: Keeper,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) inbox: Inbox,
    pub(crate) gates: Gates,
    pub(crate) holds: Holds,
    pub(crate) party: Party,
}

/// Holds released in one call by [`Tenure::release_all`].
const RELEASED_AT_ONCE: usize = 100;

impl Tenure {
    /// A client of `store` whose leases are judged by `clock`. Most callers want
    /// [`connect`](crate::connect) instead.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] outside a tokio runtime; whatever the store answers to
    /// [`Store::listen`].
    pub async fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|cause| {
            Error::new(ErrorKind::Configuration, "tenure needs a tokio runtime").because(cause)
        })?;
        let mailbox = Arc::new(Mailbox::new(clock.clone()));
        let inbox = random::inbox()?;
        let listener: Weak<Mailbox> = Arc::downgrade(&mailbox);
        let link = Arc::new(Link::new(store, clock, runtime.clone()));
        link.patiently(link.store().listen(&inbox, listener))
            .await??;
        let client = Client {
            keeper: Keeper::start(&runtime, link.clone()),
            link,
            mailbox,
            inbox,
            gates: Gates::default(),
            holds: Holds::default(),
            party: identity::this_process(),
        };
        Ok(Self {
            client: Arc::new(client),
            anchor: None,
            protects: None,
        })
    }

    /// The same client, of a store that may forget longer leases than this.
    #[cfg(feature = "redis")]
    pub(crate) fn protecting(mut self, longest: Option<Ttl>) -> Self {
        self.protects = longest;
        self
    }

    /// The same client, of a store that can see a process die by a descriptor.
    #[cfg(feature = "sqlite")]
    pub(crate) fn anchored_by(
        mut self,
        anchor: impl Fn(&Inbox) -> Option<OwnedFd> + Send + Sync + 'static,
    ) -> Self {
        self.anchor = Some(Arc::new(anchor));
        self
    }

    /// The longest lease that nobody else is given while it lasts, even if the store forgets it (`?max_ttl=`
    /// of a Redis URL).
    ///
    /// **A longer one may be given away** when the server restarts without its data or is replaced: it
    /// waits for this long only, and the holder need not have renewed by then. Under `recovery=strict` longer ones are refused.
    ///
    /// `None` if the store makes no difference: one that never forgets, one that is not protected at
    /// all (`recovery=off`), or a store that was not made by [`connect`](crate::connect()).
    #[must_use]
    pub fn longest_protected_lease(&self) -> Option<Ttl> {
        self.protects
    }

    /// A mutex.
    ///
    /// ```
    /// # async fn example() -> Result<(), tenure::Error> {
    /// let tenure = tenure::connect("memory:").await?;
    /// let guard = tenure.lock("nightly-report").acquire().await?;
    /// println!("writing with fence {}", guard.fence());
    /// guard.release().await?;
    /// # Ok(()) }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn lock(&self, name: impl Into<String>) -> Lock {
        Lock::new(self.client.clone(), name.into(), Ok(Mode::Exclusive))
    }

    /// A read/write lock. A name that is only ever written is a mutex: both are the same kind.
    pub fn rwlock(&self, name: impl Into<String>) -> RwLock {
        RwLock::new(self.client.clone(), name.into())
    }

    /// A semaphore: one of `capacity` permits, or several with [`Lock::permits`]. Everybody must
    /// name the same capacity.
    pub fn semaphore(&self, name: impl Into<String>, capacity: u32) -> Lock {
        Lock::new(self.client.clone(), name.into(), Mode::permits(1, capacity))
    }

    /// Several mutexes at once, all or nothing, taken in sorted order so that two callers with the
    /// same names cannot block each other for ever.
    pub fn all<N: Into<String>>(&self, names: impl IntoIterator<Item = N>) -> All {
        All::new(self.clone(), names.into_iter().map(Into::into).collect())
    }

    /// An owner that may enter its own locks again. By default two tasks exclude each other even in
    /// one process; those that share an owner do not.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner::new(self.client.clone())
    }

    /// One leader among all who campaign under this name, with hot standbys.
    pub fn election(&self, name: impl Into<String>) -> Election {
        Election::new(self.clone(), name.into())
    }

    /// Something that the whole fleet is to run at most once per period, by the store's clock.
    pub fn once_per(&self, name: impl Into<String>, period: Duration) -> OncePer {
        OncePer::new(self.clone(), name.into(), period)
    }

    /// A cached value that one caller rebuilds when it is missing, and the others wait for.
    #[must_use]
    pub fn coalesce(&self, key: impl Into<String>) -> Coalesce {
        Coalesce::new(self.clone(), key.into())
    }

    /// Numbers that grow and are never given twice, with gaps.
    #[must_use]
    pub fn sequence(&self, name: impl Into<String>) -> Sequence {
        Sequence::new(self.clone(), name.into())
    }

    /// A number below `size` that nobody else in this pool has, for as long as this process lives.
    pub fn worker_number(&self, pool: impl Into<String>, size: u32) -> WorkerPool {
        WorkerPool::new(self.clone(), pool.into(), size)
    }

    /// Gives back everything that this client holds; its guards are not valid any more from the
    /// first poll on. Answers how many holds it ended.
    ///
    /// # Errors
    /// The first error of the store; what could not be told to it is tried again in the background.
    ///
    /// # Cancel safety
    /// Dropping the future leaves some of them released; their guards release the rest when dropped.
    pub async fn release_all(&self) -> Result<usize, Error> {
        let Client { link, keeper, .. } = &*self.client;
        let now = link.now();
        let mut holds = self.client.holds.all();
        holds.retain(|hold| hold.give_up(now) == GivenUp::Now);
        let mut released = 0;
        let mut failure = None;
        for part in holds.chunks(RELEASED_AT_ONCE) {
            if failure.is_some() {
                // The store is in trouble: do not keep the caller waiting for each part.
                for hold in part {
                    keeper.run(Errand::release(hold));
                }
                continue;
            }
            let batch: Vec<Request> = part.iter().map(|hold| release(hold)).collect();
            let early: Vec<bool> = part.iter().map(|hold| hold.is_in_flight()).collect();
            let answers = link.ask_all(&batch, CALL_LIMIT).await;
            for ((hold, early), answer) in part.iter().zip(early).zip(answers) {
                match answer {
                    Ok(answer) => {
                        let ended = matches!(
                            answer.outcome,
                            Outcome::Released | Outcome::Forgotten { .. }
                        );
                        released += usize::from(ended);
                        if early {
                            keeper.run(Errand::release(hold));
                        }
                    }
                    Err(error) => {
                        keeper.run(Errand::release(hold));
                        failure = failure.or(Some(error));
                    }
                }
            }
        }
        failure.map_or(Ok(released), Err)
    }

    /// Waits until everything that is being given back in the background (dropped guards, given-up
    /// attempts) has been given back. Call it before the process exits, with a bound of your own:
    /// a store that is down keeps it waiting until the leases have ended by themselves.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn settle(&self) {
        self.client.keeper.settle().await;
    }

    /// What can be seen of one lock.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a bad name, and whatever keeps the store from answering.
    pub async fn inspect(&self, name: &str) -> Result<(Timestamp, Snapshot), Error> {
        let answer = self
            .client
            .link
            .ask(&LockName::new(name)?, Action::Inspect)
            .await?;
        match answer.outcome {
            Outcome::State(snapshot) => Ok((answer.now, snapshot)),
            other => Err(out_of_place("inspect", &other)),
        }
    }

    /// All locks whose name begins with `prefix` and that somebody holds or waits for, sorted.
    ///
    /// # Errors
    /// Whatever keeps the store from answering.
    pub async fn list(&self, prefix: &str) -> Result<Listing, Error> {
        let link = &self.client.link;
        link.patiently(link.store().list(prefix)).await?
    }

    /// For how long the store lets nobody in, because it may have forgotten who holds what; `None` if it
    /// forgot nothing. **Until then [`inspect`](Self::inspect) and [`list`](Self::list) may miss holders**: a
    /// holder is seen again once it has renewed. Of the lock `name`, or of any. Only looks: a server that nobody has
    /// asked for a lock since it lost something does not open by waiting ([`Recovering::OnceAsked`]).
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub async fn recovering(&self, name: Option<&str>) -> Result<Option<Recovering>, Error> {
        let link = &self.client.link;
        let name = name.map(LockName::new).transpose()?;
        link.patiently(link.store().recovering(name.as_ref()))
            .await?
    }

    /// Prolongs a hold by its lease, from any process. Answers how long it is valid at least: no longer than `ttl`,
    /// although what ends later is not shortened.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if there is no such hold. [`ErrorKind::Refused`] if the store is recovering: a lease does
    /// not say enough to take it back, and what the store still has may have ended meanwhile. That it is prolonged
    /// all the same, if nobody else comes for it, shows when the store is open again.
    pub async fn renew_lease(&self, name: &str, lease: Lease, ttl: Ttl) -> Result<Duration, Error> {
        let name = LockName::new(name)?;
        let renew = Renew {
            owner: lease.owner,
            fence: lease.fence,
            ttl,
            detach: false,
            // A lease does not say how it is held.
            terms: None,
        };
        let answer = self.client.link.ask(&name, Action::Renew(renew)).await?;
        match answer.outcome {
            Outcome::Renewed { expiry } => {
                let validity = answer.validity(expiry, ttl.duration());
                Ok(validity.remaining(self.client.link.now()))
            }
            Outcome::NotHeld { forced } => Err(Loss::not_held(forced).error(&name)),
            Outcome::Forgotten { until } => Err(forgotten(&name, until.since(answer.now))),
            other => Err(out_of_place("renew", &other)),
        }
    }

    /// Ends a hold by its lease, from any process. Whoever relies on it is **not** told before its next renewal.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if there is no such hold: it has ended or was released before.
    pub async fn release_lease(&self, name: &str, lease: Lease) -> Result<(), Error> {
        let name = LockName::new(name)?;
        let release = Release {
            owner: lease.owner,
            fence: lease.fence,
        };
        self.end(&name, Action::Release(release)).await
    }

    /// Ends somebody else's hold, for a reason that its holder is told.
    ///
    /// The old holder is **not** stopped by this. A well-behaved one notices at its next renewal;
    /// until then its writes are refused only where the fence is checked.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if there is no such hold (any more).
    pub async fn force_release(&self, name: &str, lease: Lease, reason: &str) -> Result<(), Error> {
        let name = LockName::new(name)?;
        let force = ForceRelease {
            owner: lease.owner,
            fence: lease.fence,
            by: self.client.party.clone(),
            reason: reason.to_owned(),
        };
        self.end(&name, Action::ForceRelease(force)).await
    }

    /// What keeps this client's holds alive, for a store that ends them when their process dies
    /// (SQLite): copies of a descriptor. A hold lasts until *every* copy is closed, so hand them to
    /// whatever must be gone before somebody else may hold. Empty for other stores.
    #[must_use]
    pub fn anchors(&self) -> Vec<OwnedFd> {
        let anchor = self.anchor.iter();
        anchor
            .filter_map(|anchor| anchor(&self.client.inbox))
            .collect()
    }

    /// What the store promises, and what breaks it.
    #[must_use]
    pub fn guarantees(&self) -> Guarantees {
        self.client.link.store().guarantees()
    }

    /// Looks at the store as a worried operator would.
    ///
    /// # Errors
    /// Whatever keeps the store from answering.
    pub async fn diagnose(&self) -> Result<Vec<Finding>, Error> {
        let link = &self.client.link;
        link.patiently(link.store().diagnose()).await?
    }

    /// The clock by which this client judges its leases.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.client.link.clock()
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.client.link
    }

    /// Turns an exclusive hold into a shared one by its lease, whatever this client knows of it.
    pub(crate) async fn convert_lease(
        &self,
        name: &LockName,
        lease: Lease,
    ) -> Result<Answer, Error> {
        let convert = Convert {
            owner: lease.owner,
            fence: lease.fence,
        };
        self.client.link.ask(name, Action::Convert(convert)).await
    }

    async fn end(&self, name: &LockName, action: Action) -> Result<(), Error> {
        let word = action.word();
        let answer = self.client.link.ask(name, action).await?;
        match answer.outcome {
            Outcome::Released => Ok(()),
            Outcome::NotHeld { forced } => Err(Loss::not_held(forced).error(name)),
            Outcome::Forgotten { until } => Err(forgotten(name, until.since(answer.now))),
            other => Err(out_of_place(word, &other)),
        }
    }
}

fn release(hold: &Hold) -> Request {
    Action::Release(Release {
        owner: hold.lease.owner,
        fence: hold.lease.fence,
    })
    .on(hold.name.clone())
}

/// The error for whoever asks about a hold that a recovering store does not know.
fn forgotten(name: &LockName, left: Duration) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!(
            "whether {name:?} is held is not known: the store may have lost its data and is \
             recovering, {} left",
            Spelled(left)
        ),
    )
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenure")
            .field("store", &self.guarantees().store)
            .field("inbox", &self.client.inbox)
            .finish_non_exhaustive()
    }
}

/// What this client holds, for `release_all`.
#[derive(Default)]
pub(crate) struct Holds(Mutex<BTreeMap<Key, Weak<Hold>>>);

/// A hold that is handed on keeps its owner, but not its fence.
type Key = (OwnerId, Fence);

impl Holds {
    pub(crate) fn add(&self, hold: &Arc<Hold>) {
        let key = (hold.lease.owner, hold.fence);
        self.map().insert(key, Arc::downgrade(hold));
    }

    pub(crate) fn remove(&self, hold: &Hold) {
        self.map().remove(&(hold.lease.owner, hold.fence));
    }

    fn all(&self) -> Vec<Arc<Hold>> {
        self.map().values().filter_map(Weak::upgrade).collect()
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<Key, Weak<Hold>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
