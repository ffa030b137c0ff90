//! [`VirtualClock`]: tokio's pausable time as a [`Clock`], for tests.

use std::time::Duration;

use tenure_core::{BoxFuture, Moment};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Clock;

/// A clock that follows tokio's time: under `#[tokio::test(start_paused = true)]` it stands still
/// while there is work to do and leaps to the next timer when there is none.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    start: Instant,
    /// How far it is ahead of tokio's time, for all clones.
    ahead: watch::Sender<Duration>,
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
            ahead: watch::Sender::new(Duration::ZERO),
        }
    }

    /// Lets this much time pass at once, before anybody can do anything: what a process sees that
    /// was stopped, or a machine that slept.
    pub fn jump(&self, by: Duration) {
        self.ahead.send_modify(|ahead| *ahead += by);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(0).plus(START + self.start.elapsed() + *self.ahead.borrow())
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        let mut jumped = self.ahead.subscribe();
        Box::pin(async move {
            while clock.now() < moment {
                // Read before the time that is left, so that no jump goes unseen.
                jumped.borrow_and_update();
                tokio::select! {
                    biased;
                    () = clock.sleep(moment.since(clock.now())) => {}
                    // The sender is part of the clock, which we have: the channel cannot close.
                    _ = jumped.changed() => {}
                }
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
