//! [`ScriptedStore`]: a store around a store, which goes wrong as it is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tenure_core::{
    Action, BoxFuture, Error, ErrorKind, Finding, Guarantees, Inbox, Listener, Listing, LockName,
    Moment, Outcome, Push, Recovering, Release, Reply, Request, Shard, Store,
};
use tokio::sync::oneshot;

use super::{Fault, Rule};
use crate::clock::Clock;

/// A store around a store, which goes wrong as its [`Rule`]s say, and counts what it is asked.
///
/// The first rule that is about a request decides. Without rules it only counts.
#[derive(Debug)]
pub struct ScriptedStore {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    rules: Mutex<Vec<Rule>>,
    calls: Mutex<Vec<Call>>,
    /// Calls that hang.
    parked: Mutex<Vec<Parked>>,
    relays: Mutex<Vec<Arc<Relay>>>,
    lost_pushes: Arc<AtomicUsize>,
    passed_pushes: Arc<AtomicUsize>,
}

/// One call that the store received.
#[derive(Clone, Debug)]
pub struct Call {
    /// When.
    pub at: Moment,
    /// What was asked, in order.
    pub requests: Vec<Request>,
}

#[derive(Debug)]
struct Parked {
    requests: Vec<Request>,
    reply: oneshot::Sender<Vec<Result<Reply, Error>>>,
}

