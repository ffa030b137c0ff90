#![doc = include_str!("docs.md")]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{
    Action, BoxFuture, Clocks, Decision, Error, Finding, Guarantees, Handover, Holds, Inbox,
    Listener, Listing, Liveness, LockName, LockState, Order, Outcome, Promise, PromiseId, Push,
    PushedGrant, Recovering, Reply, Request, Severity, Shard, Store, Timestamp, decide,
};

use crate::clock::Clock;

/// Locks in the memory of this process.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    shards: Vec<Mutex<HashMap<LockName, LockState>>>,
    listeners: Listeners,
}

const SHARDS: u64 = 64;
/// A shard with fewer names than this is not worth a sweep.
const SWEPT_FROM: usize = 128;
/// How long a name is remembered that nobody uses.
const REMEMBERED: Duration = Duration::from_secs(3600);

impl MemoryStore {
    /// An empty store whose leases end by `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self {
            clock,
            hasher: RandomState::new(),
            shards,
            listeners: Listeners::default(),
        }
    }

    /// The store that everybody in this process gets who says the same name; it lives for as long
    /// as anybody uses it.
    #[must_use]
    pub fn shared(name: &str, clock: Arc<dyn Clock>) -> Arc<Self> {
        static SHARED: Mutex<Vec<(String, Weak<MemoryStore>)>> = Mutex::new(Vec::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|(_, store)| store.strong_count() > 0);
        let existing = shared.iter().find(|(known, _)| known == name);
        if let Some(store) = existing.and_then(|(_, store)| store.upgrade()) {
            return store;
        }
        let store = Arc::new(Self::new(clock));
        shared.push((name.to_owned(), Arc::downgrade(&store)));
        store
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.now().as_nanos() / 1_000)
    }

    fn shard(&self, name: &LockName) -> MutexGuard<'_, HashMap<LockName, LockState>> {
        let index = usize::try_from(self.hasher.hash_one(name) % SHARDS).unwrap_or(0);
        // `decide` works on its own copy: a panic in it leaves the map as it was.
        self.shards[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_one(&self, request: &Request) -> Reply {
        let mut shard = self.shard(&request.name);
        let now = self.now();
        let state = shard.get(&request.name).cloned().unwrap_or_default();
        let Decision {
            state,
            outcome,
            handovers,
        } = decide(state, &request.action, now, &self.listeners);
        if !matches!(request.action, Action::Inspect) {
            shard.insert(request.name.clone(), state);
            // Now and then, so that names that nobody uses any more do not pile up for ever.
            if shard.len() >= SWEPT_FROM && shard.len().is_power_of_two() {
                shard.retain(|_, state| !is_forgettable(state, now));
            }
        }
        // Delivered with the shard locked, so that a hand-over cannot overtake an earlier one.
        self.deliver(&request.name, now, handovers);
        Reply { now, outcome }
    }

    fn deliver(&self, name: &LockName, now: Timestamp, handovers: Vec<Handover>) {
        for Handover {
            inbox,
            owner,
            fence,
            expiry,
        } in handovers
        {
            let grant = PushedGrant {
                name: name.clone(),
                owner,
                fence,
                now,
                expiry,
            };
            if let Some(listener) = self.listeners.get(&inbox) {
                listener.pushed(Push::Granted(grant));
            }
        }
    }

    fn list_now(&self, prefix: &str) -> Listing {
        let now = self.now();
        let mut locks = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, state) in shard
                .iter()
                .filter(|(name, _)| name.as_str().starts_with(prefix))
            {
                let decision = decide(state.clone(), &Action::Inspect, now, &self.listeners);
                let Outcome::State(snapshot) = decision.outcome else {
                    continue;
                };
                if snapshot.kind.is_some() {
                    locks.push((name.clone(), snapshot));
                }
            }
        }
        locks.sort_by(|(left, _), (right, _)| left.cmp(right));
        Listing { now, locks }
    }
}

impl Store for MemoryStore {
    fn guarantees(&self) -> Guarantees {
        GUARANTEES
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(async move {
            batch
                .iter()
                .map(|request| Ok(self.apply_one(request)))
                .collect()
        })
    }

    fn shard(&self, _name: &LockName) -> Shard {
        Shard::WHOLE
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        Box::pin(async move { Ok(self.list_now(prefix)) })
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.listeners.add(inbox.clone(), listener);
        Box::pin(async { Ok(()) })
    }

