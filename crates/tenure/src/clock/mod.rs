//! [`Clock`]: the client's own time, behind a trait so that tests can run it as they like.

mod system;
#[cfg(any(test, feature = "test-util"))]
mod virtual_clock;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tenure_core::{BoxFuture, Moment};

pub use system::SystemClock;
#[cfg(any(test, feature = "test-util"))]
pub use virtual_clock::VirtualClock;

/// The clock by which a client judges its leases.
///
/// It must neither jump nor stop while the machine sleeps: a lease goes on ending in suspend.
pub trait Clock: Send + Sync + fmt::Debug {
    /// What time it is.
    fn now(&self) -> Moment;

    /// Returns at `moment` or right after it, also when the machine slept meanwhile. For leases.
    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()>;

    /// Returns after about `duration`; may be a millisecond late and may not count time in suspend.
    /// Cheap. For pacing and for bounding calls, never for leases.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Runs `work` for at most about `limit`; `None` if it did not finish in time.
pub(crate) async fn bounded<T>(
    clock: &dyn Clock,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        result = work => Some(result),
        () = clock.sleep(limit) => None,
    }
}
