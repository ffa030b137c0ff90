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
    /// Ask for this store's voice in a quorum.
    Vote(Vote),
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

/// Ask one of several stores for its voice: whoever has those of a majority holds the lock.
///
/// A vote never queues and is never handed over: two stores could hand it to different waiters. It
/// counts for as long as the hold that it stands for lasts at the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    /// Who asks; new for every round, so that undoing one round cannot undo a later one.
    pub owner: OwnerId,
    /// In which way: exclusive or shared, see [`Ballot`].
    pub mode: Mode,
    /// How long the vote lasts unless renewed.
    pub ttl: Ttl,
    /// For people.
    pub party: Party,
    /// By the store's clock: later than this, the request takes nothing.
    pub not_after: Option<Timestamp>,
    /// What for.
    pub ballot: Ballot,
}

/// What a [`Vote`] is asked for. Answered with [`Granted`](crate::Outcome::Granted) if the owner has
/// the vote now.
///
/// All stores are asked for the same fence, so that usually all of them agree at once; where they do
/// not, the highest is written back to the others before anybody is told.
///
/// There should be no votes for permits: majorities do not bound a sum. With three stores a, b, c and
/// a capacity of two, three clients that have {a, b}, {b, c} and {c, a} each have a majority, and no
/// store has given more than two permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ballot {
    /// A new hold. Its fence is `max(last + 1, proposal)`; a repetition answers the same grant.
    New {
        /// The fence that is proposed to all stores: their time in microseconds.
        proposal: Fence,
    },
    /// The owner has this store's vote, but others gave it a higher fence: take that, or the next one
    /// that is free. Never prolongs.
    Raise {
        /// The highest fence that was given.
        to: Fence,
    },
    /// The owner holds the lock by majority, with exactly this fence, and this store has lost its
    /// vote or never gave it: give it now, unless somebody is in the way or has been since.
    Held {
        /// The fence of the hold.
        fence: Fence,
    },
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
            Self::Vote(_) => "vote",
            Self::Inspect => "inspect",
        }
    }

    /// This action on `name`.
    #[must_use]
    pub fn on(self, name: LockName) -> Request {
        Request { name, action: self }
    }
}
