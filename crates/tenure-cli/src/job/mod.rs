//! Running the command of `tenure run` under a lease: start, signals, terminal, end.
//!
//! The promise: the job and every member of its process group is gone before the lease can pass
//! on, also when this process is killed, stopped or starved. **Not covered**: descendants that
//! leave the group (`setsid`), and programs that run as another user and may not be signalled.
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
pub use notice::{Notice, Reaction, Reporter, StderrReporter};
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
