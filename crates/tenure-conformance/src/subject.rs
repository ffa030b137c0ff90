//! [`Subject`]: what the suite needs to know about the store under test.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{BoxFuture, Error, Store};

/// A store under test. All handles of one subject work on the same data.
pub trait Subject: Send + Sync {
    /// Another handle, as another process would have it (on a server: its own connection).
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, Error>>;

    /// Returns when at least `duration` has passed by the *store's* clock: at once where a test
    /// turns that clock by hand, by sleeping where it is a server's.
    fn pass_time(&self, duration: Duration) -> BoxFuture<'_, ()>;

    /// A short breath (some 10 ms of real time) before a condition is looked at again. A case gives
    /// up after 2,000 of them.
    fn pause(&self) -> BoxFuture<'_, ()>;

    /// How far the expiry that the store keeps may be off the exact one, for example because it
    /// counts in whole milliseconds.
    fn time_tolerance(&self) -> Duration;

    /// How many times longer short leases last, and are waited for, than in other stores (100 ms and
    /// more): for a store that refuses such short ones.
    fn pace(&self) -> u32 {
        1
    }

    /// Whether the store notices that nobody listens at an inbox, so that it passes such a waiter
    /// over.
    fn sees_listeners(&self) -> bool;
}

/// After how many [`pause`](Subject::pause)s a case stops hoping.
pub(crate) const PATIENCE: usize = 2_000;
