//! [`VirtualClock`]: tokio's pausable time as a [`Clock`], for tests.

use std::time::Duration;

use tenure_core::{BoxFuture, Moment};
use tokio::time::Instant;

use super::Clock;

/// A clock that follows tokio's time: under `#[tokio::test(start_paused = true)]` it stands still
/// while there is work to do and leaps to the next timer when there is none.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    start: Instant,
}

/// The reading at the start: not zero, so that there is a past.
const START: Duration = Duration::from_secs(1_000);

impl VirtualClock {
    /// A clock that starts now.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "reads the runtime's time, so not a mere default"
    )]
    #[allow(
        clippy::disallowed_methods,
        reason = "tokio's time is what makes this clock virtual"
    )]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(0).plus(START + self.start.elapsed())
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "tokio's time is what makes this clock virtual"
    )]
    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        let since_start = moment.since(Moment::from_nanos(0)).saturating_sub(START);
        let at = self.start.checked_add(since_start);
        Box::pin(async move {
            match at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        })
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "tokio's time is what makes this clock virtual"
    )]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
