//! [`Guarantees`]: what a store promises, and what breaks each promise. Tables in README and docs
//! are generated from these.

use std::fmt;

/// What a store promises.
#[derive(Clone, Copy, Debug)]
pub struct Guarantees {
    /// The store, as in its URL scheme.
    pub store: &'static str,
    /// Who excludes whom.
    pub scope: &'static str,
    /// Which clock ends a lease.
    pub clock: &'static str,
    /// How many clocks that can be.
    pub clocks: Clocks,
    /// How a waiter learns of its grant.
    pub wake_up: &'static str,
    /// In which order waiters are served.
    pub order: Order,
    /// Whether a name can be a semaphore.
    pub permits: bool,
    /// One entry for each [`PromiseId`], in order.
    pub promises: [Promise; 6],
}

/// By how many clocks a store tells the time, of which one may be behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// Always the same one.
    One,
    /// One at a time: when a server is replaced or hands over a part of its names, the next one goes by
    /// its own.
    OneAtATime,
    /// Several at once: the time of the store, and its fences, are estimates.
    Several,
}

/// In which order waiters are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First come, first served; the store keeps a queue.
    Arrival,
    /// Whoever is fastest when it becomes free. The store keeps no queue: it answers a waiter
    /// [`Busy`](crate::Outcome::Busy), tells it by [`MaybeFree`](crate::Push::MaybeFree) when to ask
    /// again, and each time the waiter asks as another owner.
    Race,
}

/// One promise, and on what it depends.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// Which promise.
    pub id: PromiseId,
    /// Whether it holds.
    pub holds: Holds,
}

/// Whether a promise holds.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// Without any assumption beyond the one in the promise's own words.
    Always,
    /// Within this bound.
    Within(&'static str),
    /// If this is so.
    If(&'static str),
    /// It does not, because of this.
    No(&'static str),
}

/// The promises, in the words that docs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PromiseId {
    /// Fences of a name strictly grow in grant order.
    S1,
    /// Incompatible validity intervals never overlap, if the holder stops when its validity ends.
    S2,
    /// A resource that refuses fences below the highest it has seen never applies an old holder's
    /// write after a newer holder's, with no assumption about time.
    S3,
    /// After a holder's crash, the next waiter holds within a bound.
    L1,
    /// After a release, the next waiter holds after one step of the store and one message.
    L2,
    /// A lost message delays a waiter by a bound only.
    L3,
}

impl PromiseId {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [Self::S1, Self::S2, Self::S3, Self::L1, Self::L2, Self::L3];

    /// The promise in one sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::S1 => "fences of a name strictly grow in grant order",
            Self::S2 => "two incompatible holders are never valid at the same time",
            Self::S3 => "a resource that checks fences never applies an old holder's late write",
            Self::L1 => "a crashed holder is succeeded within a bound",
            Self::L2 => "a release hands over at once",
            Self::L3 => "a lost wake-up costs a bounded delay",
        }
    }
}

impl fmt::Display for PromiseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
