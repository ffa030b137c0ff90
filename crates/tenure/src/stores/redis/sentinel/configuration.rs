//! [`Configuration`]: which server is the primary, and since which decision of the sentinels.

use std::fmt;

use super::super::options::Address;

/// A primary, as a sentinel names it. A sentinel never comes back to one that it has left: the same server is
/// the primary once more only in a later epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Configuration {
    pub(in super::super) primary: Address,
    /// `None`: whichever. Whoever does not protect what a server may have forgotten does not ask for it.
    pub(in super::super) epoch: Option<Epoch>,
}

impl Configuration {
    /// Whether this is what was asked for.
    pub(super) fn is(&self, wanted: &Self) -> bool {
        self.primary == wanted.primary && (wanted.epoch.is_none() || self.epoch == wanted.epoch)
    }
}

/// The `config-epoch` of a sentinel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Epoch(u64);

impl Epoch {
    /// Reads what a sentinel says, or what `Display` wrote.
    pub(in super::super) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// Whether nobody has taken the place of another yet.
    pub(in super::super) fn is_first(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
