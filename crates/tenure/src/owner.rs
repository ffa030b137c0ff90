//! [`Owner`]: somebody who may enter its own locks again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tenure_core::{Action, Contention, Error, ErrorKind, LockName, Mode, Outcome, SHOWN_HOLDERS};

use crate::acquire::{self, Blocked, Wait, Wanted};
use crate::client::Client;
use crate::guard::{Guard, Shared};
use crate::link::out_of_place;
use crate::lock::{Attempt, Lock, RwLock};

/// Somebody who may enter its own locks again: same lease, same fence, and the lock is given back
/// when the last of its guards is.
///
/// Re-entry is counted here, never in the store. An owner is not a thread or a task: whoever has
/// (a clone of) it is it. A writer may also read; a reader that wants to write is refused, because
/// it would wait for itself.
///
/// ```
/// # async fn example() -> Result<(), tenure::Error> {
/// # let tenure = tenure::connect("memory:").await?;
/// let owner = tenure.owner();
/// let outer = owner.lock("x").acquire().await?;
/// let inner = owner.lock("x").acquire().await?; // does not wait for itself
/// assert_eq!(outer.fence(), inner.fence());
/// inner.release().await?;
/// outer.release().await // only now others get in
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Owner {
    client: Arc<Client>,
    entries: Arc<Mutex<HashMap<LockName, Arc<Entry>>>>,
}

/// What an owner has of one name.
#[derive(Default)]
struct Entry {
    held: Mutex<Weak<Shared>>,
    /// Makes its tasks ask the store one after the other.
    entering: tokio::sync::Mutex<()>,
}

impl Owner {
    pub(crate) fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            entries: Arc::default(),
        }
    }

    /// A mutex of this owner's.
    pub fn lock(&self, name: impl Into<String>) -> Lock {
        let lock = Lock::new(self.client.clone(), name.into(), Ok(Mode::Exclusive));
        lock.owned_by(self.clone())
    }

    /// A read/write lock of this owner's.
    pub fn rwlock(&self, name: impl Into<String>) -> RwLock {
        RwLock::new(self.client.clone(), name.into()).owned_by(self.clone())
    }

    /// Enters, waiting as `wait` says; `None` tries once.
    ///
    /// # Cancel safety
    /// Dropping the future leaves neither hold nor queue place behind.
    pub(crate) async fn enter(
        &self,
        wanted: &Wanted,
        wait: Option<Wait>,
    ) -> Result<Attempt, Error> {
        let entry = self.entry(&wanted.name);
        if let Some(shared) = self.held(&entry) {
            return enter_again(shared, wanted).map(Attempt::Acquired);
        }
        let clock = self.client.link.clock();
        let started = clock.now();
        let entering = match wait {
            Some(Wait::Forever) => entry.entering.lock().await,
            Some(Wait::For(limit)) if !limit.is_zero() => tokio::select! {
                biased;
                entering = entry.entering.lock() => entering,
                () = clock.sleep_until(started.plus(limit)) => {
                    return Err(acquire::ran_out(&self.client, &wanted.name, limit));
                }
            },
            _ => match entry.entering.try_lock() {
                Ok(entering) => entering,
                // Another task of this owner is at it: trying must not wait for it.
                Err(_) => return self.look(&wanted.name).await.map(Attempt::Busy),
            },
        };
        if let Some(shared) = self.held(&entry) {
            return enter_again(shared, wanted).map(Attempt::Acquired);
        }
        let held = match wait.map(|wait| wait.less(clock.now().since(started))) {
            Some(wait) => acquire::wait_for(&self.client, wanted, wait).await?,
            None => match acquire::try_once(&self.client, wanted).await? {
                Ok(held) => held,
                Err(blocked) => return Ok(Attempt::Busy(blocked)),
            },
        };
        let guard = Guard::new(&self.client, held);
        *entry.lock() = Arc::downgrade(guard.shared());
        drop(entering);
        Ok(Attempt::Acquired(guard))
    }

    /// What this owner has of a name, if it can still be relied upon.
    fn held(&self, entry: &Entry) -> Option<Arc<Shared>> {
        let shared = entry.lock().upgrade()?;
        let valid = !shared.hold.remaining(self.client.link.now()).is_zero();
        valid.then_some(shared)
    }

    /// Who is in the way, without asking to be let in.
    async fn look(&self, name: &LockName) -> Result<Blocked, Error> {
        let answer = self.client.link.ask(name, Action::Inspect).await?;
        let Outcome::State(snapshot) = answer.outcome else {
            return Err(out_of_place("inspect", &answer.outcome));
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let contention = Contention {
            holder_count: count(snapshot.holders.len()),
            waiter_count: count(snapshot.waiters.len()),
            next_expiry: snapshot
                .holders
                .iter()
                .filter_map(|holder| holder.expiry)
                .min(),
            holders: snapshot.holders.into_iter().take(SHOWN_HOLDERS).collect(),
            recovering: None,
            restless: false,
        };
        Ok(Blocked {
            now: answer.now,
            ahead: None,
            contention,
        })
    }

    fn entry(&self, name: &LockName) -> Arc<Entry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(name) {
            return entry.clone();
        }
        if entries.len() >= 64 && entries.len().is_power_of_two() {
            entries
                .retain(|_, entry| Arc::strong_count(entry) > 1 || entry.lock().strong_count() > 0);
        }
        entries.entry(name.clone()).or_default().clone()
    }
}

impl Entry {
    fn lock(&self) -> MutexGuard<'_, Weak<Shared>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn enter_again(shared: Arc<Shared>, wanted: &Wanted) -> Result<Guard, Error> {
    let held = shared.hold.mode();
    if held == wanted.mode || (held, wanted.mode) == (Mode::Exclusive, Mode::Shared) {
        return Ok(Guard::of(shared));
    }
    Err(Error::new(
        ErrorKind::Conflict,
        format!(
            "this owner holds {:?} as {held} and asks for it as {}: it would wait for itself; \
             release it first",
            wanted.name.as_str(),
            wanted.mode,
        ),
    ))
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
}
