//! [`Owner`]: somebody who may enter its own locks again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tenure_core::{Error, ErrorKind, LockName, Mode};

use crate::acquire::{self, Wait, Wanted};
use crate::client::Client;
use crate::guard::{Guard, Shared};
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

/// What an owner has of one name; the lock makes its tasks enter one after the other.
type Entry = tokio::sync::Mutex<Weak<Shared>>;

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
    pub(crate) async fn enter(
        &self,
        wanted: &Wanted,
        wait: Option<Wait>,
    ) -> Result<Attempt, Error> {
        let entry = self.entry(&wanted.name);
        let mut entered = entry.lock().await;
        if let Some(shared) = entered.upgrade()
            && shared.hold.valid_until().is_some()
        {
            return enter_again(shared, wanted).map(Attempt::Acquired);
        }
        let hold = match wait {
            Some(wait) => acquire::wait_for(&self.client, wanted, wait).await?,
            None => match acquire::try_once(&self.client, wanted).await? {
                Ok(hold) => hold,
                Err(blocked) => return Ok(Attempt::Busy(blocked)),
            },
        };
        let guard = Guard::new(&self.client, hold);
        *entered = Arc::downgrade(guard.shared());
        Ok(Attempt::Acquired(guard))
    }

    fn entry(&self, name: &LockName) -> Arc<Entry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, entry| {
            Arc::strong_count(entry) > 1
                || entry
                    .try_lock()
                    .is_ok_and(|shared| shared.strong_count() > 0)
        });
        entries.entry(name.clone()).or_default().clone()
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
