//! Signals as a shell hands them on to what it starts.

use std::sync::Once;

/// Gives the tests' own process the default reactions to the signals of job control, which what it
/// starts then has, too. `nohup`, or a shell that starts the tests in the background, ignores some
/// of them, and tenure rightly leaves ignored what was ignored at its start.
#[allow(
    unsafe_code,
    reason = "setting a signal's reaction has no safe wrapper"
)]
pub(crate) fn as_from_a_shell() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for signal in [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGTERM,
            libc::SIGTSTP,
            libc::SIGTTIN,
            libc::SIGTTOU,
        ] {
            // SAFETY: the default reaction runs no code of ours, and no other code of this process
            // handles these signals.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    });
}