impl ScriptedStore {
    /// A well-behaved store around `store`, whose delays run by `clock`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            rules: Mutex::default(),
            calls: Mutex::default(),
            parked: Mutex::default(),
            relays: Mutex::default(),
            lost_pushes: Arc::default(),
            passed_pushes: Arc::default(),
        })
    }

    /// Adds a rule, after those that are there.
    pub fn script(&self, rule: Rule) {
        lock(&self.rules).push(rule);
    }

    /// Forgets all rules; what hangs goes on hanging until [`resume`](Self::resume).
    pub fn behave(&self) {
        lock(&self.rules).clear();
    }

    /// Forgets all rules and carries out what hangs, in order, also if its caller has given up.
    pub async fn resume(&self) {
        self.behave();
        let parked = std::mem::take(&mut *lock(&self.parked));
        for Parked { requests, reply } in parked {
            // Whoever has given up is not told.
            let _ = reply.send(self.store.apply(&requests).await);
        }
    }

    /// The next `count` pushes do not arrive.
    pub fn lose_pushes(&self, count: usize) {
        self.lost_pushes.store(count, Ordering::SeqCst);
    }

    /// How many pushes have arrived.
    #[must_use]
    pub fn pushes(&self) -> usize {
        self.passed_pushes.load(Ordering::SeqCst)
    }

    /// Tells all clients that pushes may have been missed, as after a lost connection.
    pub fn announce_missed_pushes(&self) {
        let relays = lock(&self.relays).clone();
        for target in relays.iter().filter_map(|relay| relay.target.upgrade()) {
            target.pushed(Push::Missed);
        }
    }

    /// Ends all holds of `name` behind the back of their holders, as if the store had lost them.
    ///
    /// # Errors
    /// Whatever keeps the store from answering.
    pub async fn forget(&self, name: &LockName) -> Result<(), Error> {
        let look = [Action::Inspect.on(name.clone())];
        let Some(reply) = self.store.apply(&look).await.pop() else {
            return Ok(());
        };
        let Outcome::State(snapshot) = reply?.outcome else {
            return Ok(());
        };
        for holder in snapshot.holders {
            let (Some(owner), Some(fence)) = (holder.owner, holder.fence) else {
                continue;
            };
            let release = Action::Release(Release { owner, fence }).on(name.clone());
            self.store.apply(&[release]).await;
        }
        Ok(())
    }

    /// How many requests with this word were received.
    #[must_use]
    pub fn count(&self, word: &str) -> usize {
        let calls = lock(&self.calls);
        let requests = calls.iter().flat_map(|call| &call.requests);
        requests
            .filter(|request| request.action.word() == word)
            .count()
    }

    /// All calls that were received, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.calls).clone()
    }

    /// Starts counting again.
    pub fn forget_calls(&self) {
        lock(&self.calls).clear();
    }

    fn faults(&self, batch: &[Request]) -> Vec<Option<Fault>> {
        let mut rules = lock(&self.rules);
        let mut strike = |request| {
            rules
                .iter_mut()
                .find_map(|rule: &mut Rule| rule.strike(request))
        };
        batch.iter().map(&mut strike).collect()
    }

    async fn apply_scripted(&self, batch: &[Request]) -> Vec<Result<Reply, Error>> {
        lock(&self.calls).push(Call {
            at: self.clock.now(),
            requests: batch.to_vec(),
        });
        lock(&self.relays).retain(|relay| relay.target.strong_count() > 0);
        let faults = self.faults(batch);
        if faults.iter().all(Option::is_none) {
            return self.store.apply(batch).await;
        }
        assert!(!faults.contains(&Some(Fault::Panic)), "as scripted");
        if faults.contains(&Some(Fault::Hang)) {
            return self.hang(batch).await;
        }
        for fault in faults.iter().flatten() {
            if let Fault::Delay(delay) = fault {
                self.clock.sleep(*delay).await;
            }
        }
        let mut replies = Vec::with_capacity(batch.len());
        for (request, fault) in batch.iter().zip(&faults) {
            replies.push(self.apply_one(request, *fault).await);
        }
        for fault in faults.iter().flatten() {
            if let Fault::DelayReply(delay) = fault {
                self.clock.sleep(*delay).await;
            }
        }
        replies
    }

    async fn apply_one(&self, request: &Request, fault: Option<Fault>) -> Result<Reply, Error> {
        match fault {
            Some(Fault::Fail) => return Err(unavailable("not reached")),
            Some(Fault::Refuse) => {
                return Err(Error::new(ErrorKind::Forbidden, "refused, as scripted"));
            }
            Some(Fault::Forget) => self.forget(&request.name).await?,
            _ => {}
        }
        let mut replies = self.store.apply(std::slice::from_ref(request)).await;
        match (fault, replies.pop()) {
            (Some(Fault::LoseReply), _) | (_, None) => Err(unavailable("reply lost")),
            (_, Some(reply)) => reply,
        }
    }

    async fn hang(&self, batch: &[Request]) -> Vec<Result<Reply, Error>> {
        let (reply, replied) = oneshot::channel();
        lock(&self.parked).push(Parked {
            requests: batch.to_vec(),
            reply,
        });
        match replied.await {
            Ok(replies) => replies,
            // The store was dropped with the call in it.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Store for ScriptedStore {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(self.apply_scripted(batch))
    }

    fn shard(&self, name: &LockName) -> Shard {
        self.store.shard(name)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        self.store.list(prefix)
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let relay = Arc::new(Relay {
            target: listener,
            lost: self.lost_pushes.clone(),
            passed: self.passed_pushes.clone(),
        });
        lock(&self.relays).push(relay.clone());
        let relay: Weak<dyn Listener> = Arc::downgrade(&(relay as Arc<dyn Listener>));
        Box::pin(async move { self.store.listen(inbox, relay).await })
    }

    fn recovering<'a>(
        &'a self,
        name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        self.store.recovering(name)
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        self.store.diagnose()
    }
}

/// Stands between the store and a client, and loses pushes.
struct Relay {
    target: Weak<dyn Listener>,
    lost: Arc<AtomicUsize>,
    passed: Arc<AtomicUsize>,
}

impl Listener for Relay {
    fn pushed(&self, push: Push) {
        let one_less = |left: usize| left.checked_sub(1);
        let lost = self
            .lost
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        if lost.is_ok() {
            return;
        }
        self.passed.fetch_add(1, Ordering::SeqCst);
        if let Some(target) = self.target.upgrade() {
            target.pushed(push);
        }
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Relay")
    }
}

fn unavailable(what: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{what}, as scripted"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
