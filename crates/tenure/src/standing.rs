//! [`Standing`]: how a hold stands, as its holder is told.

use tenure_core::{Error, ErrorKind, ForcedRelease, LockName, Moment};

/// How a hold stands. It only ever moves forward: Held ⇄ Jeopardy → Lost, or → Released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Confirmed, and renewed in time.
    Held {
        /// From this moment on the hold must not be relied upon, unless it is renewed before.
        valid_until: Moment,
    },
    /// Renewal is overdue: stop starting new work, finish what can be finished.
    Jeopardy {
        /// From this moment on the hold must not be relied upon, unless it is renewed before.
        valid_until: Moment,
    },
    /// Gone, finally: no late reply revives it.
    Lost(Loss),
    /// Given up by its holder.
    Released,
}

/// Why a hold was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The lease ended before a renewal was confirmed: the store was out of reach, or this process
    /// was stopped for too long.
    Expired,
    /// Somebody ended it by force.
    Forced(Box<ForcedRelease>),
    /// The store does not know the hold any more: it had expired there, or the store lost its data.
    Forgotten,
    /// The limit set with `hold_at_most` was reached.
    HeldTooLong,
}

impl Loss {
    /// The loss of a hold that the store says is not there.
    pub(crate) fn not_held(forced: Option<ForcedRelease>) -> Self {
        forced.map_or(Self::Forgotten, |forced| Self::Forced(Box::new(forced)))
    }

    /// The error for whoever still relies on the hold.
    #[must_use]
    pub fn error(&self, name: &LockName) -> Error {
        let why = match self {
            Self::Expired => {
                "its lease ended before it could be renewed; stop working on the resource, and \
                 choose a longer ttl if this happens often"
                    .to_owned()
            }
            Self::Forced(forced) => format!("released by {}: {}", forced.by, forced.reason),
            Self::Forgotten => {
                "the store does not know this hold any more (expired there, or the store lost its \
                 data)"
                    .to_owned()
            }
            Self::HeldTooLong => "its hold_at_most was reached".to_owned(),
        };
        Error::new(ErrorKind::Lost, format!("the lock {name:?} is lost: {why}"))
    }
}
