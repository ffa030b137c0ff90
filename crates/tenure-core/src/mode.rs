//! [`Mode`]: in which way a lock is held, and who may hold it together with whom.
//!
//! Mutex, read/write lock and semaphore are this one table, not three implementations.

use std::fmt;
use std::num::NonZeroU32;

use crate::{Error, ErrorKind};

/// In which way a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nobody else holds it: a mutex, or the write side of a read/write lock.
    Exclusive,
    /// Only others in this mode hold it: the read side of a read/write lock.
    Shared,
    /// Some permits out of a capacity: a semaphore.
    Permits(Permits),
}

/// `count` permits out of `capacity`, with 1 ≤ count ≤ capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permits {
    count: NonZeroU32,
    capacity: NonZeroU32,
}

impl Permits {
    /// How many permits are held or asked for.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count.get()
    }

    /// How many there are in all.
    #[must_use]
    pub const fn capacity(self) -> u32 {
        self.capacity.get()
    }
}

/// What a name is used as. A name has one kind for as long as anybody holds it or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A mutex or a read/write lock (a mutex is one that is only ever written).
    Lock,
    /// A semaphore of this capacity.
    Semaphore {
        /// How many permits there are in all.
        capacity: u32,
    },
}

impl Mode {
    /// `count` permits out of `capacity`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] unless 1 ≤ count ≤ capacity.
    pub fn permits(count: u32, capacity: u32) -> Result<Self, Error> {
        match (NonZeroU32::new(count), NonZeroU32::new(capacity)) {
            (Some(count), Some(capacity)) if count <= capacity => {
                Ok(Self::Permits(Permits { count, capacity }))
            }
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{count} permits out of {capacity}: ask for at least 1 and at most all"),
            )),
        }
    }

    /// The kind that a name has while it is held in this mode.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Exclusive | Self::Shared => Kind::Lock,
            Self::Permits(permits) => Kind::Semaphore {
                capacity: permits.capacity(),
            },
        }
    }

    /// Whether this mode may be held beside all of `held`, which are of the same kind.
    #[must_use]
    pub fn fits(self, mut held: impl Iterator<Item = Self>) -> bool {
        match self {
            Self::Exclusive => held.next().is_none(),
            Self::Shared => held.all(|other| other == Self::Shared),
            Self::Permits(asked) => {
                let taken: u64 = held
                    .map(|other| match other {
                        Self::Permits(permits) => u64::from(permits.count()),
                        Self::Exclusive | Self::Shared => u64::from(asked.capacity()),
                    })
                    .sum();
                taken + u64::from(asked.count()) <= u64::from(asked.capacity())
            }
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Permits(permits) => {
                write!(f, "{} of {} permits", permits.count(), permits.capacity())
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => f.write_str("a lock"),
            Self::Semaphore { capacity } => write!(f, "a semaphore of {capacity}"),
        }
    }
}
