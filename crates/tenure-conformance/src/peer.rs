//! [`World`]: the names of one case. [`Peer`]: one process that uses them.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{
    Acquire, Action, Cancel, Convert, Fence, ForceRelease, Grant, Inbox, Listener, LockName, Mode,
    Outcome, OwnerId, Party, Push, PushedGrant, Release, Renew, Reply, Request, Snapshot, Store,
    Timestamp, Ttl, Waiting,
};

use crate::random::{fresh, fresh_bytes};
use crate::subject::{PATIENCE, Subject};

/// One case's own corner of the store.
pub(crate) struct World<'a> {
    pub(crate) subject: &'a dyn Subject,
    space: String,
}

impl<'a> World<'a> {
    pub(crate) fn new(subject: &'a dyn Subject, title: &str) -> Self {
        let space = format!("{title}-{:016x}", fresh());
        Self { subject, space }
    }

    /// The prefix of all names of this case.
    pub(crate) fn space(&self) -> &str {
        &self.space
    }

    pub(crate) fn name(&self, text: &str) -> LockName {
        LockName::new(format!("{}/{text}", self.space)).expect("cases use names that are allowed")
    }

    /// Another process: its own handle and its own inbox, at which it listens.
    pub(crate) async fn peer(&self) -> Peer<'a> {
        let peer = self.deaf_peer().await;
        let listener: Weak<dyn Listener> = Arc::downgrade(&peer.mailbox) as _;
        let listening = peer.store.listen(&peer.inbox, listener).await;
        listening.expect("a store lets its clients listen");
        peer
    }

    /// Another process, which never began to listen: a push to it reaches nobody.
    pub(crate) async fn deaf_peer(&self) -> Peer<'a> {
        let store = self.subject.open().await;
        Peer {
            subject: self.subject,
            store: store.expect("a subject can be opened"),
            inbox: Inbox::from_bytes(fresh_bytes()),
            mailbox: Arc::default(),
        }
    }

    /// `bid`, but for so many milliseconds, at the subject's [pace](Subject::pace).
    pub(crate) fn lasting(&self, bid: Acquire, millis: u64) -> Acquire {
        let ttl = ttl(millis * u64::from(self.subject.pace()));
        Acquire { ttl, ..bid }
    }

    /// Whether two times are the same as far as the store can tell.
    pub(crate) fn same_time(&self, one: Option<Timestamp>, other: Option<Timestamp>) -> bool {
        let off = |one: Timestamp, other: Timestamp| one.since(other) + other.since(one);
        match (one, other) {
            (Some(one), Some(other)) => off(one, other) <= self.subject.time_tolerance(),
            (one, other) => one == other,
        }
    }

    /// Lets so many milliseconds pass, at the subject's [pace](Subject::pace).
    pub(crate) async fn pass(&self, millis: u64) {
        let time = Duration::from_millis(millis) * self.subject.pace();
        self.subject.pass_time(time).await;
    }
}

/// One process that uses the store.
pub(crate) struct Peer<'a> {
    subject: &'a dyn Subject,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inbox: Inbox,
    pub(crate) mailbox: Arc<Mailbox>,
}

/// What was pushed to a peer so far.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(Mutex<Vec<PushedGrant>>);

impl Listener for Mailbox {
    fn pushed(&self, push: Push) {
        if let Push::Granted(grant) = push {
            let mut grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            grants.push(grant);
        }
    }
}

impl Mailbox {
    /// Throws away what is no longer of interest.
    pub(crate) fn keep(&self, wanted: impl Fn(&PushedGrant) -> bool) {
        let mut grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        grants.retain(wanted);
    }

    pub(crate) fn grants(&self) -> Vec<PushedGrant> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A hold, as its owner knows it.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) name: LockName,
    pub(crate) owner: OwnerId,
    pub(crate) fence: Fence,
    pub(crate) expiry: Timestamp,
    /// When it was granted or pushed.
    pub(crate) since: Timestamp,
}

pub(crate) const NOT_HELD: Outcome = Outcome::NotHeld { forced: None };

