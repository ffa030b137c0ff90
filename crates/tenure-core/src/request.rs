//! [`Request`]: what can be asked of a lock. Each is one atomic step and may be repeated safely.

use std::time::Duration;

use crate::{Fence, Inbox, LockName, Mode, OwnerId, Party, Timestamp, Ttl};

/// One [`Action`] on one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which lock.
    pub name: LockName,
    /// What to do with it.
    pub action: Action,
}

/// What to do with a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Take it, or wait for it.
    Acquire(Acquire),
    /// Prolong a hold.
    Renew(Renew),
    /// Turn an exclusive hold into a shared one.
    Convert(Convert),
    /// End a hold.
    Release(Release),
    /// End whatever an owner has here: its place in the queue or the grant that raced with us.
    Cancel(Cancel),
    /// End somebody else's hold.
    ForceRelease(ForceRelease),
    /// Look, and change nothing.
    Inspect,
}

/// Take the lock, or wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// Who asks; random and new for each acquire call, the same when the call is repeated.
    pub owner: OwnerId,
    /// In which way.
    pub mode: Mode,
    /// How long the lease lasts unless renewed.
    pub ttl: Ttl,
    /// For people.
    pub party: Party,
    /// Whether and how to queue up if it cannot be had now.
    pub waiting: Waiting,
    /// The process that the hold dies with, where the store can see a process die.
    pub anchor: Option<Inbox>,
    /// By the store's clock: later than this, the request takes nothing. It keeps a request that
    /// was delayed past its own cancellation from taking a lock that nobody wants any more.
    pub not_after: Option<Timestamp>,
}

/// What to do when the lock cannot be had now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Answer *busy* and leave no trace.
    No,
    /// Join the queue, or keep the place in it.
    Queue {
        /// Where to push the grant.
        inbox: Inbox,
        /// How long the place is kept without another sign of life.
        alive_for: Duration,
    },
}

/// Prolong a hold to `now + ttl`; never shorten it (an old renewal may arrive late), unless the
/// holder leaves it behind. A store that is recovering takes back a hold that it does not know.
///
/// **Only for holds that are still valid**: whoever renews one that it has lost may be given it back
/// by a store that forgot, beside somebody who holds it by right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renew {
    /// Whose hold.
    pub owner: OwnerId,
    /// Which hold.
    pub fence: Fence,
    /// From now.
    pub ttl: Ttl,
    /// The holder stops relying on the hold and leaves it behind: it lasts exactly `ttl` from now,
    /// also beyond the process that it was tied to.
    pub detach: bool,
    /// What a store that forgot needs to take the hold back; `None` if whoever renews does not know,
    /// and then nothing is taken back.
    pub terms: Option<Terms>,
}

/// How a hold is held, as its holder knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// In which way.
    pub mode: Mode,
    /// For people.
    pub party: Party,
}

/// Turn an exclusive hold into a shared one, keeping fence and expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convert {
    /// Whose hold.
    pub owner: OwnerId,
    /// Which hold.
    pub fence: Fence,
}

/// End a hold. Compares owner *and* fence, so that a late repetition cannot end a later hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Whose hold.
    pub owner: OwnerId,
    /// Which hold.
    pub fence: Fence,
}

/// Remove the owner's place in the queue, or the grant that raced with this request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// Whose place or grant.
    pub owner: OwnerId,
}

/// End somebody else's hold, for a stated reason. The old holder is *not* stopped by this: its
/// writes are refused only where the fence is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForceRelease {
    /// Whose hold.
    pub owner: OwnerId,
    /// Which hold.
    pub fence: Fence,
    /// Who does it.
    pub by: Party,
    /// Why; shown to the old holder.
    pub reason: String,
}

impl Action {
    /// The word for this action in messages and metrics.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Acquire(_) => "acquire",
            Self::Renew(_) => "renew",
            Self::Convert(_) => "convert",
            Self::Release(_) => "release",
            Self::Cancel(_) => "cancel",
            Self::ForceRelease(_) => "force-release",
            Self::Inspect => "inspect",
        }
    }

    /// This action on `name`.
    #[must_use]
    pub fn on(self, name: LockName) -> Request {
        Request { name, action: self }
    }
}
