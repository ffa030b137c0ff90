//! How a worker asks for the lock, and what can come of it.

use std::time::Duration;

use crate::timeline::What;
use crate::worker::Ask;

impl Ask {
    /// Ask once.
    pub(crate) fn once() -> Self {
        Self::waiting(0)
    }

    /// Wait for it, at most so many milliseconds.
    pub(crate) fn waiting(millis: u64) -> Self {
        let wait = Duration::from_millis(millis);
        Self {
            shared: false,
            ttl: super::TTL,
            wait,
            told_by_push: false,
            stop_at: None,
        }
    }

    /// As a reader.
    pub(crate) fn shared(self) -> Self {
        Self {
            shared: true,
            ..self
        }
    }

    /// Wait to be told, and do not ask again before.
    pub(crate) fn told_by_push(self) -> Self {
        Self {
            told_by_push: true,
            ..self
        }
    }

    /// With another ttl than usual.
    pub(crate) fn ttl(self, millis: u64) -> Self {
        let ttl = Duration::from_millis(millis);
        Self { ttl, ..self }
    }

    /// Stand still at a point of the algorithm. An algorithm that has no such point just goes on.
    pub(crate) fn stop_at(self, point: &str) -> Self {
        let stop_at = Some(point.to_owned());
        Self { stop_at, ..self }
    }
}

/// What came of asking for the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    /// It believes that it holds it.
    It,
    /// Somebody else has it, or it waited in vain.
    Nothing,
    /// It stands at the point where it was told to stop.
    Stopped,
    /// It refuses to work like this.
    Unwilling,
}

impl Got {
    /// What was said, if it is about this.
    pub(super) fn from(what: &What) -> Option<Self> {
        match what {
            What::Holds { .. } => Some(Got::It),
            What::Busy | What::GaveUp => Some(Got::Nothing),
            What::At { .. } => Some(Got::Stopped),
            What::Unwilling { .. } => Some(Got::Unwilling),
            _ => None,
        }
    }
}