impl Peer<'_> {
    /// Whether the store has what is asked for at all.
    pub(crate) fn offers(&self, bid: &Acquire) -> bool {
        !matches!(bid.mode, Mode::Permits(_)) || self.store.guarantees().permits
    }

    pub(crate) fn time_tolerance(&self) -> Duration {
        self.subject.time_tolerance()
    }

    pub(crate) async fn pause(&self) {
        self.subject.pause().await;
    }

    pub(crate) async fn apply(&self, batch: &[Request]) -> Vec<Reply> {
        let results = self.store.apply(batch).await;
        assert_eq!(results.len(), batch.len(), "one result for each request");
        let replies = results.into_iter().zip(batch).map(|(result, request)| {
            result.unwrap_or_else(|error| {
                panic!(
                    "{} of {} failed: {error}",
                    request.action.word(),
                    request.name
                )
            })
        });
        replies.collect()
    }

    pub(crate) async fn ask(&self, name: &LockName, action: Action) -> Reply {
        let mut replies = self.apply(&[action.on(name.clone())]).await;
        replies.remove(0)
    }

    pub(crate) async fn acquire(&self, name: &LockName, bid: &Acquire) -> Reply {
        self.ask(name, Action::Acquire(bid.clone())).await
    }

    /// Acquires and expects to get it.
    pub(crate) async fn take(&self, name: &LockName, bid: &Acquire) -> Held {
        let Reply { now, outcome } = self.acquire(name, bid).await;
        let Outcome::Granted(Grant { fence, expiry }) = outcome else {
            panic!("expected a grant, got {outcome:?}");
        };
        Held {
            name: name.clone(),
            owner: bid.owner,
            fence,
            expiry,
            since: now,
        }
    }

    /// Acquires without waiting and expects that somebody is in the way.
    pub(crate) async fn is_refused(&self, name: &LockName, bid: &Acquire) {
        let outcome = self.acquire(name, bid).await.outcome;
        assert!(
            matches!(outcome, Outcome::Busy(_)),
            "expected busy, got {outcome:?}"
        );
    }

    /// Acquires and expects a place in the queue behind this many.
    pub(crate) async fn queues(&self, name: &LockName, bid: &Acquire, behind: u32) {
        match self.acquire(name, bid).await.outcome {
            Outcome::Queued { ahead, .. } => assert_eq!(ahead, behind, "waiters ahead"),
            other => panic!("expected a place in the queue, got {other:?}"),
        }
    }

    pub(crate) async fn renew(&self, held: &Held, millis: u64) -> Reply {
        let renew = Renew {
            owner: held.owner,
            fence: held.fence,
            ttl: ttl(millis),
            detach: false,
            terms: None,
        };
        self.ask(&held.name, Action::Renew(renew)).await
    }

    pub(crate) async fn convert(&self, held: &Held) -> Outcome {
        let (owner, fence) = (held.owner, held.fence);
        let convert = Action::Convert(Convert { owner, fence });
        self.ask(&held.name, convert).await.outcome
    }

    pub(crate) async fn release(&self, held: &Held) -> Outcome {
        let (owner, fence) = (held.owner, held.fence);
        let release = Action::Release(Release { owner, fence });
        self.ask(&held.name, release).await.outcome
    }

    /// Releases and expects that there was something to release.
    pub(crate) async fn lets_go(&self, held: &Held) {
        assert_eq!(self.release(held).await, Outcome::Released);
    }

    pub(crate) async fn force(&self, held: &Held, reason: &str) -> Outcome {
        let force = ForceRelease {
            owner: held.owner,
            fence: held.fence,
            by: Party::new("operator@desk", "on call", "desk", 7),
            reason: reason.to_owned(),
        };
        self.ask(&held.name, Action::ForceRelease(force))
            .await
            .outcome
    }

    pub(crate) async fn cancel(&self, name: &LockName, owner: OwnerId) -> Outcome {
        let cancel = Action::Cancel(Cancel { owner });
        self.ask(name, cancel).await.outcome
    }

    pub(crate) async fn inspect(&self, name: &LockName) -> (Timestamp, Snapshot) {
        let Reply { now, outcome } = self.ask(name, Action::Inspect).await;
        match outcome {
            Outcome::State(snapshot) => (now, snapshot),
            other => panic!("inspect answered {other:?}"),
        }
    }

    /// The owners that hold `name`, in grant order.
    pub(crate) async fn holders(&self, name: &LockName) -> Vec<OwnerId> {
        let (_, snapshot) = self.inspect(name).await;
        let owners = snapshot.holders.iter();
        owners.filter_map(|holder| holder.owner).collect()
    }

    /// The owners that wait for `name`, in order of arrival.
    pub(crate) async fn waiters(&self, name: &LockName) -> Vec<OwnerId> {
        let (_, snapshot) = self.inspect(name).await;
        snapshot.waiters.iter().map(|waiter| waiter.owner).collect()
    }

    /// `bid`, ready to wait at this peer's inbox. Its place is kept for a minute.
    pub(crate) fn waiting(&self, bid: Acquire) -> Acquire {
        self.waiting_for(bid, 60_000)
    }

    /// `bid`, ready to wait at this peer's inbox. Its claim window is half of `alive_for`.
    pub(crate) fn waiting_for(&self, bid: Acquire, alive_for: u64) -> Acquire {
        let waiting = Waiting::Queue {
            inbox: self.inbox.clone(),
            alive_for: Duration::from_millis(alive_for),
        };
        Acquire { waiting, ..bid }
    }

    /// Waits until this owner's grant of `name` has been pushed to this peer.
    pub(crate) async fn is_told(&self, name: &LockName, owner: OwnerId) -> Held {
        for _ in 0..PATIENCE {
            let grants = self.mailbox.grants();
            let grant = grants.iter().find(|g| g.owner == owner && g.name == *name);
            if let Some(grant) = grant {
                return Held {
                    name: name.clone(),
                    owner,
                    fence: grant.fence,
                    expiry: grant.expiry,
                    since: grant.now,
                };
            }
            self.subject.pause().await;
        }
        panic!("no grant of {name} was pushed to {owner}");
    }
}

/// Somebody new, who wants the lock exclusively for a minute and does not wait.
pub(crate) fn bid() -> Acquire {
    Acquire {
        owner: OwnerId::from_bytes(fresh_bytes()),
        mode: Mode::Exclusive,
        ttl: ttl(60_000),
        party: Party::new("somebody@somewhere", "testing", "somewhere", 42),
        waiting: Waiting::No,
        anchor: None,
        not_after: None,
    }
}

pub(crate) fn shared() -> Acquire {
    let mode = Mode::Shared;
    Acquire { mode, ..bid() }
}

pub(crate) fn permits(count: u32, capacity: u32) -> Acquire {
    let mode = Mode::permits(count, capacity).expect("cases ask for counts in range");
    Acquire { mode, ..bid() }
}

pub(crate) fn ttl(millis: u64) -> Ttl {
    Ttl::new(Duration::from_millis(millis)).expect("cases use ttls in range")
}
