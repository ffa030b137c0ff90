//! What is served, and where it came from.

use std::time::Duration;

/// A value as it was found in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached<V> {
    /// What was found.
    pub value: V,
    /// How long ago it was written.
    pub age: Duration,
}

impl<V> Cached<V> {
    /// A value of which the cache does not say how old it is: as good as new.
    pub fn fresh(value: V) -> Self {
        let age = Duration::ZERO;
        Self { value, age }
    }
}

/// What [`Coalesce::get`](super::Coalesce::get) answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served<V, E> {
    /// The value.
    pub value: V,
    /// Where it comes from.
    pub source: Source,
    /// What went wrong, although there is a value: it could not be refreshed, or not be written.
    pub failed: Option<E>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the cache, and fresh.
    Cache,
    /// From the cache, and past its time, because somebody is loading it anew or failed to.
    Stale {
        /// How long ago it was written.
        age: Duration,
    },
    /// Loaded by this call.
    Loaded,
}