    fn recovering<'a>(
        &'a self,
        _name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        Box::pin(async { Ok(None) })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        let finding = Finding {
            severity: Severity::Warning,
            subject: "scope".to_owned(),
            detail: "locks in memory exclude nobody outside this process".to_owned(),
        };
        Box::pin(async { Ok(vec![finding]) })
    }
}

/// Whether nothing is left of a name but a fence that the clock has long passed, so that the next
/// one is higher in any case.
fn is_forgettable(state: &LockState, now: Timestamp) -> bool {
    let fenced = Timestamp::from_micros(state.last_fence.as_u64());
    let forced = state.forced.as_ref().map_or(fenced, |forced| forced.at);
    state.holders.iter().all(|holder| holder.expiry <= now)
        && state.queue.iter().all(|waiter| waiter.alive_until <= now)
        && fenced.max(forced).plus(REMEMBERED) < now
}

/// Who listens, by inbox. A client that is gone no longer listens and is passed over.
#[derive(Default)]
struct Listeners(Mutex<HashMap<Inbox, Weak<dyn Listener>>>);

impl Listeners {
    fn add(&self, inbox: Inbox, listener: Weak<dyn Listener>) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|_, listener| listener.strong_count() > 0);
        listeners.insert(inbox, listener);
    }

    fn get(&self, inbox: &Inbox) -> Option<Arc<dyn Listener>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(inbox)?
            .upgrade()
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listeners")
    }
}

impl Liveness for Listeners {
    fn reachable(&self, inbox: &Inbox) -> bool {
        self.get(inbox).is_some()
    }

    fn alive(&self, _anchor: &Inbox) -> bool {
        true
    }
}

/// What the memory store promises.
pub const GUARANTEES: Guarantees = Guarantees {
    store: "memory",
    scope: "clients in this process that share the store",
    clock: "the client's own clock",
    clocks: Clocks::One,
    wake_up: "direct call",
    order: Order::Arrival,
    permits: true,
    promises: [
        Promise {
            id: PromiseId::S1,
            holds: Holds::Always,
        },
        Promise {
            id: PromiseId::S2,
            holds: Holds::Always,
        },
        Promise {
            id: PromiseId::S3,
            holds: Holds::Always,
        },
        Promise {
            id: PromiseId::L1,
            holds: Holds::Within("the rest of the ttl"),
        },
        Promise {
            id: PromiseId::L2,
            holds: Holds::Always,
        },
        Promise {
            id: PromiseId::L3,
            holds: Holds::Always,
        },
    ],
};

#[cfg(test)]
mod tests {
    use tenure_core::{Acquire, Mode, OwnerId, Party, Release, Ttl, Waiting};

    use super::*;
    use crate::clock::VirtualClock;

    #[tokio::test(start_paused = true)]
    async fn names_that_nobody_uses_are_forgotten_and_their_fences_still_grow() {
        let clock = Arc::new(VirtualClock::new());
        let store = MemoryStore::new(clock.clone());
        let mut last = HashMap::new();
        for round in 0..40_u64 {
            for number in 0..1_000 {
                let name = LockName::new(format!("name {}", round * 500 + number)).unwrap();
                let fence = use_once(&store, &name);
                assert!(last.insert(name, fence).is_none_or(|before| before < fence));
            }
            clock.sleep(REMEMBERED * 2).await;
        }
        let kept: usize = store
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().len())
            .sum();
        assert!(last.len() > 20_000);
        assert!(kept < 10_000, "{kept} names are remembered");
    }

    fn use_once(store: &MemoryStore, name: &LockName) -> tenure_core::Fence {
        let owner = OwnerId::from_bytes([1; 16]);
        let acquire = Acquire {
            owner,
            mode: Mode::Exclusive,
            ttl: Ttl::DEFAULT,
            party: Party::default(),
            waiting: Waiting::No,
            anchor: None,
            not_after: None,
        };
        let reply = store.apply_one(&Action::Acquire(acquire).on(name.clone()));
        let Outcome::Granted(grant) = reply.outcome else {
            panic!("{name} is free");
        };
        let fence = grant.fence;
        store.apply_one(&Action::Release(Release { owner, fence }).on(name.clone()));
        fence
    }
}
