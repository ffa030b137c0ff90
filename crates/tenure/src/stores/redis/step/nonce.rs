//! [`Nonce`]: which reply belongs to which request.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::{Error, ErrorKind};

/// Numbers that name requests, so that a reply cannot be taken for another's.
#[derive(Debug)]
pub(in super::super) struct Nonces(AtomicU64);

impl Nonces {
    pub(in super::super) fn new() -> Result<Self, Error> {
        let start = getrandom::u64().map_err(|cause| {
            Error::new(ErrorKind::Unsupported, "the system has no random numbers")
                .because(cause.to_string())
        })?;
        Ok(Self(AtomicU64::new(start)))
    }

    pub(super) fn next(&self) -> Nonce {
        Nonce(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The number of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Nonce(u64);

impl Nonce {
    /// What the reply echoes, read back.
    pub(in super::super) fn from_word(word: &str) -> Option<Self> {
        u64::from_str_radix(word, 16).ok().map(Self)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}
