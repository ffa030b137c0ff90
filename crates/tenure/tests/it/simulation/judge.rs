//! [`Judge`]: sees everything, guards and store alike, and says what must not be.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure::core::{Action, LockName, LockState, Mode, OwnerId};
use tenure::test_util::lease_of;
use tenure::{Fence, Guard, Moment, Standing};

use super::server::Step;

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Somebody believes in a hold beside which the store, or somebody else, has another.
    Overlap,
    /// A fence that is not higher than all before.
    Fence,
    /// Somebody has not been told that its hold is over, and somebody else has been let in.
    NotTold,
    /// Everything works again, and somebody waits for ever.
    Starved,
    /// Something is left at the store, and nobody has it or wants it.
    Leak,
    /// The store decides at a time before that of its last decision, so that what has ended is there
    /// again.
    TimeGoesBack,
}

#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) wrong: Wrong,
    pub(crate) detail: String,
}

/// A guard, and whose it is.
#[derive(Debug)]
struct Known {
    client: usize,
    guard: Arc<Guard>,
}

#[derive(Debug, Default)]
pub(super) struct Judge {
    guards: Vec<Known>,
    /// The highest fence that the store has given.
    highest: BTreeMap<LockName, Fence>,
    /// The fence of the last guard that excludes all others.
    last: BTreeMap<LockName, Fence>,
    pub(super) grants: usize,
    pub(super) handed_on: usize,
    pub(super) found: Option<Violation>,
}

impl Judge {
    pub(super) fn find(&mut self, wrong: Wrong, detail: String) {
        self.found.get_or_insert(Violation { wrong, detail });
    }

    /// Somebody got a guard.
    pub(super) fn add(
        &mut self,
        client: usize,
        guard: Guard,
        lock: &LockState,
        now: Moment,
    ) -> Arc<Guard> {
        self.grants += 1;
        let guard = Arc::new(guard);
        if guard.mode() == Mode::Exclusive && is_valid(&guard, now) {
            let last = self.last.insert(guard.name().clone(), guard.fence());
            let last = last.unwrap_or(Fence::NONE);
            if guard.fence() <= last {
                self.find(Wrong::Fence, format!("{} after {last}", guard.fence()));
            }
            self.handed_on += usize::from(guard.fence() != lease_of(&guard).fence);
        }
        self.guards.push(Known {
            client,
            guard: guard.clone(),
        });
        self.look(guard.name(), lock, now);
        guard
    }

    /// Somebody is about to give up a guard.
    pub(super) fn remove(&mut self, guard: Arc<Guard>, lock: &LockState, now: Moment) -> Guard {
        self.look(guard.name(), lock, now);
        self.guards
            .retain(|known| !Arc::ptr_eq(&known.guard, &guard));
        Arc::into_inner(guard).expect("only the judge and its holder had it")
    }

    /// The store has taken a step. `lock` is what is left of it at `now`.
    pub(super) fn step(&mut self, name: &LockName, action: &Action, step: &Step, now: Moment) {
        let after = &step.decision.state;
        let old = |owner: OwnerId| step.before.holder(owner).is_some();
        for holder in after.holders.iter().filter(|holder| !old(holder.owner)) {
            // A renewal gives back what was forgotten, with the fence that it had.
            if !matches!(action, Action::Renew(_)) {
                let highest = self.highest.get(name).copied().unwrap_or(Fence::NONE);
                if holder.fence <= highest {
                    let detail = format!("{} after {highest} of {name}", holder.fence);
                    self.find(Wrong::Fence, detail);
                }
                let last = holder.fence.last_of_grant(holder.mode);
                self.highest.insert(name.clone(), highest.max(last));
            }
            self.told(name, holder.owner, holder.mode);
        }
        self.look(name, after, now);
    }

    /// Somebody was let in: whoever cannot hold beside it has been told that it is over.
    fn told(&mut self, name: &LockName, owner: OwnerId, mode: Mode) {
        let untold = self.guards.iter().map(|known| &known.guard).find(|guard| {
            let other = guard.name() == name && lease_of(guard).owner != owner;
            let apart = mode == Mode::Exclusive || guard.mode() == Mode::Exclusive;
            let standing = guard.standing();
            let over = matches!(&*standing.borrow(), Standing::Lost(_) | Standing::Released);
            other && apart && !over
        });
        if let Some(guard) = untold {
            let detail = format!("{owner:?} is let in to {name} beside {guard:?}");
            self.find(Wrong::NotTold, detail);
        }
    }

    /// Whether all who believe to hold something can hold it together, and beside whom the store has.
    fn look(&mut self, name: &LockName, lock: &LockState, now: Moment) {
        let valid: Vec<_> = self
            .guards
            .iter()
            .map(|known| &known.guard)
            .filter(|guard| guard.name() == name && is_valid(guard, now))
            .collect();
        if valid.is_empty() {
            return;
        }
        let mut held: Vec<Mode> = Vec::new();
        let mut fit = true;
        let unknown = |owner| valid.iter().all(|guard| lease_of(guard).owner != owner);
        let stored = lock.holders.iter().filter(|it| unknown(it.owner));
        let modes = valid.iter().map(|guard| guard.mode());
        for mode in modes.chain(stored.map(|holder| holder.mode)) {
            fit &= mode.fits(held.iter().copied());
            held.push(mode);
        }
        if !fit {
            let detail = format!("{valid:?} while the store has {:?}", lock.holders);
            self.find(Wrong::Overlap, detail);
        }
    }

    /// A process was killed: nobody there believes anything any more.
    pub(super) fn forget(&mut self, client: usize) {
        self.guards.retain(|known| known.client != client);
    }
}

fn is_valid(guard: &Guard, now: Moment) -> bool {
    // Not `is_valid`, which would tell the holder by looking.
    guard.valid_until().is_some_and(|until| now < until)
}
