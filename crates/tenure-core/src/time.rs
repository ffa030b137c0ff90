//! The three quantities of time, kept apart by type: [`Timestamp`] is a store's clock, [`Moment`]
//! the client's own, [`Ttl`] the length of a lease.

use std::fmt;
use std::time::Duration;

use crate::{Error, ErrorKind, Spelled};

/// A reading of the **store's** clock, in microseconds since an epoch of the store's choosing.
///
/// Never compare it with a local clock: only differences of two readings of one store mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A reading of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The reading in microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// `self` + `duration`, at most the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)),
        )
    }

    /// How long after `earlier` this is; zero if it is not after.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// A reading of the **client's** clock, in nanoseconds: a clock that neither jumps nor stops during
/// suspend (CLOCK_BOOTTIME on Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// A reading of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The reading in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// `self` + `duration`, at most the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// `self` − `duration`, at least the beginning of time.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }

    /// How long after `earlier` this is; zero if it is not after.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How long a lease lasts unless it is renewed: whole milliseconds from 100 ms to 366 days.
///
/// Shorter than 100 ms, the safety margin of 50 ms would leave too little to work with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ttl(Duration);

impl Ttl {
    /// The shortest ttl.
    pub const MIN: Self = Self(Duration::from_millis(100));
    /// The longest ttl.
    pub const MAX: Self = Self(Duration::from_secs(366 * 24 * 60 * 60));
    /// What is used when nothing is said: 30 s.
    pub const DEFAULT: Self = Self(Duration::from_secs(30));

    /// A ttl of this length; a fraction of a millisecond is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] outside [`MIN`](Self::MIN)`..=`[`MAX`](Self::MAX).
    pub fn new(length: Duration) -> Result<Self, Error> {
        if length < Self::MIN.0 || length > Self::MAX.0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a ttl of {} is out of range: choose from 100 ms to 366 days",
                    Spelled(length)
                ),
            ));
        }
        let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        Ok(Self(Duration::from_millis(millis)))
    }

    /// The length.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// The length in whole milliseconds.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        // Cannot truncate: `MAX` is far below 2^64 ms.
        self.0.as_millis() as u64
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl TryFrom<Duration> for Ttl {
    type Error = Error;

    fn try_from(length: Duration) -> Result<Self, Error> {
        Self::new(length)
    }
}
