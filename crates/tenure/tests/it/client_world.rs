//! What tests of the client share: virtual time, a memory store that can be told to misbehave, and
//! a look at that store behind the client's back.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::Clock;
use tenure::core::{Action, LockName, Outcome, Snapshot, Timestamp};
use tenure::stores::memory::MemoryStore;
use tenure::test_util::{Rule, ScriptedStore, VirtualClock};
use tenure::{Attempt, Guard, Moment, Store, Tenure};

pub(crate) struct World {
    pub(crate) clock: Arc<VirtualClock>,
    /// The clock of the store: the same, unless a test sets it apart.
    pub(crate) store_clock: Arc<VirtualClock>,
    /// The store that never misbehaves.
    pub(crate) memory: Arc<MemoryStore>,
    /// The one that clients see.
    pub(crate) store: Arc<ScriptedStore>,
    pub(crate) tenure: Tenure,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(VirtualClock::new());
        Self::with_clocks(clock.clone(), clock).await
    }

    /// A store whose clock can jump without the client's.
    pub(crate) async fn with_two_clocks() -> Self {
        Self::with_clocks(Arc::new(VirtualClock::new()), Arc::new(VirtualClock::new())).await
    }

    async fn with_clocks(clock: Arc<VirtualClock>, store_clock: Arc<VirtualClock>) -> Self {
        let memory = Arc::new(MemoryStore::new(store_clock.clone()));
        let store = ScriptedStore::new(memory.clone(), clock.clone());
        let tenure = Tenure::new(store.clone(), clock.clone()).await.unwrap();
        Self {
            clock,
            store_clock,
            memory,
            store,
            tenure,
        }
    }

    /// Another process, as far as the store can tell.
    pub(crate) async fn other_client(&self) -> Tenure {
        Tenure::new(self.store.clone(), self.clock.clone())
            .await
            .unwrap()
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    pub(crate) fn script(&self, rule: Rule) {
        self.store.script(rule);
    }

    /// What the store really knows, and its clock.
    pub(crate) async fn peek(&self, name: &str) -> (Timestamp, Snapshot) {
        let look = [Action::Inspect.on(LockName::new(name).unwrap())];
        let reply = self.memory.apply(&look).await.pop().unwrap().unwrap();
        match reply.outcome {
            Outcome::State(snapshot) => (reply.now, snapshot),
            other => panic!("inspect answered {other:?}"),
        }
    }

    /// How long the only hold of `name` still lasts at the store.
    pub(crate) async fn lasts(&self, name: &str) -> Duration {
        let (now, snapshot) = self.peek(name).await;
        assert_eq!(snapshot.holders.len(), 1, "{snapshot:?}");
        snapshot.holders[0].expiry.unwrap().since(now)
    }

    /// Nobody holds `name` or waits for it.
    pub(crate) async fn is_idle(&self, name: &str) -> bool {
        let (_, snapshot) = self.peek(name).await;
        snapshot.holders.is_empty() && snapshot.waiters.is_empty()
    }
}

pub(crate) const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The guard of an attempt that must have succeeded.
pub(crate) fn acquired(attempt: Attempt) -> Guard {
    match attempt {
        Attempt::Acquired(guard) => guard,
        Attempt::Busy(blocked) => panic!("busy: {blocked:?}"),
    }
}

/// Lets everybody else who can do something now do it, without time passing.
pub(crate) async fn others_act() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
