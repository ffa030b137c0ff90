//! Time as the supervision of a job sees it: CLOCK_BOOTTIME, which neither jumps nor stops in
//! suspend, and a timer on it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use super::readiness::watched;

/// A moment on CLOCK_BOOTTIME, in nanoseconds.
///
/// Comparable between processes of one machine and one boot, and between nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boottime(u64);

impl Boottime {
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Reads the clock.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        // Neither part is negative: the clock starts at zero when the machine boots.
        Self(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    }

    /// The moment so many nanoseconds after the machine booted.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the machine booted.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This moment moved into the future; stays at [`Boottime::NEVER`] rather than wrap.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos_of(by)))
    }

    /// This moment moved into the past; [`Boottime::NEVER`] stays, the boot is the earliest.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        if self == Self::NEVER {
            return self;
        }
        Self(self.0.saturating_sub(nanos_of(by)))
    }

    /// How long it is from `earlier` until this moment; zero if it has passed.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A timer for one absolute moment on CLOCK_BOOTTIME, usable with `poll`.
#[derive(Debug)]
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, flags)?))
    }

    /// Rings once at `at`, or at once if that has passed; forgets the moment set before.
    pub(crate) fn set(&self, at: Boottime) -> io::Result<()> {
        set_timer(&self.0, at)
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// An [`Alarm`] that a task can await.
#[derive(Debug)]
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(watched(Alarm::new()?.0)?))
    }

    /// Waits until `at`. Cancel safe: the next call sets the timer anew.
    pub(crate) async fn until(&self, at: Boottime) -> io::Result<()> {
        set_timer(self.0.get_ref(), at)?;
        loop {
            let mut ready = self.0.readable().await?;
            if Boottime::now() >= at {
                return Ok(());
            }
            // Rang for a moment set earlier.
            ready.clear_ready();
        }
    }
}

fn set_timer(timer: &OwnedFd, at: Boottime) -> io::Result<()> {
    let zero = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // All zero would switch the timer off, which is right for a moment that never comes.
    let it_value = if at == Boottime::NEVER {
        zero
    } else {
        let at = at.as_nanos().max(1);
        Timespec {
            tv_sec: i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at % 1_000_000_000).unwrap_or(0),
        }
    };
    let value = Itimerspec {
        it_interval: zero,
        it_value,
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &value)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_stays_never() {
        let second = Duration::from_secs(1);
        assert_eq!(Boottime::NEVER.plus(second), Boottime::NEVER);
        assert_eq!(Boottime::NEVER.minus(second), Boottime::NEVER);
    }

    #[test]
    fn the_past_is_zero_away() {
        assert_eq!(
            Boottime::from_nanos(5).since(Boottime::from_nanos(9)),
            Duration::ZERO
        );
    }
}
