//! Running the command of `tenure run` under a lease: start, signals, terminal, end.
//!
//! The promise: the job and every member of its process group is gone before the lease can pass
//! on, also when this process is killed, stopped or starved. **Not covered**: descendants that
//! leave the group (`setsid`), programs that run as another user and may not be signalled, and
//! processes that hang in the kernel (state D), which take a KILL only when they get out of it. When
//! the whole machine sleeps or is paused past the lease, the job runs on for a moment after it wakes up.
//!
//! How `tenure run` uses it:
//!
//! ```no_run
//! # use tenure_cli::job;
//! # async fn example(lease: job::Lease) -> Result<u8, Box<dyn std::error::Error>> {
//! let program = job::resolve_program("backup.sh".as_ref())?; // before the lock: 126, 127
//! let mut signals = job::Signals::install()?; // `signals.next()` while waiting, too
//! // ... take the lock, whose `lease` says how it stands ...
//! let reporter = |notice: &job::Notice| eprintln!("tenure: {notice}");
//! let plan = job::JobPlan::new(program, "backup.sh");
//! let end = job::run(plan, &mut signals, lease, &reporter).await;
//! // ... the job and its group are gone: give the lock back ...
//! let code = match end.outcome {
//!     job::Outcome::Ended(status) => {
//!         if let job::Status::Signalled(2 | 3) = status {
//!             // flush output, then: job::die_of(signal), so that shell loops stop
//!         }
//!         status.exit_code()
//!     }
//!     job::Outcome::Lost { .. } => 79,
//!     job::Outcome::HoldAtMost(_) => 124,
//!     job::Outcome::Unguarded(_) => 70,
//!     job::Outcome::NotStarted(error) => error.exit_code(),
//! };
//! # Ok(code) }
//! ```
//!
//! `supervisor` decides, without doing anything; `supervise` and `reactions` do it; `guard` is the
//! process that does the last of it, the KILL, when nobody else can.

mod boottime;
mod group;
mod guard;
mod lease;
mod notice;
mod path;
mod plan;
mod reactions;
mod readiness;
mod signals;
mod spawn;
mod supervise;
mod supervisor;
mod terminal;

pub use boottime::Boottime;
pub use lease::{Lease, LeaseStatus, LossCause};
pub use notice::{Notice, Reaction, Reporter};
pub use path::{ProgramError, ProgramErrorKind, resolve_program};
pub use plan::{JobEnd, JobPlan, OnLost, Orphans, Outcome, SpawnError, Status};
pub use rustix::process::{Pid, Signal};
pub use signals::{
    Arrived, Signals, die_of, ignored_at_start, remember_ignored_signals, signal_named,
};
pub use supervise::run;

/// Turns this process into a guard process if it was started as one; otherwise does nothing.
///
/// To be called first thing in `main`, before arguments are parsed and before any thread exists.
pub fn become_guard_if_asked() {
    guard::become_guard_if_asked();
}
