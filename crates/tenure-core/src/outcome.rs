//! [`Outcome`]: what a lock answers. "Could not ask" is never among these: that is an
//! [`Error`](crate::Error).

use crate::{Fence, ForcedRelease, Kind, Mode, OwnerId, Party, Timestamp};

/// An outcome, and when it was decided by the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The store's clock when it decided.
    pub now: Timestamp,
    /// What it decided.
    pub outcome: Outcome,
}

/// What a lock answers to an [`Action`](crate::Action).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acquire: it is yours. Repeating the request answers the same grant.
    Granted(Grant),
    /// Acquire: you are in the queue.
    Queued {
        /// How many wait before you; an upper bound where a store drops dead waiters lazily.
        ahead: u32,
        /// Who is in the way.
        contention: Contention,
    },
    /// Acquire without waiting: somebody is in the way, and nothing was changed.
    Busy(Contention),
    /// Acquire: it arrived after its `not_after` and took nothing.
    TooLate,
    /// Acquire or convert: the name is in use as something else.
    Conflict {
        /// What it is in use as.
        in_force: Kind,
    },
    /// Renew: the hold now lasts until `expiry`.
    Renewed {
        /// By the store's clock.
        expiry: Timestamp,
    },
    /// Convert: the hold is now shared; same fence, same expiry.
    Converted {
        /// By the store's clock.
        expiry: Timestamp,
    },
    /// Release or force-release: the hold has ended by this request.
    Released,
    /// Cancel: nothing of the owner's is left; this is what there was.
    Cancelled(Removed),
    /// Renew, convert, release, force-release: there is no such hold (any more).
    NotHeld {
        /// Set if it was ended by force.
        forced: Option<ForcedRelease>,
    },
    /// Renew without terms, convert, release, force-release: the store does not know of such a hold,
    /// but it is recovering, so that does not mean that there is none.
    Forgotten {
        /// When it will have recovered, by the store's clock.
        until: Timestamp,
    },
    /// Inspect: what is there.
    State(Snapshot),
}

/// A grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Higher than every earlier fence of this name. If the grant is exclusive, the rest of
    /// [`Fence::RANGE`] is set aside for it.
    pub fence: Fence,
    /// From when on others may hold it, by the store's clock.
    pub expiry: Timestamp,
}

/// What a [`Cancel`](crate::Cancel) removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A place in the queue.
    Waiter,
    /// A hold.
    Grant,
    /// There was nothing.
    Nothing,
}

/// How many holders a [`Contention`] describes at most: a semaphore may have thousands.
pub const SHOWN_HOLDERS: usize = 8;

/// Who is in the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// The first [`SHOWN_HOLDERS`] holders, in grant order.
    pub holders: Vec<HolderView>,
    /// How many hold it in all.
    pub holder_count: u32,
    /// How many wait for it (including you, if you do).
    pub waiter_count: u32,
    /// When the first of all holds ends unless it is renewed; `None` if none ends by itself.
    pub next_expiry: Option<Timestamp>,
    /// Set while the store is recovering: nobody is let in before this, whether it is held or not.
    pub recovering: Option<Timestamp>,
    /// Set while it is recovering, and has begun to do so so often of late that it may never be done
    /// ([`Record::is_restless`](crate::Record::is_restless)): a person should look at the store.
    pub restless: bool,
}

impl Contention {
    /// Whether somebody holds it who is not a client of ours and so will not tell us of its release.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.holders.iter().any(|holder| holder.owner.is_none())
    }
}

/// A holder as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderView {
    /// `None`: a foreign holder, which is respected but not understood.
    pub owner: Option<OwnerId>,
    /// In which way.
    pub mode: Mode,
    /// `None` for a foreign holder.
    pub fence: Option<Fence>,
    /// `None` for a foreign holder.
    pub since: Option<Timestamp>,
    /// `None`: it never ends by itself.
    pub expiry: Option<Timestamp>,
    /// For people.
    pub party: Party,
}

/// A waiter as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterView {
    /// Who waits.
    pub owner: OwnerId,
    /// In which way it will hold.
    pub mode: Mode,
    /// Since when.
    pub since: Timestamp,
    /// For people.
    pub party: Party,
}

/// All that can be seen of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// What the name is in use as.
    pub kind: Option<Kind>,
    /// The highest fence given for it, or set aside with an exclusive grant
    /// ([`Fence::RANGE`]).
    pub last_fence: Fence,
    /// In grant order.
    pub holders: Vec<HolderView>,
    /// In order of arrival.
    pub waiters: Vec<WaiterView>,
}
