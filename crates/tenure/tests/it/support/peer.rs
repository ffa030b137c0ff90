//! One client of a store, at the level of requests: what tests of a store speak.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tenure::core::{
    Acquire, Action, Cancel, Convert, ForceRelease, Grant, Inbox, Listener, Outcome, Push,
    PushedGrant, Release, Renew, Reply, Terms, Waiting,
};
use tenure::{Error, Lease, LockName, Mode, OwnerId, Party, Snapshot, Store, Ttl};

use super::wait::eventually_async;

/// A store, an inbox and what was pushed to it.
#[derive(Debug)]
pub(crate) struct Peer<S> {
    pub(crate) store: S,
    pub(crate) inbox: Inbox,
    pub(crate) mailbox: Arc<Mailbox>,
}

#[derive(Debug, Default)]
pub(crate) struct Mailbox(Mutex<Vec<Push>>);

impl Listener for Mailbox {
    fn pushed(&self, push: Push) {
        self.0.lock().unwrap().push(push);
    }
}

impl Mailbox {
    pub(crate) fn grants(&self) -> Vec<PushedGrant> {
        let pushes = self.0.lock().unwrap();
        let grants = pushes.iter().filter_map(|push| match push {
            Push::Granted(grant) => Some(grant.clone()),
            Push::MaybeFree(_) | Push::Missed => None,
        });
        grants.collect()
    }

    pub(crate) fn missed(&self) -> usize {
        let pushes = self.0.lock().unwrap();
        pushes.iter().filter(|push| **push == Push::Missed).count()
    }
}

impl<S: Store> Peer<S> {
    /// A client that does not listen: nothing can be pushed to it.
    pub(crate) fn deaf(store: S) -> Self {
        Self {
            store,
            inbox: Inbox::from_bytes(random()),
            mailbox: Arc::default(),
        }
    }

    /// A client that listens.
    pub(crate) async fn new(store: S) -> Self {
        let peer = Self::deaf(store);
        peer.listen()
            .await
            .expect("the store lets its clients listen");
        peer
    }

    pub(crate) async fn listen(&self) -> Result<(), Error> {
        let listener: Weak<dyn Listener> = Arc::downgrade(&self.mailbox) as _;
        self.store.listen(&self.inbox, listener).await
    }

    pub(crate) async fn try_ask(&self, name: &str, action: Action) -> Result<Reply, Error> {
        let mut results = self.store.apply(&[action.on(named(name))]).await;
        assert_eq!(results.len(), 1, "one result for one request");
        results.remove(0)
    }

    pub(crate) async fn ask(&self, name: &str, action: Action) -> Outcome {
        let word = action.word();
        let reply = self.try_ask(name, action).await;
        let reply = reply.unwrap_or_else(|error| panic!("{word} of {name}: {error}"));
        reply.outcome
    }

    /// Acquires and expects to get it.
    pub(crate) async fn take(&self, name: &str, bid: &Acquire) -> Lease {
        match self.ask(name, Action::Acquire(bid.clone())).await {
            Outcome::Granted(Grant { fence, .. }) => Lease {
                owner: bid.owner,
                fence,
            },
            other => panic!("expected a grant of {name}, got {other:?}"),
        }
    }

    /// Acquires and expects a place in the queue.
    pub(crate) async fn queue(&self, name: &str, bid: &Acquire) -> u32 {
        match self.ask(name, Action::Acquire(self.waiting(bid))).await {
            Outcome::Queued { ahead, .. } => ahead,
            other => panic!("expected a place in the queue of {name}, got {other:?}"),
        }
    }

    pub(crate) async fn release(&self, name: &str, lease: Lease) -> Outcome {
        let Lease { owner, fence } = lease;
        self.ask(name, Action::Release(Release { owner, fence }))
            .await
    }

    pub(crate) async fn renew(&self, name: &str, lease: Lease) -> Outcome {
        self.ask(name, renewal(lease)).await
    }

    pub(crate) async fn convert(&self, name: &str, lease: Lease) -> Outcome {
        let Lease { owner, fence } = lease;
        self.ask(name, Action::Convert(Convert { owner, fence }))
            .await
    }

    pub(crate) async fn cancel(&self, name: &str, owner: OwnerId) -> Outcome {
        self.ask(name, Action::Cancel(Cancel { owner })).await
    }

    pub(crate) async fn force(&self, name: &str, lease: Lease, reason: &str) -> Outcome {
        let force = ForceRelease {
            owner: lease.owner,
            fence: lease.fence,
            by: Party::new("operator@desk", "", "desk", 7),
            reason: reason.to_owned(),
        };
        self.ask(name, Action::ForceRelease(force)).await
    }

    pub(crate) async fn inspect(&self, name: &str) -> Snapshot {
        match self.ask(name, Action::Inspect).await {
            Outcome::State(snapshot) => snapshot,
            other => panic!("inspect answered {other:?}"),
        }
    }

    /// `bid`, ready to wait at this client's inbox; its place is kept for a minute.
    pub(crate) fn waiting(&self, bid: &Acquire) -> Acquire {
        let mut bid = bid.clone();
        bid.waiting = Waiting::Queue {
            inbox: self.inbox.clone(),
            alive_for: Duration::from_secs(60),
        };
        bid
    }

    /// Waits until this owner's grant has been pushed.
    pub(crate) async fn is_told(&self, owner: OwnerId) -> PushedGrant {
        let told = async || self.mailbox.grants().into_iter().find(|g| g.owner == owner);
        eventually_async("the grant is pushed", told).await
    }
}

pub(crate) fn named(name: &str) -> LockName {
    LockName::new(name).expect("tests use names that are allowed")
}

/// Somebody new, who wants it exclusively for half a minute and does not wait.
pub(crate) fn bid() -> Acquire {
    Acquire {
        owner: OwnerId::from_bytes(random()),
        mode: Mode::Exclusive,
        ttl: Ttl::DEFAULT,
        party: Party::new("tester@bench", "a test", "bench", 42),
        waiting: Waiting::No,
        anchor: None,
        not_after: None,
    }
}

pub(crate) fn bid_in(mode: Mode) -> Acquire {
    Acquire { mode, ..bid() }
}

/// `bid`, but for so many milliseconds.
pub(crate) fn lasting(bid: Acquire, millis: u64) -> Acquire {
    let ttl = Ttl::new(Duration::from_millis(millis)).expect("tests use ttls in range");
    Acquire { ttl, ..bid }
}

pub(crate) fn renewal(lease: Lease) -> Action {
    Action::Renew(Renew {
        owner: lease.owner,
        fence: lease.fence,
        ttl: Ttl::DEFAULT,
        detach: false,
        terms: None,
    })
}

/// The same of a holder that says how it holds: exclusively. A store that recovers believes nobody else.
pub(crate) fn reclaim(lease: Lease) -> Action {
    let Action::Renew(mut renew) = renewal(lease) else {
        unreachable!("it is one");
    };
    renew.terms = Some(Terms {
        mode: Mode::Exclusive,
        party: Party::default(),
    });
    Action::Renew(renew)
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}
