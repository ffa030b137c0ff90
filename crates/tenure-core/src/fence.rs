//! [`Fence`]: the number that lets a protected resource refuse an old holder.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind, Timestamp};

/// A fencing token: within one name it only grows, grant by grant.
///
/// A lock cannot stop a paused holder from waking up and writing. The *resource* can: if it refuses
/// every write that carries a lower fence than the highest it has seen, an old holder's late write
/// is harmless, with no assumption about time (promise S3).
///
/// The next fence is `max(last + 1, store time in µs)`, so it keeps growing even when a store lost
/// its data and starts again, where a counter would begin at 1. It stays below 2^53 until the year
/// 2255, so Lua and JSON carry it exactly; in JSON it is written as a string all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(u64);

impl Fence {
    /// Below every fence that is ever granted.
    pub const NONE: Self = Self(0);

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
