//! [`Holds`]: what this process holds, as far as the quorum has to know: until when a late vote is
//! welcome.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{Fence, Moment, OwnerId, Ttl};

/// The holds of this process, by owner.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<HashMap<OwnerId, Held>>);

/// One hold.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) ttl: Ttl,
    pub(super) fence: Fence,
    pub(super) until: Moment,
    pub(super) over: Arc<AtomicBool>,
}

impl Held {
    /// Whether it has been released or given up.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// Fewer holds than this are not worth a look at which of them have ended.
const TIDIED_FROM: usize = 64;

impl Holds {
    pub(super) fn add(&self, owner: OwnerId, held: Held, now: Moment) {
        let mut holds = self.map();
        if holds.len() >= TIDIED_FROM && holds.len().is_power_of_two() {
            holds.retain(|_, held| now < held.until);
        }
        holds.insert(owner, held);
    }

    /// The hold of `owner`, if it was taken by this process and has not ended.
    pub(super) fn get(&self, owner: OwnerId, now: Moment) -> Option<Held> {
        let holds = self.map();
        holds.get(&owner).filter(|held| now < held.until).cloned()
    }

    pub(super) fn prolong(&self, owner: OwnerId, until: Moment) {
        if let Some(held) = self.map().get_mut(&owner) {
            held.until = held.until.max(until);
        }
    }

    /// It is over: nobody asks for its votes any more. Answers what it was.
    pub(super) fn end(&self, owner: OwnerId) -> Option<Held> {
        let held = self.map().remove(&owner)?;
        held.over.store(true, Ordering::Release);
        Some(held)
    }

    /// The same, if it is the one with this fence.
    pub(super) fn release(&self, owner: OwnerId, fence: Fence) -> Option<Held> {
        let meant = self
            .map()
            .get(&owner)
            .is_some_and(|held| held.fence == fence);
        meant.then(|| self.end(owner)).flatten()
    }

    fn map(&self) -> MutexGuard<'_, HashMap<OwnerId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
