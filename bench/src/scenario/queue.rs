//! Many who wait for one name, as the store sees them: the requests of as many owners are made on the
//! store itself, without the client, whose tasks would wait for each other instead. The harness takes
//! the time of each script between the steps.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use tenure::core::{
    Acquire, Action, Fence, Inbox, Listener, LockName, Mode, Outcome, OwnerId, Party, Push,
    PushedGrant, Release, Store, Ttl, Waiting,
};

use crate::Fault;
use crate::arguments::Arguments;
use crate::figures::Durations;
use crate::steps::Steps;
use crate::time::{Instant, until};

#[derive(Debug)]
pub(crate) struct Queue {
    waiters: u64,
    turns: u64,
    steps: Steps,
}

/// How long a place is kept and a lease lasts: longer than any measurement.
const LONG: Duration = Duration::from_secs(3600);

/// How long a push may take until something must be wrong.
const PUSH_LIMIT: Duration = Duration::from_secs(10);

/// Requests in one call while the queue is filled.
const AT_ONCE: usize = 64;

impl Queue {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            waiters: arguments.number("waiters")?,
            turns: arguments.number("n")?,
            steps: Steps::read(arguments)?,
        })
    }

    /// Each turn, one more owner queues and the holder gives way to the first: the queue keeps its
    /// length.
    pub(super) async fn run(&self, store: &dyn Store) -> Result<Value, Fault> {
        let (listener, mut grants) = Grants::new();
        let crowd = Crowd::new(store)?;
        let ear: Weak<dyn Listener> = Arc::downgrade(&listener) as _;
        store.listen(&crowd.inbox, ear).await?;
        let mut fence = crowd.hold(0).await?;
        // With one waiter every script is loaded: what comes now is the others alone.
        crowd.fill(1..=1).await?;
        self.steps.done("held").await?;
        crowd.fill(2..=self.waiters).await?;
        let [mut acquires, mut releases, mut handovers] = [(); 3].map(|()| Durations::default());
        self.steps.done("begun").await?;
        for turn in 0..self.turns {
            let begun = Instant::now();
            crowd.enqueue(self.waiters + 1 + turn).await?;
            acquires.add(Instant::now().since(begun));
            self.steps.done("queued").await?;
            let begun = Instant::now();
            crowd.release(turn, fence).await?;
            releases.add(Instant::now().since(begun));
            fence = next(&mut grants, turn + 1).await?;
            handovers.add(Instant::now().since(begun));
            self.steps.done("released").await?;
        }
        let handovers = handovers.ranked();
        Ok(json!({
            "waiters": self.waiters,
            "acquire_p50_us": acquires.ranked().quantile(0.5),
            "release_p50_us": releases.ranked().quantile(0.5),
            "handover_p50_us": handovers.quantile(0.5),
            "handover_p99_us": handovers.quantile(0.99),
        }))
    }
}

/// Owners by number, all behind one inbox.
struct Crowd<'a> {
    store: &'a dyn Store,
    name: LockName,
    inbox: Inbox,
    ttl: Ttl,
}

impl<'a> Crowd<'a> {
    fn new(store: &'a dyn Store) -> Result<Self, Fault> {
        Ok(Self {
            store,
            name: LockName::new("peer:queue")?,
            inbox: Inbox::from_bytes(u128::from(std::process::id()).to_be_bytes()),
            ttl: Ttl::new(LONG)?,
        })
    }

    async fn hold(&self, number: u64) -> Result<Fence, Fault> {
        let request = self.acquire(number, Waiting::No);
        match self.ask(vec![request]).await?.remove(0) {
            Outcome::Granted(grant) => Ok(grant.fence),
            other => Err(format!("a free lock was not granted: {other:?}").into()),
        }
    }

    async fn fill(&self, numbers: impl Iterator<Item = u64>) -> Result<(), Fault> {
        let numbers: Vec<u64> = numbers.collect();
        for part in numbers.chunks(AT_ONCE) {
            let batch = part.iter().map(|number| self.queueing(*number)).collect();
            self.ask(batch).await?.iter().try_for_each(must_be_queued)?;
        }
        Ok(())
    }

    async fn enqueue(&self, number: u64) -> Result<(), Fault> {
        let outcomes = self.ask(vec![self.queueing(number)]).await?;
        outcomes.iter().try_for_each(must_be_queued)
    }

    async fn release(&self, number: u64, fence: Fence) -> Result<(), Fault> {
        let owner = owner(number);
        let outcomes = self
            .ask(vec![Action::Release(Release { owner, fence })])
            .await?;
        match &outcomes[..] {
            [Outcome::Released] => Ok(()),
            other => Err(format!("the holder could not release: {other:?}").into()),
        }
    }

    fn queueing(&self, number: u64) -> Action {
        let waiting = Waiting::Queue {
            inbox: self.inbox.clone(),
            alive_for: LONG,
        };
        self.acquire(number, waiting)
    }

    fn acquire(&self, number: u64, waiting: Waiting) -> Action {
        Action::Acquire(Acquire {
            owner: owner(number),
            mode: Mode::Exclusive,
            ttl: self.ttl,
            party: Party::default(),
            waiting,
            anchor: None,
            not_after: None,
        })
    }

    async fn ask(&self, actions: Vec<Action>) -> Result<Vec<Outcome>, Fault> {
        let on = |action: Action| action.on(self.name.clone());
        let batch: Vec<_> = actions.into_iter().map(on).collect();
        let replies = self.store.apply(&batch).await;
        let outcome = |reply: Result<tenure::core::Reply, _>| Ok(reply?.outcome);
        replies.into_iter().map(outcome).collect()
    }
}

/// Hands on the grants that the store pushes.
struct Grants(mpsc::UnboundedSender<PushedGrant>);

impl Grants {
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<PushedGrant>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self(sender)), receiver)
    }
}

impl Listener for Grants {
    fn pushed(&self, push: Push) {
        if let Push::Granted(grant) = push {
            // Nobody listens any more once the scenario is over.
            let _ = self.0.send(grant);
        }
    }
}

/// The fence of the next grant, which must be for `number`.
async fn next(
    grants: &mut mpsc::UnboundedReceiver<PushedGrant>,
    number: u64,
) -> Result<Fence, Fault> {
    let limit = Instant::now().after(PUSH_LIMIT);
    match until(limit, grants.recv()).await.flatten() {
        Some(grant) if grant.owner == owner(number) => Ok(grant.fence),
        Some(_) => Err("somebody overtook the first of the queue".into()),
        None => Err("nobody was told of a grant".into()),
    }
}

fn must_be_queued(outcome: &Outcome) -> Result<(), Fault> {
    match outcome {
        Outcome::Queued { .. } => Ok(()),
        other => Err(format!("a held lock did not let wait: {other:?}").into()),
    }
}

fn owner(number: u64) -> OwnerId {
    OwnerId::from_bytes(u128::from(number).to_be_bytes())
}
