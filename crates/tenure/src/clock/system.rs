//! [`SystemClock`]: CLOCK_BOOTTIME, with one absolute timer descriptor for the earliest deadline.
//!
//! tokio's own timer counts CLOCK_MONOTONIC, which stands still while the machine sleeps, and is up
//! to a millisecond late; a lease that ends must be noticed on time and after a resume.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tenure_core::{BoxFuture, Error, ErrorKind, Moment};
use tokio::io::unix::AsyncFd;

use super::Clock;

/// The machine's clock since boot, which counts sleep and never jumps.
#[derive(Clone)]
pub struct SystemClock {
    running: Arc<Running>,
}

impl SystemClock {
    /// Starts the clock's timer on the current tokio runtime; it ends with its last clone.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] outside a tokio runtime, or if the process is out of file
    /// descriptors.
    ///
    /// # Panics
    /// If the runtime was built without IO (`enable_io` or `enable_all`).
    pub fn start() -> Result<Self, Error> {
        let failed = |cause: io::Error| {
            Error::new(ErrorKind::Configuration, "cannot start the lease timer").because(cause)
        };
        let runtime = tokio::runtime::Handle::try_current().map_err(|cause| {
            Error::new(
                ErrorKind::Configuration,
                "tenure needs a tokio runtime with IO and time enabled; without one, use \
                 tenure::blocking",
            )
            .because(cause)
        })?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let descriptor = timerfd_create(TimerfdClockId::Boottime, flags)
            .map_err(|error| failed(error.into()))?;
        // SAFETY: the descriptor is open and owned by the `AsyncFd` from here on; nothing else has
        // it, and an `OwnedFd` keeps the same number until it is dropped.
        #[allow(unsafe_code, reason = "tokio offers no safe way; proof above")]
        let descriptor =
            unsafe { AsyncFd::register(descriptor) }.map_err(|error| failed(error.into()))?;
        let timer = Arc::new(Timer {
            descriptor,
            sleepers: Mutex::default(),
        });
        let ringing = runtime.spawn(ring(timer.clone())).abort_handle();
        Ok(Self {
            running: Arc::new(Running { timer, ringing }),
        })
    }

    /// Reads the clock; needs no runtime.
    #[must_use]
    pub fn read() -> Moment {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
        Moment::from_nanos(seconds * 1_000_000_000 + nanos)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Self::read()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        Box::pin(Sleep {
            running: self.running.clone(),
            moment,
            key: None,
            fallback: None,
        })
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the documented exception: pacing, not leases"
    )]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemClock")
            .field("now", &Self::read())
            .finish_non_exhaustive()
    }
}

/// One timer descriptor for all sleepers of a client.
struct Timer {
    descriptor: AsyncFd<OwnedFd>,
    sleepers: Mutex<Sleepers>,
}

/// How often the clock is read when only tokio's timer is left.
const FALLBACK_NAP: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Sleepers {
    /// Nobody rings any more.
    silent: bool,
    next_key: u64,
    by_deadline: BTreeMap<(Moment, u64), Waker>,
}

impl Timer {
    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        // A panic while holding the lock leaves the map usable: every change is a single call.
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the descriptor to the earliest deadline; called with the lock held.
    fn arm(&self, sleepers: &Sleepers) {
        let Some(((earliest, _), _)) = sleepers.by_deadline.first_key_value() else {
            return;
        };
        // Zero would disarm the timer.
        let nanos = earliest.as_nanos().max(1);
        let it_value = Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
        };
        let setting = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value,
        };
        timerfd_settime(
            self.descriptor.get_ref(),
            TimerfdTimerFlags::ABSTIME,
            &setting,
        )
        .expect("the descriptor is a timer and the time is well formed");
    }

    fn wake_due(&self) {
        let mut due = Vec::new();
        {
            let mut sleepers = self.sleepers();
            let now = SystemClock::read();
            while let Some(entry) = sleepers.by_deadline.first_entry() {
                if entry.key().0 > now {
                    break;
                }
                due.push(entry.remove());
            }
            self.arm(&sleepers);
        }
        due.into_iter().for_each(Waker::wake);
    }
}

/// Keeps the task that rings alive for as long as somebody may sleep.
struct Running {
    timer: Arc<Timer>,
    ringing: tokio::task::AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ringing.abort();
    }
}

/// Waits for the descriptor and wakes whoever is due, until it is aborted or its runtime ends.
async fn ring(timer: Arc<Timer>) {
    let _last = LastRing(&timer);
    while let Ok(mut ready) = timer.descriptor.readable().await {
        let mut count = [0; 8];
        // "Would block" clears the readiness, which is all that is wanted here; how often the
        // timer rang does not matter.
        let _ = ready.try_io(|descriptor| {
            rustix::io::read(descriptor.get_ref(), &mut count).map_err(io::Error::from)
        });
        drop(ready);
        timer.wake_due();
    }
}

/// Wakes everybody when the task ends, so that they find another timer.
struct LastRing<'a>(&'a Timer);

impl Drop for LastRing<'_> {
    fn drop(&mut self) {
        let mut sleepers = self.0.sleepers();
        sleepers.silent = true;
        let everybody = std::mem::take(&mut sleepers.by_deadline);
        drop(sleepers);
        everybody.into_values().for_each(Waker::wake);
    }
}

/// Waits for one moment.
struct Sleep {
    running: Arc<Running>,
    moment: Moment,
    key: Option<u64>,
    /// Set when the runtime that rang has ended: the timer of whoever waits has to do.
    fallback: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if SystemClock::read() >= self.moment {
            return Poll::Ready(());
        }
        let running = self.running.clone();
        let mut sleepers = running.timer.sleepers();
        if sleepers.silent {
            drop(sleepers);
            return self.poll_fallback(context);
        }
        let key = *self.key.get_or_insert_with(|| {
            sleepers.next_key += 1;
            sleepers.next_key
        });
        sleepers
            .by_deadline
            .insert((self.moment, key), context.waker().clone());
        let first = sleepers
            .by_deadline
            .first_key_value()
            .map(|(first, _)| *first);
        if first == Some((self.moment, key)) {
            running.timer.arm(&sleepers);
        }
        Poll::Pending
    }
}

impl Sleep {
    /// Never longer than a moment at a time: tokio's timer stands still while the machine sleeps.
    #[allow(
        clippy::disallowed_methods,
        reason = "there is no better timer left, and the clock is read at every ring"
    )]
    fn poll_fallback(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let left = self.moment.since(SystemClock::read());
            if left.is_zero() {
                return Poll::Ready(());
            }
            let nap = || Box::pin(tokio::time::sleep(left.min(FALLBACK_NAP)));
            let sleep = self.fallback.get_or_insert_with(nap);
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.fallback = None;
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.running
                .timer
                .sleepers()
                .by_deadline
                .remove(&(self.moment, key));
        }
    }
}
