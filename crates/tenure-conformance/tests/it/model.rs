//! A store as small as can be: `decide` behind a mutex, with a clock that is turned by hand and,
//! perhaps, a flaw.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tenure_conformance::Subject;
use tenure_core::{
    Action, BoxFuture, Error, Finding, Guarantees, Inbox, Listener, Listing, Liveness, LockName,
    LockState, Outcome, Push, PushedGrant, Recovering, Reply, Request, Shard, Snapshot, Store,
    Timestamp, decide,
};

use crate::executor::give_way;
use crate::flaws::Flaw;

pub(crate) struct Model {
    store: Arc<ModelStore>,
}

impl Model {
    pub(crate) fn new(flaw: Option<Flaw>) -> Self {
        let inside = Inside {
            now: Timestamp::from_micros(1_000_000_000),
            locks: HashMap::new(),
            listeners: Listeners(HashMap::new()),
        };
        let store = Arc::new(ModelStore {
            flaw,
            inside: Mutex::new(inside),
        });
        Self { store }
    }
}

impl Subject for Model {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, Error>> {
        let store: Arc<dyn Store> = self.store.clone();
        Box::pin(async { Ok(store) })
    }

    fn pass_time(&self, duration: Duration) -> BoxFuture<'_, ()> {
        let mut inside = self.store.inside.lock().unwrap();
        inside.now = inside.now.plus(duration);
        Box::pin(async {})
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(give_way())
    }

    fn time_tolerance(&self) -> Duration {
        Duration::ZERO
    }

    fn sees_listeners(&self) -> bool {
        true
    }
}

struct ModelStore {
    flaw: Option<Flaw>,
    inside: Mutex<Inside>,
}

struct Inside {
    now: Timestamp,
    locks: HashMap<LockName, LockState>,
    listeners: Listeners,
}

struct Listeners(HashMap<Inbox, Weak<dyn Listener>>);

impl Liveness for Listeners {
    fn reachable(&self, inbox: &Inbox) -> bool {
        self.0
            .get(inbox)
            .is_some_and(|listener| listener.strong_count() > 0)
    }

    fn alive(&self, _anchor: &Inbox) -> bool {
        true
    }
}

impl ModelStore {
    fn apply_one(&self, request: &Request) -> Reply {
        let mut inside = self.inside.lock().unwrap();
        let Request { name, action } = self.flaw.map_or_else(
            || request.clone(),
            |flaw| flaw.misread(request.clone(), &inside.locks),
        );
        let state = inside.locks.get(&name).cloned().unwrap_or_default();
        let now = inside.now;
        let mut decision = decide(state, &action, now, &inside.listeners);
        if let Some(flaw) = self.flaw {
            flaw.spoil(&mut decision, &action, now);
        }
        inside.locks.insert(name, decision.state);
        for handover in decision.handovers {
            let grant = PushedGrant {
                name: request.name.clone(),
                owner: handover.owner,
                fence: handover.fence,
                now,
                expiry: handover.expiry,
            };
            let everybody = self.flaw == Some(Flaw::TellsEverybody);
            let listeners = inside.listeners.0.iter();
            for (_, listener) in
                listeners.filter(|(inbox, _)| everybody || **inbox == handover.inbox)
            {
                if let Some(listener) = listener.upgrade() {
                    listener.pushed(Push::Granted(grant.clone()));
                }
            }
        }
        let outcome = decision.outcome;
        Reply { now, outcome }
    }

    fn look(&self, inside: &Inside, state: &LockState) -> Snapshot {
        let decision = decide(
            state.clone(),
            &Action::Inspect,
            inside.now,
            &inside.listeners,
        );
        match decision.outcome {
            Outcome::State(snapshot) => snapshot,
            other => panic!("inspect answered {other:?}"),
        }
    }
}

impl Store for ModelStore {
    fn guarantees(&self) -> Guarantees {
        let holds = tenure_core::Holds::Always;
        Guarantees {
            store: "model",
            scope: "one test",
            clock: "turned by hand",
            clocks: tenure_core::Clocks::One,
            wake_up: "direct call",
            order: tenure_core::Order::Arrival,
            permits: true,
            promises: tenure_core::PromiseId::ALL.map(|id| tenure_core::Promise { id, holds }),
        }
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        let mut replies: Vec<_> = if self.flaw == Some(Flaw::TurnsBatchesRound) {
            let reversed = batch.iter().rev().map(|request| self.apply_one(request));
            reversed.map(Ok).collect()
        } else {
            let replies = batch.iter().map(|request| self.apply_one(request));
            replies.map(Ok).collect()
        };
        if self.flaw == Some(Flaw::TurnsBatchesRound) {
            replies.reverse();
        }
        match self.flaw {
            Some(Flaw::AnswersTooLittle) => replies.truncate(100),
            Some(Flaw::AnswersTooMuch) if batch.is_empty() => {
                let nothing = Error::new(tenure_core::ErrorKind::Protocol, "nothing was asked");
                replies.push(Err(nothing));
            }
            _ => {}
        }
        Box::pin(async { replies })
    }

    fn shard(&self, _name: &LockName) -> Shard {
        Shard::WHOLE
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        let inside = self.inside.lock().unwrap();
        let shown = |name: &LockName| match self.flaw {
            Some(Flaw::ListsEverything) => true,
            Some(Flaw::ListsByPattern) => name.as_str().starts_with(prefix.trim_end_matches('*')),
            _ => name.as_str().starts_with(prefix),
        };
        let names = inside.locks.iter().filter(|(name, _)| shown(name));
        let mut locks: Vec<_> = names
            .map(|(name, state)| (name.clone(), self.look(&inside, state)))
            .filter(|(_, snapshot)| match self.flaw {
                Some(Flaw::ListsWhatHasEnded) => true,
                Some(Flaw::ListsHoldersOnly) => !snapshot.holders.is_empty(),
                _ => snapshot.kind.is_some(),
            })
            .collect();
        locks.sort_by(|(one, _), (two, _)| one.cmp(two));
        let now = inside.now;
        Box::pin(async move { Ok(Listing { now, locks }) })
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut inside = self.inside.lock().unwrap();
        inside.listeners.0.insert(inbox.clone(), listener);
        Box::pin(async { Ok(()) })
    }

    fn recovering<'a>(
        &'a self,
        _name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        Box::pin(async { Ok(None) })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

impl fmt::Debug for ModelStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelStore({:?})", self.flaw)
    }
}
