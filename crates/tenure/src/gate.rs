//! [`Gates`]: tasks of one process that wait for one name queue here, and only the first of them
//! speaks to the store. However many wait, the store sees one waiter per process and name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tenure_core::LockName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_name: Mutex<HashMap<LockName, Weak<Semaphore>>>,
}

/// The right to speak to the store for a name, until dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Gates {
    /// Waits in line, first come first served.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place up.
    pub(crate) async fn enter(&self, name: &LockName) -> Turn {
        let gate = self.gate(name);
        // Fails only on a closed semaphore, and nobody closes it.
        Turn {
            _permit: gate.acquire_owned().await.ok(),
        }
    }

    fn gate(&self, name: &LockName) -> Arc<Semaphore> {
        let mut gates = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(name).and_then(Weak::upgrade) {
            return gate;
        }
        if gates.len() >= 64 && gates.len().is_power_of_two() {
            gates.retain(|_, gate| gate.strong_count() > 0);
        }
        let gate = Arc::new(Semaphore::new(1));
        gates.insert(name.clone(), Arc::downgrade(&gate));
        gate
    }
}
