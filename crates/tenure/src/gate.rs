//! [`Gates`]: tasks of one process that wait for one name queue here, and only the first of them
//! speaks to the store. However many wait, the store sees one waiter per process and name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tenure_core::LockName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::acquire::Blocked;

#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_name: Mutex<HashMap<LockName, Weak<Gate>>>,
}

/// Where the tasks of this process that want one name stand in line.
#[derive(Debug)]
pub(crate) struct Gate {
    line: Arc<Semaphore>,
    /// What the first in line last heard from the store, for those behind it.
    news: Mutex<Option<News>>,
}

/// What the first in line last heard.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// Somebody is in the way.
    Blocked(Blocked),
    /// The store cannot be asked, because of this.
    Silent(String),
}

/// The right to speak to the store for a name, until dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    gate: Arc<Gate>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Gates {
    /// The gate of this name.
    pub(crate) fn gate(&self, name: &LockName) -> Arc<Gate> {
        let mut gates = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(name).and_then(Weak::upgrade) {
            return gate;
        }
        if gates.len() >= 64 && gates.len().is_power_of_two() {
            gates.retain(|_, gate| gate.strong_count() > 0);
        }
        let gate = Arc::new(Gate {
            line: Arc::new(Semaphore::new(1)),
            news: Mutex::default(),
        });
        gates.insert(name.clone(), Arc::downgrade(&gate));
        gate
    }
}

impl Gate {
    /// Waits in line, first come first served.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place up.
    pub(crate) async fn enter(self: &Arc<Self>) -> Turn {
        // Fails only on a closed semaphore, and nobody closes it.
        let permit = self.line.clone().acquire_owned().await.ok();
        // What our predecessor heard is no news any more.
        *self.current() = None;
        Turn {
            gate: self.clone(),
            _permit: permit,
        }
    }

    pub(crate) fn news(&self) -> Option<News> {
        self.current().clone()
    }

    fn current(&self) -> MutexGuard<'_, Option<News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Tells those who stand behind us.
    pub(crate) fn tell(&self, news: News) {
        *self.gate.current() = Some(news);
    }
}
