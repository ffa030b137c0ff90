//! [`Election`]: one leader among many, with hot standbys. A lock that is held for long, and whose
//! holder others can watch.

use std::time::Duration;

use tenure_core::{Error, Fence, HolderView, Lease, OwnerId, Party, Timestamp};

use crate::client::Tenure;
use crate::guard::Guard;
use crate::lock::Lock;
use crate::random;
use crate::standing::{Loss, Standing};

/// How often [`Changes`] asks if nothing is said.
const EVERY: Duration = Duration::from_secs(1);

/// One leader at a time among all who campaign under this name.
///
/// # What is not guaranteed
/// That a leader which was paused, or cut off from the store, stops at once: it is told before anybody
/// else can lead ([`Term::lost`], by its own clock), but nothing can stop its code. Hand the
/// [fence](Term::fence) of the term to whatever it writes to. There are also moments without a leader:
/// none after a resignation beyond one message, up to the ttl after a crash (on SQLite none), and for as
/// long as the store cannot be reached and the last lease has ended.
///
/// It is the lock of the same name: `tenure.lock(name)` and `tenure run name` exclude leaders, too.
///
/// ```
/// # async fn example() -> Result<(), tenure::Error> {
/// # let tenure = tenure::connect("memory:").await?;
/// let election = tenure.election("scheduler");
/// let term = election.campaign().await?; // hot standby until then
/// assert!(term.is_leader());
/// assert_eq!(election.leader().await?.and_then(|leader| leader.fence()), Some(term.fence()));
/// term.resign().await // the next in line leads at once
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "an election does nothing until somebody campaigns"]
pub struct Election {
    tenure: Tenure,
    name: String,
    lock: Lock,
}

/// A time in which we lead. Renewed in the background; it ends by [`resign`](Self::resign), when it is
/// dropped, or when it is lost.
#[derive(Debug)]
#[must_use = "whoever drops its term resigns"]
pub struct Term {
    guard: Guard,
}

/// Who leads, as the store knew when it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Who that is, in words for people.
    pub party: Party,
    /// Which term it is, for [`Tenure::force_release`]; `None` for a foreign holder.
    pub lease: Option<Lease>,
    /// For how long it had led; `None` for a foreign holder.
    pub led_for: Option<Duration>,
    /// When its lease ends unless it is renewed; `None` if never.
    pub lease_left: Option<Duration>,
}

/// Who leads, from change to change. Made by [`Election::observe`].
pub struct Changes {
    election: Election,
    every: Duration,
    /// Whether the store has been asked before.
    asked: bool,
    /// Who was last told of; `None` if nobody was told anything yet.
    told: Option<Option<Identity>>,
}

/// What tells one term from another.
type Identity = (Option<OwnerId>, Option<Fence>);

impl Election {
    pub(crate) fn new(tenure: Tenure, name: String) -> Self {
        // Handed on inside a process, a lock keeps its first holder's fence at the store, and those
        // who watch would not see that a new term has begun.
        let lock = tenure.lock(&name).local_handover(false);
        Self { tenure, name, lock }
    }

