//! The clock of the measurements, which all peer programs share, and pauses.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment in nanoseconds, comparable between the processes of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
        Self(seconds * 1_000_000_000 + nanos)
    }

    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0 + u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2))
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn nanos(self) -> u64 {
        self.0
    }
}

/// Pauses as the other programs do: on tokio's own timer, not at all for zero.
#[allow(
    clippy::disallowed_methods,
    reason = "the scenarios are made of pauses; no lease depends on them"
)]
pub(crate) async fn pause(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

/// Runs `work` until `end`; `None` if it was not done by then.
pub(crate) async fn until<T>(end: Instant, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        value = work => Some(value),
        () = pause(end.since(Instant::now())) => None,
    }
}
