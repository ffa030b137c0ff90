//! Signals that arrive at this process: which were ignored when it started, which arrive now and
//! where from, and dying of one.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, getpid};
use signal_hook_registry::SigId;
use tokio::io::unix::AsyncFd;

use super::readiness::watched;

/// Those that ask us to end.
pub(super) const ENDING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// Signals that are passed on to the job.
pub(crate) const FORWARDED: [Signal; 6] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
];

/// Signals whose disposition this program ever changes, and which a job must find as we found them.
pub(crate) const TOUCHED: [Signal; 12] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
    Signal::CHILD,
    Signal::TTIN,
    Signal::TTOU,
    Signal::PIPE,
];

/// How often this process was continued: tells whether an attempt to stop it worked.
static CONTINUED: AtomicU32 = AtomicU32::new(0);

/// A signal that arrived, and whether the terminal sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// The signal.
    pub signal: Signal,
    /// The terminal driver sent it (a key was pressed), so our whole process group has it.
    pub from_terminal: bool,
}

/// Signals arriving at this process, instead of their usual effect.
///
/// Made before the lock is asked for and handed to [`run`](super::run), so that no signal falls
/// between waiting and running. Signals that were ignored when the program started are left alone.
/// After a `Signals` is dropped its signals have *no* effect: see [`die_of`].
#[derive(Debug)]
pub struct Signals {
    read: AsyncFd<OwnedFd>,
    write: OwnedFd,
    registered: Vec<SigId>,
}

impl Signals {
    /// Catches HUP, INT, QUIT, TERM, USR1 and USR2. Needs a tokio runtime.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn install() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let mut signals = Self {
            read: watched(read)?,
            write,
            registered: Vec::new(),
        };
        for signal in FORWARDED {
            signals.catch(signal)?;
        }
        Ok(signals)
    }

    /// Waits for the next signal. Cancel safe.
    ///
    /// # Errors
    /// None in practice: the pipe is our own.
    pub async fn next(&mut self) -> io::Result<Arrived> {
        loop {
            let mut ready = self.read.readable().await?;
            let mut message = [0_u8; 2];
            match rustix::io::read(self.read.get_ref(), &mut message) {
                Ok(2) => {
                    // Always known: we wrote it.
                    if let Some(signal) = Signal::from_named_raw(i32::from(message[0])) {
                        return Ok(Arrived {
                            signal,
                            from_terminal: message[1] == 1,
                        });
                    }
                }
                Ok(_) => {}
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A signal that has arrived already and asks us to end (HUP, INT, QUIT or TERM).
    pub fn asked_to_end(&mut self) -> Option<Arrived> {
        loop {
            let mut message = [0_u8; 2];
            let Ok(2) = rustix::io::read(self.read.get_ref(), &mut message) else {
                return None;
            };
            let signal = Signal::from_named_raw(i32::from(message[0]))?;
            if ENDING.contains(&signal) {
                return Some(Arrived {
                    signal,
                    from_terminal: message[1] == 1,
                });
            }
        }
    }

    /// Catches also the signals that only matter while a job runs.
    pub(crate) fn catch_job_control(&mut self) -> io::Result<()> {
        for signal in [Signal::TSTP, Signal::CONT] {
            self.catch(signal)?;
        }
        // Even if it was ignored: the kernel would then reap our children behind our back.
        self.register(Signal::CHILD)
    }

    fn catch(&mut self, signal: Signal) -> io::Result<()> {
        if ignored_at_start(signal) {
            return Ok(());
        }
        self.register(signal)
    }

    #[allow(
        unsafe_code,
        reason = "the only way to a signal's origin; what runs in the handler is proven below"
    )]
    fn register(&mut self, signal: Signal) -> io::Result<()> {
        let pipe = self.write.try_clone()?;
        let owner = getpid();
        // SAFETY: the action runs in a signal handler. It makes two raw system calls (getpid and
        // write, both async-signal-safe, neither touches errno with rustix's own system calls) and
        // adds to an atomic; it allocates nothing and takes no lock.
        let id = unsafe {
            signal_hook_registry::register_sigaction(signal.as_raw(), move |info| {
                // A forked child that has not yet reset its handlers must not speak for us.
                if getpid() == owner {
                    if signal == Signal::CONT {
                        CONTINUED.fetch_add(1, Ordering::Relaxed);
                    }
                    let number = u8::try_from(signal.as_raw()).unwrap_or(0);
                    let from_terminal = u8::from(info.si_code == libc::SI_KERNEL);
                    // A full pipe means that thousands are unread: one more says nothing new.
                    let _ = rustix::io::write(pipe.as_fd(), &[number, from_terminal]);
                }
            })
        }?;
        self.registered.push(id);
        Ok(())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook_registry::unregister(id);
        }
    }
}

/// Notes which signals are ignored. To be called first thing, before any handler is installed:
/// what is ignored then (`nohup`) stays ignored, here and in the job.
pub fn remember_ignored_signals() {
    let _ = ignored();
}

/// Whether `signal` was ignored when the program started.
pub fn ignored_at_start(signal: Signal) -> bool {
    ignored().contains(&signal)
}

