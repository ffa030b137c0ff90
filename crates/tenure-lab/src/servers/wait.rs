//! Waiting in the lab: for a condition, with a bound, and until somebody presses ^C. The one place where it
//! sleeps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use tenure::Moment;
use tenure::clock::SystemClock;
use tokio::signal::unix::{SignalKind, signal};

/// Generous, because machines are slow; a condition that holds is noticed within milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What time it is, by the clock that all processes of this machine share.
#[must_use]
pub fn now() -> Moment {
    SystemClock::read()
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Exit code of a lab that was told to stop.
pub const INTERRUPTED_CODE: u8 = 130;

/// From now on ^C, TERM and a terminal that is closed only end all waiting, so that servers and folders
/// are cleaned up. Said twice, they end us at once: servers end with us, only folders stay.
pub fn notice_interrupts() {
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build();
        // Without it a signal ends us at once; servers end with us, only folders stay.
        if let Ok(runtime) = runtime {
            let _ = runtime.block_on(interrupt(ready));
        }
    });
    // Until then a signal would end us at once; an error means that it always will.
    let _ = is_ready.recv();
}

async fn interrupt(ready: Sender<()>) -> std::io::Result<()> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let mut hang_ups = signal(SignalKind::hangup())?;
    let _ = ready.send(());
    loop {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminations.recv() => {}
            _ = hang_ups.recv() => {}
        }
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED_CODE.into());
        }
    }
}

/// Whether somebody pressed ^C.
#[must_use]
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Asks again and again until `condition` answers something; `None` after `limit`.
pub fn until<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let start = now();
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if now().since(start) > limit || is_interrupted() {
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
