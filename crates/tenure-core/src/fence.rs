//! [`Fence`]: the number that lets a protected resource refuse an old holder.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind, Mode, Timestamp};

/// A fencing token: within one name it only grows, grant by grant.
///
/// A lock cannot stop a paused holder from waking up and writing. The *resource* can: if it refuses
/// every write that carries a lower fence than the highest it has seen, an old holder's late write
/// is harmless, with no assumption about time (promise S3).
///
/// The next fence is `max(last + 1, store time in µs)`, so it keeps growing even when a store lost
/// its data and starts again, where a counter would begin at 1. It stays below 2^53 until the year
/// 2255, so Lua and JSON carry it exactly; in JSON it is written as a string all the same.
///
/// An exclusive grant comes with a [range](Self::RANGE) of fences: its own, and some more that its
/// process gives to those tasks to which it hands the lock on without asking the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(u64);

impl Fence {
    /// Below every fence that is ever granted.
    pub const NONE: Self = Self(0);

    /// How many fences an exclusive grant comes with. Few, so that fences do not run ahead of the
    /// clock: a grant must be answered before it can be released, so the next one of this name comes
    /// a message later at least, which takes longer than this many microseconds nearly everywhere.
    pub const RANGE: u32 = 32;

    /// A fence read back from where it was kept.
    #[must_use]
    pub const fn from_u64(value: u64) -> Self {
        Self(value)
    }

    /// The number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The fence of the next grant after `self`, made at `now`.
    #[must_use]
    pub fn next(self, now: Timestamp) -> Self {
        Self(now.as_micros().max(self.0.saturating_add(1)))
    }

    /// The last fence of the range that a grant in `mode` with this fence comes with: itself, unless
    /// the grant is exclusive.
    #[must_use]
    pub const fn last_of_grant(self, mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self(self.0.saturating_add(Self::RANGE as u64 - 1)),
            Mode::Shared | Mode::Permits(_) => self,
        }
    }

    /// The fence for those to whom an exclusive grant was handed on for the `count`th time; `None`
    /// past the end of its range.
    #[must_use]
    pub fn handed_on(self, count: u32) -> Option<Self> {
        let further = u64::from(count);
        (count < Self::RANGE).then(|| Self(self.0.saturating_add(further)))
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Fence {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse().map(Self).map_err(|cause| {
            Error::new(ErrorKind::InvalidInput, "a fence is a whole number")
                .with("given", text)
                .because(cause)
        })
    }
}