fn ignored() -> &'static Vec<Signal> {
    static IGNORED: OnceLock<Vec<Signal>> = OnceLock::new();
    IGNORED.get_or_init(|| {
        let is_ignored = |signal: &Signal| match *signal {
            Signal::PIPE => PIPE_WAS_IGNORED.load(Ordering::Relaxed),
            signal => disposition(signal) == libc::SIG_IGN,
        };
        TOUCHED.into_iter().filter(is_ignored).collect()
    })
}

static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Rust's runtime ignores PIPE before `main`, so how we found it has to be noted before that.
extern "C" fn note_pipe() {
    let ignored = disposition(Signal::PIPE) == libc::SIG_IGN;
    PIPE_WAS_IGNORED.store(ignored, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions that the C library calls once before `main`, in
// the only thread. This one makes a system call and writes an atomic; it needs nothing of Rust's
// runtime.
#[allow(unsafe_code, reason = "the only way to run before Rust's runtime")]
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_PIPE: extern "C" fn() = note_pipe;

/// Ends this process by `signal`, so that a shell sees what it would have seen from the job: after
/// ^C its loops stop, too. Returns only if the signal does not end a process.
#[allow(unsafe_code, reason = "the system calls have no safe wrapper")]
pub fn die_of(signal: Signal) {
    // The job may have left a core; ours would only hide it.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    set_disposition(signal, libc::SIG_DFL);
    // SAFETY: the set is initialised by sigemptyset before it is read; both calls only change the
    // calling thread's mask. raise takes a plain number.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal.as_raw());
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal.as_raw());
    }
}

/// Stops this process (or with `group` its whole process group) as `signal` would stop a program
/// that does not handle it. Returns true when it was continued; false, and at once, if it cannot be
/// stopped because nobody is there to continue it (an orphaned process group).
#[allow(unsafe_code, reason = "the system calls have no safe wrapper")]
pub(crate) fn stop_self(signal: Signal, group: bool) -> bool {
    let continued_before = CONTINUED.load(Ordering::Relaxed);
    // SAFETY: sigaction with a valid number and an initialised structure; the old action is put
    // back exactly as it was. raise takes a plain number.
    unsafe {
        let mut default = std::mem::zeroed::<libc::sigaction>();
        default.sa_sigaction = libc::SIG_DFL;
        let mut before = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(signal.as_raw(), &raw const default, &raw mut before);
        if group {
            let _ = rustix::process::kill_current_process_group(signal);
        } else {
            libc::raise(signal.as_raw());
        }
        libc::sigaction(signal.as_raw(), &raw const before, std::ptr::null_mut());
    }
    ignored_at_start(Signal::CONT) || was_continued_since(continued_before)
}

/// Whether CONT has arrived. Any thread of ours may be the one that handles it, and it may do so only after the one that
/// stopped goes on: each pause lets it.
#[allow(
    clippy::disallowed_methods,
    reason = "waits for another thread of this process; no lease depends on it"
)]
fn was_continued_since(before: u32) -> bool {
    (0..50).any(|_| {
        let is_so = CONTINUED.load(Ordering::Relaxed) != before;
        if !is_so {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        is_so
    })
}

/// Sets what `signal` does: `SIG_DFL` or `SIG_IGN`. Async-signal-safe.
#[allow(unsafe_code, reason = "sigaction has no safe wrapper")]
pub(crate) fn set_disposition(signal: Signal, handler: libc::sighandler_t) {
    // SAFETY: a valid signal number and an initialised structure with an empty mask; callers pass
    // SIG_DFL or SIG_IGN only, so no code of ours can run in a handler.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = handler;
        libc::sigaction(signal.as_raw(), &raw const action, std::ptr::null_mut());
    }
}

#[allow(unsafe_code, reason = "sigaction has no safe wrapper")]
fn disposition(signal: Signal) -> libc::sighandler_t {
    // SAFETY: with a null action sigaction only writes the present one to the structure given.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(signal.as_raw(), std::ptr::null(), &raw mut action);
        action.sa_sigaction
    }
}

/// A signal by its name, with or without `SIG`, in any case: what `--on-lost signal:USR1` needs.
pub fn signal_named(name: &str) -> Option<Signal> {
    let upper = name.to_ascii_uppercase();
    let known = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("ALRM", Signal::ALARM),
        ("ABRT", Signal::ABORT),
        ("CONT", Signal::CONT),
        ("STOP", Signal::STOP),
        ("TSTP", Signal::TSTP),
        ("KILL", Signal::KILL),
        ("WINCH", Signal::WINCH),
    ];
    let wanted = upper.strip_prefix("SIG").unwrap_or(&upper);
    known
        .into_iter()
        .find(|(name, _)| *name == wanted)
        .map(|(_, signal)| signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_as_people_name_them() {
        for name in ["USR1", "usr1", "SIGUSR1", "sigusr1"] {
            assert_eq!(signal_named(name), Some(Signal::USR1));
        }
        assert_eq!(signal_named("USR3"), None);
    }
}
