//! [`Mailbox`]: receives what the store pushes and hands it to the attempt that waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{Listener, LockName, Moment, OwnerId, Push, PushedGrant};
use tokio::sync::Notify;

use crate::clock::Clock;

#[derive(Debug)]
pub(crate) struct Mailbox {
    clock: Arc<dyn Clock>,
    slots: Mutex<HashMap<OwnerId, Arc<Slot>>>,
}

/// Where one attempt finds what was pushed to it.
#[derive(Debug)]
pub(crate) struct Slot {
    /// What it waits for.
    name: LockName,
    letter: Mutex<Option<Letter>>,
    arrived: Notify,
}

/// What arrived.
#[derive(Clone, Debug)]
pub(crate) enum Letter {
    /// A grant, and when it was received.
    Grant(PushedGrant, Moment),
    /// Something may have been missed: ask again.
    AskAgain,
}

impl Mailbox {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            slots: Mutex::default(),
        }
    }

    pub(crate) fn open(&self, owner: OwnerId, name: LockName) -> Arc<Slot> {
        let slot = Arc::new(Slot {
            name,
            letter: Mutex::default(),
            arrived: Notify::default(),
        });
        self.slots().insert(owner, slot.clone());
        slot
    }

    pub(crate) fn close(&self, owner: OwnerId) {
        self.slots().remove(&owner);
    }

    fn ask_again(&self, wanted: impl Fn(&Slot) -> bool) {
        let slots = self.slots();
        let mut told: Vec<_> = slots.iter().filter(|(_, slot)| wanted(slot)).collect();
        // In an order that follows from the owners alone, so that a simulation can be replayed.
        told.sort_unstable_by_key(|(owner, _)| **owner);
        let told: Vec<_> = told.into_iter().map(|(_, slot)| slot.clone()).collect();
        drop(slots);
        told.iter().for_each(|slot| slot.put(Letter::AskAgain));
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<OwnerId, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Mailbox {
    fn pushed(&self, push: Push) {
        match push {
            Push::Granted(grant) => {
                let slot = self.slots().get(&grant.owner).cloned();
                // Nobody waits for it any more: its cancellation is already on its way.
                let Some(slot) = slot else { return };
                slot.put(Letter::Grant(grant, self.clock.now()));
            }
            Push::MaybeFree(name) => self.ask_again(|slot| slot.name == name),
            Push::Missed => self.ask_again(|_| true),
        }
    }
}

impl Slot {
    /// Waits for a letter.
    ///
    /// # Cancel safety
    /// A letter that arrived stays for the next call.
    pub(crate) async fn letter(&self) -> Letter {
        loop {
            if let Some(letter) = self.take() {
                return letter;
            }
            self.arrived.notified().await;
        }
    }

    fn take(&self) -> Option<Letter> {
        self.letter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn put(&self, letter: Letter) {
        let mut current = self.letter.lock().unwrap_or_else(PoisonError::into_inner);
        // A grant is worth more than the advice to ask again that comes after it. But once something may have been
        // missed, whoever grants may be another server, and its clock another one than we know: that has to be asked.
        let stays = matches!(
            (&*current, &letter),
            (Some(Letter::Grant(..)), Letter::AskAgain)
                | (Some(Letter::AskAgain), Letter::Grant(..))
        );
        if !stays {
            *current = Some(letter);
        }
        drop(current);
        self.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Fence, Timestamp};

    use super::*;

    fn grant() -> Letter {
        let grant = PushedGrant {
            name: name(),
            owner: OwnerId::from_bytes([1; 16]),
            fence: Fence::from_u64(1),
            now: Timestamp::from_micros(1),
            expiry: Timestamp::from_micros(2),
        };
        Letter::Grant(grant, Moment::from_nanos(1))
    }

    fn name() -> LockName {
        LockName::new("lock").expect("a name")
    }

    /// What is found of these letters, first come.
    fn found(letters: [Letter; 2]) -> Option<Letter> {
        let slot = Slot {
            name: name(),
            letter: Mutex::default(),
            arrived: Notify::default(),
        };
        letters.into_iter().for_each(|letter| slot.put(letter));
        slot.take()
    }

    #[test]
    fn a_grant_that_comes_after_something_was_missed_has_to_be_asked_for() {
        let kept = found([Letter::AskAgain, grant()]);
        assert!(matches!(kept, Some(Letter::AskAgain)), "{kept:?}");
        let kept = found([grant(), Letter::AskAgain]);
        assert!(matches!(kept, Some(Letter::Grant(..))), "{kept:?}");
    }
}
