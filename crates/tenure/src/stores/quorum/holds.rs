//! [`Holds`]: what this process holds, as far as the quorum has to know: until when a late vote is
//! welcome.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
    pub(super) end: Arc<OnceLock<End>>,
}

/// How a hold ended, as far as its votes are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Every member is told, and asked again if it does not confirm it.
    Released,
    /// It was lost or given up: nobody sees to votes that come late.
    GivenUp,
}

impl Held {
    /// Whether it has been released or given up.
    pub(super) fn is_over(&self) -> bool {
        self.end.get().is_some()
    }

    /// Whether a vote that came late must be taken back by whoever hears of it.
    pub(super) fn is_given_up(&self) -> bool {
        self.end.get() == Some(&End::GivenUp)
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

    /// It is over: nobody asks for its votes any more. Answers what it was; nothing if `fence` is that of
    /// another hold of the owner.
    pub(super) fn end(&self, owner: OwnerId, fence: Option<Fence>, end: End) -> Option<Held> {
        let mut holds = self.map();
        let held = holds.get(&owner)?;
        if fence.is_some_and(|fence| fence != held.fence) {
            return None;
        }
        // Whichever came first: a hold ends once.
        let _ = held.end.set(end);
        holds.remove(&owner)
    }

    fn map(&self) -> MutexGuard<'_, HashMap<OwnerId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
