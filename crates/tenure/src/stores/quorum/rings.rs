//! [`Rings`]: passes on to waiters that a lock may be free. One release rings at every member, and every
//! waiting process hears it: so a first ring stands for those that follow, and each process takes its
//! time, or all of them would ask at once and nobody would get a majority.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_core::{Listener, LockName, Push};
use tokio::runtime::Handle;

use super::Shared;
use super::member::Member;
use crate::clock::{Clock, bounded};
use crate::random;

/// How long a process takes its time at most.
const SPREAD: Duration = Duration::from_millis(4);

/// Who listens, and what is about to be passed on.
pub(super) struct Rings {
    clock: Arc<dyn Clock>,
    runtime: Handle,
    relays: Mutex<Vec<Arc<Relay>>>,
}

impl Rings {
    pub(super) fn new(clock: Arc<dyn Clock>, runtime: Handle) -> Self {
        Self {
            clock,
            runtime,
            relays: Mutex::default(),
        }
    }

    /// What the members push to, for this listener.
    pub(super) fn relay(&self, target: Weak<dyn Listener>) -> Weak<dyn Listener> {
        let relay = Arc::new_cyclic(|me: &Weak<Relay>| Relay {
            target,
            clock: self.clock.clone(),
            runtime: self.runtime.clone(),
            rung: Mutex::default(),
            me: me.clone(),
        });
        let mut relays = self.relays();
        relays.retain(|relay| relay.target.strong_count() > 0);
        relays.push(relay.clone());
        let relay: Arc<dyn Listener> = relay;
        Arc::downgrade(&relay)
    }

    /// Rings as a member would.
    fn ring(&self, name: &LockName) {
        let relays = self.relays().clone();
        for relay in relays {
            relay.pushed(Push::MaybeFree(name.clone()));
        }
    }

    fn relays(&self) -> MutexGuard<'_, Vec<Arc<Relay>>> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Rings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rings")
    }
}

impl Shared {
    /// Has those members ring that are in the way, and rings at once if so many have been freed meanwhile as
    /// are lacking. Nobody waits for it: one that hangs would keep back the answers to the whole batch.
    pub(super) fn watch(self: &Arc<Self>, name: LockName, obstacles: Obstacles) {
        let shared = self.clone();
        self.runtime.spawn(async move {
            let Obstacles { members, lacking } = obstacles;
            let watching = members.into_iter().map(|(member, held)| {
                let watching = watch_at(&shared.members[member], &name);
                let watching = bounded(&*shared.clock, shared.node_timeout, watching);
                // One that said no though nobody held it there says so again.
                watching.map(move |free| held && free == Some(true))
            });
            let mut watching: FuturesUnordered<_> = watching.collect();
            let mut freed = 0;
            // Whoever does not answer is asked again with the next question.
            while let Some(free) = watching.next().await {
                freed += usize::from(free);
                if freed >= lacking {
                    return shared.rings.ring(&name);
                }
            }
        });
    }
}

/// What keeps somebody from getting a lock.
#[derive(Debug)]
pub(super) struct Obstacles {
    /// The members that said no, and whether that was because somebody holds it there. Those that said yes are
    /// none: there, whoever tries would ring for all others, and for itself when it takes its vote back.
    pub(super) members: Vec<(usize, bool)>,
    /// How many of them it takes.
    pub(super) lacking: usize,
}

/// Whether the name is free there now.
async fn watch_at(member: &Member, name: &LockName) -> bool {
    match &member.server {
        Some(server) => matches!(server.watch(name).await, Ok(Some(true))),
        None => false,
    }
}

/// Stands between the members and one listener.
struct Relay {
    target: Weak<dyn Listener>,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    /// The locks of which it will be told in a moment.
    rung: Mutex<HashSet<LockName>>,
    me: Weak<Relay>,
}

impl Relay {
    fn rung(&self) -> MutexGuard<'_, HashSet<LockName>> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(&self, name: LockName) {
        self.rung().remove(&name);
        if let Some(target) = self.target.upgrade() {
            target.pushed(Push::MaybeFree(name));
        }
    }
}

impl Listener for Relay {
    fn pushed(&self, push: Push) {
        match push {
            Push::MaybeFree(name) => {
                if !self.rung().insert(name.clone()) {
                    return;
                }
                let pause = self.clock.sleep(random::up_to(SPREAD));
                let me = self.me.clone();
                self.runtime.spawn(async move {
                    pause.await;
                    if let Some(relay) = me.upgrade() {
                        relay.pass_on(name);
                    }
                });
            }
            Push::Missed => {
                if let Some(target) = self.target.upgrade() {
                    target.pushed(Push::Missed);
                }
            }
            // Votes are never handed over: whatever this is, it is not the lock.
            Push::Granted(_) => {}
        }
    }
}
