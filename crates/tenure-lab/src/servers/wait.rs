//! Waiting in the lab: for a condition, with a bound. The one place where it sleeps.

use std::time::Duration;

use tenure::Moment;
use tenure::clock::SystemClock;

/// Generous, because machines are slow; a condition that holds is noticed within milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What time it is, by the clock that all processes of this machine share.
#[must_use]
pub fn now() -> Moment {
    SystemClock::read()
}

/// Asks again and again until `condition` answers something; `None` after `limit`.
pub fn until<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let start = now();
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if now().since(start) > limit {
            return None;
        }
        pass(Duration::from_millis(2));
    }
}

/// Lets real time pass: leases of real servers end in real time.
#[allow(
    clippy::disallowed_methods,
    reason = "the lab works with real servers in real time"
)]
pub fn pass(duration: Duration) {
    std::thread::sleep(duration);
}
