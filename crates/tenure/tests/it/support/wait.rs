//! Waiting for a condition, never for time to pass.

use std::time::{Duration, Instant};

/// Generous, because test machines are slow; a condition that holds is noticed within milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Asks again and again until `condition` answers something; panics after [`PATIENCE`].
pub(crate) fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, condition)
}

/// The same for what takes others longer.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where tests wait in real time, with a bound"
)]
pub(crate) fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut condition: impl FnMut() -> Option<T>,
) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(
            started.elapsed() < patience,
            "still not so after {patience:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// [`eventually`] for conditions that have to be awaited.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where async tests wait in real time, with a bound"
)]
pub(crate) async fn eventually_async<T>(
    what: &str,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "still not so after {PATIENCE:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Runs `work` and tells how long it took.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where tests read the time"
)]
pub(crate) async fn elapsed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let result = work.await;
    (result, started.elapsed())
}

/// Lets real time pass, for stores whose clock a test cannot turn.
#[allow(
    clippy::disallowed_methods,
    reason = "leases of a real server end in real time"
)]
pub(crate) async fn real_time(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// A short breath before a condition is looked at again.
pub(crate) async fn breath() {
    real_time(Duration::from_millis(5)).await;
}