    /// How long a leader that died is still taken for one (30 s if nothing is said), and how long one
    /// survives without the store. It is renewed at a third of it.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lock = self.lock.ttl(ttl);
        self
    }

    /// How long [`campaign`](Self::campaign) waits at most; for ever if nothing is said.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.lock = self.lock.wait(wait);
        self
    }

    /// A text that everybody sees who asks who leads.
    pub fn label(mut self, label: &str) -> Self {
        self.lock = self.lock.label(label);
        self
    }

    /// Who we are, in words for people; by default `user@host` of this process.
    pub fn who(mut self, who: &str) -> Self {
        self.lock = self.lock.who(who);
        self
    }

    /// Waits in line as a hot standby, and answers when we lead.
    ///
    /// # Errors
    /// As [`Lock::acquire`](crate::Lock::acquire): an outage of the store is sat out for as long as
    /// [`wait`](Self::wait) allows.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future leaves neither term nor place in line behind.
    pub async fn campaign(&self) -> Result<Term, Error> {
        let guard = self.lock.clone().acquire().await?;
        Ok(Term { guard })
    }

    /// Runs `work` while we lead, and from the beginning again whenever we lead again after a term was
    /// lost. When `work` returns, we resign, and its value is the answer.
    ///
    /// # What is not guaranteed
    /// A lost term drops `work` where it stands, at an await; what it started elsewhere goes on.
    ///
    /// # Errors
    /// As [`campaign`](Self::campaign); [`ErrorKind::Lost`](crate::ErrorKind::Lost) if this program itself
    /// gave the term back ([`Tenure::release_all`]). A store that cannot be told of the resignation
    /// is no error: the term ends by itself.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and resigns in the background.
    pub async fn lead<T>(&self, mut work: impl AsyncFnMut(&Term) -> T) -> Result<T, Error> {
        loop {
            let term = self.campaign().await?;
            let error = tokio::select! {
                biased;
                error = term.guard.over() => error,
                value = work(&term) => {
                    // Lost in this very moment, or not told: either way the work was done.
                    let _ = term.resign().await;
                    return Ok(value);
                }
            };
            if *term.guard.standing().borrow() == Standing::Released {
                return Err(error);
            }
        }
    }

    /// Who leads now; `None` if nobody does.
    ///
    /// # Errors
    /// Whatever keeps the store from answering: that is never "nobody".
    pub async fn leader(&self) -> Result<Option<Leader>, Error> {
        let (now, snapshot) = self.tenure.inspect(&self.name).await?;
        Ok(snapshot.holders.first().map(|view| Leader::of(view, now)))
    }

    /// Watches who leads. The first [`Changes::next`] says who leads now.
    pub fn observe(&self) -> Changes {
        Changes {
            election: self.clone(),
            every: EVERY,
            asked: false,
            told: None,
        }
    }
}

impl Term {
    /// The fencing token of this term, higher than that of every term before: pass it along with every
    /// write.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.guard.fence()
    }

    /// Whether we surely lead right now. Reads the clock: the first call after a pause already tells
    /// the truth.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.guard.is_valid()
    }

    /// Like [`is_leader`](Self::is_leader), for use with `?`.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) that says why.
    pub fn ensure(&self) -> Result<(), Error> {
        self.guard.ensure()
    }

    /// Waits until we do not lead any more, and says why; see [`Guard::lost`].
    ///
    /// # Cancel safety
    /// Cancel safe; may be called again.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// The guard of the lock that the term is.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Steps down; the next in line leads at once.
    ///
    /// # Errors
    /// As [`Guard::release`]: [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the term was over before.
    ///
    /// # Cancel safety
    /// Dropping the future goes on resigning in the background.
    pub async fn resign(self) -> Result<(), Error> {
        self.guard.release().await
    }
}

impl Leader {
    fn of(view: &HolderView, now: Timestamp) -> Self {
        let lease = view.owner.zip(view.fence);
        Self {
            party: view.party.clone(),
            lease: lease.map(|(owner, fence)| Lease { owner, fence }),
            led_for: view.since.map(|since| now.since(since)),
            lease_left: view.expiry.map(|expiry| expiry.since(now)),
        }
    }

    /// The fence of its term; `None` for a foreign holder.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.lease.map(|lease| lease.fence)
    }

    fn identity(&self) -> Identity {
        let lease = self.lease;
        (lease.map(|lease| lease.owner), self.fence())
    }
}

impl Changes {
    /// How often the store is asked; once a second if nothing is said.
    #[must_use = "this is what next is called on"]
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = pause;
        self
    }

    /// Waits until somebody else leads than was last told, or nobody any more (`None`).
    ///
    /// # What is not guaranteed
    /// It asks now and then, so it is late by up to [`every`](Self::every), and a term that begins and
    /// ends between two questions is not seen. What it says was so when the store answered; whether one
    /// leads *now* only the leader itself can know.
    ///
    /// # Errors
    /// Whatever keeps the store from answering, at every question; call it again to go on watching.
    ///
    /// # Cancel safety
    /// Cancel safe: no change gets lost.
    pub async fn next(&mut self) -> Result<Option<Leader>, Error> {
        loop {
            if self.asked {
                let pause = random::jittered(self.every);
                self.election.tenure.clock().sleep(pause).await;
            }
            let asking = self.election.leader().await;
            self.asked = true;
            let leader = asking?;
            let identity = leader.as_ref().map(Leader::identity);
            if self.told != Some(identity) {
                self.told = Some(identity);
                return Ok(leader);
            }
        }
    }
}
