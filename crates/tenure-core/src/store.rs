//! [`Store`]: the contract between tenure and whatever keeps the locks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;

use crate::{
    Error, Fence, Guarantees, Inbox, LockName, OwnerId, Recovering, Reply, Request, Snapshot,
    Timestamp,
};

/// A future without its type, so that stores can be boxed and wrapped.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Somewhere to keep locks.
///
/// **The contract in one sentence: for each request, [`apply`](Self::apply) is indistinguishable
/// from atomically loading the state of its name, running [`decide`](crate::decide()) with the
/// store's own clock, storing the result and pushing its handovers.**
///
/// This trait is for those who *write* a store; those who use one use the client in crate `tenure`.
/// There are no default methods: a wrapper that forgets to pass one on does not compile.
pub trait Store: Send + Sync + fmt::Debug {
    /// What this store promises, and what breaks it.
    fn guarantees(&self) -> Guarantees;

    /// Decides a batch, in order, each request as if alone; one request's failure never touches
    /// another's. Answers exactly one result per request, in the same order.
    ///
    /// An error means that the outcome of that request is *unknown* unless its kind says otherwise:
    /// it may have been carried out, or may still be. Requests are built so that repeating them is
    /// safe.
    ///
    /// # Cancel safety
    /// Dropping the future leaves each request carried out, or not, or carried out later. Callers
    /// follow up with [`Cancel`](crate::Cancel).
    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>>;

    /// Which part of the store keeps the lock of this name. Requests for different parts travel apart,
    /// so that one which hangs holds up no other, and each part has a clock of its own. Always the
    /// same for a store that is one whole; may change when a store's parts change.
    fn shard(&self, name: &LockName) -> Shard;

    /// All names with this prefix that somebody holds or waits for, sorted. Not atomic across names.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>>;

    /// From now on, delivers what is pushed to `inbox` to `listener`, until either is dropped.
    /// Called once per client, before its first request; returns once pushes can arrive.
    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// For how long the store lets nobody in still, because it may have forgotten who holds what: until
    /// then [`list`](Self::list) and [`Inspect`](crate::Action::Inspect) may miss holders. `None` if it forgot
    /// nothing. Of a lock of this name, or of any. Only looks, so that what begins only when somebody first asks for a
    /// lock is said to ([`Recovering::OnceAsked`]).
    fn recovering<'a>(
        &'a self,
        name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>>;

    /// Looks at the store as a worried operator would: reachable, how fast, safely configured?
    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>>;
}

/// A part of a store that can fail, hang and tell the time on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(usize);

impl Shard {
    /// The whole store, or its first part.
    pub const WHOLE: Self = Self(0);

    /// The part of this number.
    #[must_use]
    pub const fn new(number: usize) -> Self {
        Self(number)
    }

    /// Its number, from 0.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }
}

/// Receives what a store pushes.
pub trait Listener: Send + Sync {
    /// Called for each push, possibly from the store's own IO task: must return quickly and must
    /// not block.
    fn pushed(&self, push: Push);
}

/// What a store tells a client unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Push {
    /// A waiter was let in.
    Granted(PushedGrant),
    /// This lock may be free now: whoever waits for it should ask again. Only from a store without a
    /// queue ([`Order::Race`](crate::Order::Race)).
    MaybeFree(LockName),
    /// Pushes may have been missed (the connection was lost): every waiter should ask again.
    Missed,
}

/// A grant that was made while somebody else's request was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedGrant {
    /// Of which lock.
    pub name: LockName,
    /// For whom.
    pub owner: OwnerId,
    /// Its fence.
    pub fence: Fence,
    /// When it was made, by the store's clock.
    pub now: Timestamp,
    /// The end of its claim window.
    pub expiry: Timestamp,
}

/// What [`Store::list`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The store's clock when it looked.
    pub now: Timestamp,
    /// Sorted by name.
    pub locks: Vec<(LockName, Snapshot)>,
}

/// Something that [`Store::diagnose`] noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was looked at, in a word or two.
    pub subject: String,
    /// What was found and, unless it is fine, what to do.
    pub detail: String,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Fine,
    /// Works, but not as well as it could.
    Warning,
    /// A promise does not hold.
    Danger,
}

/// A store can be boxed.
fn _object_safe(_: &dyn Store) {}
