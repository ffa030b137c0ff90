//! A shelf of wrong variants: mistakes that lock services and their clients have really made. Those of
//! the store spoil what the simulated server does, those of the client stand between it and the link.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tenure::clock::Clock;
use tenure::core::{
    Acquire, Action, BoxFuture, Decision, Fence, Finding, Guarantees, Inbox, Listener, Listing,
    LockName, LockState, Outcome, OwnerId, Recovering, Renew, Reply, Request, Shard, Timestamp,
};
use tenure::{Error, Store, Ttl};

use super::network::Replies;
use super::world::World;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A release ends whatever is held, whoever holds it.
    UnlockWithoutOwner,
    /// A lease counts from the moment when the answer arrived.
    ValidityFromTheReply,
    /// The store reads its clock and then waits for the row.
    ClockBeforeTheLock,
    /// Fences are counted, and the count is lost with the rest.
    CounterFence,
    /// A waiter that is let in has the lock for a whole ttl, whether or not it is there.
    NoClaimWindow,
    /// A place in the queue is kept for ever.
    WaiterWithoutALimit,
    /// A cancellation takes a waiter out of the queue, but leaves what it has just been given.
    CancelForgetsAGrant,
    /// A waiter asks once, and then waits for the push.
    PushOnly,
    /// A server that may have forgotten something opens at once.
    RecoveryOff,
}

impl Flaw {
    /// What the server takes an action for.
    pub(super) fn misread(self, mut action: Action, lock: &LockState) -> Action {
        match (self, &mut action) {
            (Self::UnlockWithoutOwner, Action::Release(release)) => {
                if let Some(holder) = lock.holders.first() {
                    (release.owner, release.fence) = (holder.owner, holder.fence);
                }
            }
            (Self::CancelForgetsAGrant, Action::Cancel(cancel))
                if lock.holder(cancel.owner).is_some() =>
            {
                cancel.owner = OwnerId::from_bytes([0; 16]);
            }
            _ => {}
        }
        action
    }

    /// What the server makes of a decision.
    pub(super) fn spoil(self, decision: &mut Decision, before: &LockState, now: Timestamp) {
        let far = now.plus(Duration::from_secs(100_000));
        match self {
            Self::CounterFence => count(decision, before),
            Self::NoClaimWindow => {
                for handover in &mut decision.handovers {
                    let mut queue = before.queue.iter();
                    let ttl = queue.find(|it| it.owner == handover.owner).map(|it| it.ttl);
                    handover.expiry = now.plus(ttl.unwrap_or(Ttl::DEFAULT).duration());
                    let mut holders = decision.state.holders.iter_mut();
                    if let Some(holder) = holders.find(|it| it.owner == handover.owner) {
                        holder.expiry = handover.expiry;
                    }
                }
            }
            Self::WaiterWithoutALimit => {
                for waiter in &mut decision.state.queue {
                    waiter.alive_until = far;
                }
            }
            _ => {}
        }
    }

    /// The store as a client with this flaw sees it.
    pub(super) fn around(
        flaw: Option<Self>,
        world: &Arc<World>,
        link: Arc<dyn Store>,
    ) -> Arc<dyn Store> {
        match flaw {
            Some(flaw @ (Self::ValidityFromTheReply | Self::PushOnly)) => Arc::new(Wrong {
                flaw,
                world: world.clone(),
                link,
                queued: Mutex::default(),
            }),
            _ => link,
        }
    }
}

/// What a bare counter would have given.
fn count(decision: &mut Decision, before: &LockState) {
    let mut last = before.last_fence;
    for holder in &mut decision.state.holders {
        if before.holder(holder.owner).is_some() {
            continue;
        }
        let fence = Fence::from_u64(last.as_u64() + 1);
        if let Outcome::Granted(grant) = &mut decision.outcome
            && grant.fence == holder.fence
        {
            grant.fence = fence;
        }
        let mut handovers = decision.handovers.iter_mut();
        if let Some(handover) = handovers.find(|it| it.owner == holder.owner) {
            handover.fence = fence;
        }
        holder.fence = fence;
        last = fence.last_of_grant(holder.mode);
    }
    decision.state.last_fence = last;
}

/// A client's mistake, as a store around a store.
#[derive(Debug)]
struct Wrong {
    flaw: Flaw,
    world: Arc<World>,
    link: Arc<dyn Store>,
    /// What those who wait were told when they asked for the first time.
    queued: Mutex<BTreeMap<OwnerId, Outcome>>,
}

impl Wrong {
    /// Three quarters of a lease, counted from the answer. A whole one would be capped by the client.
    async fn count_from_the_reply(&self, batch: &[Request]) -> Replies {
        let shorter = |ttl: Ttl| Ttl::new(ttl.duration() * 3 / 4).unwrap_or(Ttl::MIN);
        let mut batch = batch.to_vec();
        for request in &mut batch {
            if let Action::Acquire(Acquire { ttl, .. }) | Action::Renew(Renew { ttl, .. }) =
                &mut request.action
            {
                *ttl = shorter(*ttl);
            }
        }
        let sent = self.world.clock.now();
        let mut replies = self.link.apply(&batch).await;
        let elapsed = self.world.clock.now().since(sent);
        for reply in replies.iter_mut().flatten() {
            match &mut reply.outcome {
                Outcome::Granted(grant) => grant.expiry = grant.expiry.plus(elapsed),
                Outcome::Renewed { expiry } => *expiry = expiry.plus(elapsed),
                _ => {}
            }
        }
        replies
    }

    /// Whoever has a place in the queue does not ask again, and goes by what it was told.
    async fn push_only(&self, batch: &[Request]) -> Replies {
        let mut replies = Vec::new();
        for request in batch {
            let owner = match &request.action {
                Action::Acquire(acquire) => Some(acquire.owner),
                _ => None,
            };
            let known = owner.and_then(|owner| self.queued.lock().unwrap().get(&owner).cloned());
            if let Some(outcome) = known {
                let now = self.world.time();
                replies.push(Ok(Reply { now, outcome }));
                continue;
            }
            let reply = self.link.apply(std::slice::from_ref(request)).await.pop();
            let reply = reply.expect("one reply to one request");
            if let (Some(owner), Ok(Reply { outcome, .. })) = (owner, &reply)
                && matches!(outcome, Outcome::Queued { .. })
            {
                self.queued.lock().unwrap().insert(owner, outcome.clone());
            }
            replies.push(reply);
        }
        replies
    }
}

impl Store for Wrong {
    fn guarantees(&self) -> Guarantees {
        self.link.guarantees()
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Replies> {
        match self.flaw {
            Flaw::PushOnly => Box::pin(self.push_only(batch)),
            _ => Box::pin(self.count_from_the_reply(batch)),
        }
    }

    fn shard(&self, name: &LockName) -> Shard {
        self.link.shard(name)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        self.link.list(prefix)
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.link.listen(inbox, listener)
    }

    fn recovering<'a>(
        &'a self,
        name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        self.link.recovering(name)
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        self.link.diagnose()
    }
}
