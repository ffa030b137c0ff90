//! [`LockState`]: everything that a store remembers about one name.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::{Fence, Kind, Mode, OwnerId, Party, Timestamp, Ttl};

/// What a store remembers about one name. Holders are in grant order, waiters in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockState {
    /// The highest fence ever given for this name, or set aside with an exclusive grant.
    pub last_fence: Fence,
    /// Who holds it, all in compatible modes.
    pub holders: Vec<Holder>,
    /// Who waits for it, first come first served.
    pub queue: VecDeque<Waiter>,
    /// The last hold that was ended by force, so that its holder can be told by whom and why.
    pub forced: Option<ForcedRelease>,
}

/// One hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Who holds.
    pub owner: OwnerId,
    /// In which way.
    pub mode: Mode,
    /// The fence of this grant.
    pub fence: Fence,
    /// When it was granted.
    pub since: Timestamp,
    /// From when on others may hold it; each hold ends on its own.
    pub expiry: Timestamp,
    /// The process that this hold dies with, if it is tied to one. Only stores that can see a
    /// process die (SQLite on one machine) make use of it.
    pub anchor: Option<Inbox>,
    /// For people.
    pub party: Party,
}

/// One place in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Who waits.
    pub owner: OwnerId,
    /// In which way it will hold.
    pub mode: Mode,
    /// The ttl of its lease once it has claimed its grant.
    pub ttl: Ttl,
    /// When it joined the queue.
    pub since: Timestamp,
    /// How long its place is kept without a sign of life.
    pub alive_for: Duration,
    /// Until when its place is kept.
    pub alive_until: Timestamp,
    /// Where a grant is pushed to.
    pub inbox: Inbox,
    /// The process that the hold will be tied to, if any.
    pub anchor: Option<Inbox>,
    /// For people.
    pub party: Party,
}

impl Waiter {
    /// How long a *pushed* grant lasts until it is renewed for the first time.
    ///
    /// Waiters give a sign of life every third of `alive_for`. One and a half times that is long
    /// enough that a lost push is made good by the next sign of life, and short enough that a
    /// waiter which died holds nobody up for a whole ttl.
    #[must_use]
    pub fn claim_window(&self) -> Duration {
        self.alive_for / 2
    }
}

/// A hold that was ended by somebody else, on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedRelease {
    /// Whose hold it was.
    pub owner: OwnerId,
    /// Which hold it was.
    pub fence: Fence,
    /// Who ended it.
    pub by: Party,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// Where a client can be reached: its address for pushes and, on one machine, its sign of life.
///
/// Lower-case letters, digits and `-` only, so that it can be part of a key, channel or file name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inbox(std::sync::Arc<str>);

impl Inbox {
    /// An inbox from 16 random bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(OwnerId::from_bytes(bytes).to_string().into())
    }

    /// An inbox read back from where it was kept; `None` if it contains anything unexpected.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (!text.is_empty() && text.len() <= 64 && text.chars().all(plain)).then(|| Self(text.into()))
    }

    /// The inbox as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LockState {
    /// What the name is in use as; `None` while nobody holds it or waits for it.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        let held = self.holders.first().map(|holder| holder.mode);
        let awaited = self.queue.front().map(|waiter| waiter.mode);
        held.or(awaited).map(Mode::kind)
    }

    /// Whether `mode` could be held beside those who hold now.
    #[must_use]
    pub fn fits(&self, mode: Mode) -> bool {
        mode.fits(self.holders.iter().map(|holder| holder.mode))
    }

    /// The hold of `owner`, whatever its fence.
    #[must_use]
    pub fn holder(&self, owner: OwnerId) -> Option<&Holder> {
        self.holders.iter().find(|holder| holder.owner == owner)
    }

    /// The hold of `owner` with this fence: an older or newer hold of the same owner is not it.
    pub(crate) fn held(&mut self, owner: OwnerId, fence: Fence) -> Option<&mut Holder> {
        self.holders
            .iter_mut()
            .find(|holder| holder.owner == owner && holder.fence == fence)
    }

    /// How many wait before `owner`; `None` if it does not wait.
    #[must_use]
    pub fn position(&self, owner: OwnerId) -> Option<usize> {
        self.queue.iter().position(|waiter| waiter.owner == owner)
    }

    /// Whether a store may forget this name (all but its last fence).
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }
}
