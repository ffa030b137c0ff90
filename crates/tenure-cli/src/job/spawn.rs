//! Starting the job: between fork and exec it gets its group, its belts and the terminal, and arms
//! the guard, so that no unguarded job ever runs a single instruction of its own.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal, setpgid};
use rustix::termios::tcsetpgrp;

use super::boottime::Boottime;
use super::group::Target;
use super::guard::ToGuard;
use super::plan::{JobPlan, SpawnError};
use super::signals::{TOUCHED, ignored_at_start, set_disposition};

/// What the job needs from us while it starts.
pub(crate) struct Cradle<'a> {
    /// The line to the guard.
    pub(crate) guard: BorrowedFd<'a>,
    /// When the guard kills it unless told otherwise.
    pub(crate) deadline: Boottime,
    /// The terminal, if the job is to have it from the start.
    pub(crate) terminal: Option<BorrowedFd<'a>>,
}

/// Starts the job. Must be called on a thread that lives as long as the job may (the main thread):
/// the kernel kills the job when this *thread* ends.
pub(crate) fn spawn(plan: &JobPlan, cradle: &Cradle<'_>) -> Result<Target, SpawnError> {
    let mut command = Command::new(&plan.program);
    command.arg0(&plan.name).args(&plan.args);
    for (name, value) in &plan.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    prepare(&mut command, plan.foreground, cradle);
    let child = command.spawn().map_err(|error| classify(plan, error))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid =
        pid.ok_or_else(|| SpawnError::Supervision(io::Error::other("a process id out of range")))?;
    Ok(if plan.foreground {
        Target::Process(pid)
    } else {
        Target::Group(pid)
    })
}

#[allow(
    unsafe_code,
    reason = "what has to happen in the child before exec has no safe interface"
)]
fn prepare(command: &mut Command, foreground: bool, cradle: &Cradle<'_>) {
    let parent = getpid();
    let deadline = cradle.deadline;
    let dispositions = TOUCHED.map(|signal| (signal, ignored_at_start(signal)));
    // SAFETY: both descriptors outlive the command, which does not leave `spawn`; the kernel has
    // copied them into the child when the closure runs.
    let (guard, terminal) = unsafe {
        use std::os::fd::AsRawFd as _;
        (
            BorrowedFd::borrow_raw(cradle.guard.as_raw_fd()),
            cradle
                .terminal
                .map(|terminal| BorrowedFd::borrow_raw(terminal.as_raw_fd())),
        )
    };
    // SAFETY: the closure runs after fork in a process that may have had other threads: it makes
    // system calls on plain values only. No allocation, no lock, no panic, nothing dropped.
    unsafe {
        command.pre_exec(move || {
            be_born(parent, foreground, guard, deadline, terminal, &dispositions)
        });
    }
}

/// Runs in the child. Async-signal-safe calls only.
fn be_born(
    parent: Pid,
    foreground: bool,
    guard: BorrowedFd<'_>,
    deadline: Boottime,
    terminal: Option<BorrowedFd<'_>>,
    dispositions: &[(Signal, bool)],
) -> io::Result<()> {
    // First, or a handler of our parent's would swallow a key pressed now. The mask is empty
    // already: std sees to that.
    for (signal, ignored) in dispositions {
        set_disposition(*signal, default_or_ignored(*ignored));
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before that call: then nobody is left to kill us.
    if getppid() != Some(parent) {
        return Err(Errno::SRCH.into());
    }
    let own = getpid();
    let target = if foreground {
        Target::Process(own)
    } else {
        setpgid(None, None)?;
        Target::Group(own)
    };
    let message = ToGuard::Arm { target, deadline }.encode();
    if send(guard, &message, SendFlags::NOSIGNAL).is_err() {
        // Not an error that exec could give: the caller can tell that the guard is to blame.
        return Err(Errno::NOTCONN.into());
    }
    if let Some(terminal) = terminal {
        // From the background, which we are in until the call has worked.
        set_disposition(Signal::TTOU, libc::SIG_IGN);
        let _ = tcsetpgrp(terminal, own);
        let ignored = dispositions.contains(&(Signal::TTOU, true));
        set_disposition(Signal::TTOU, default_or_ignored(ignored));
    }
    Ok(())
}

fn default_or_ignored(ignored: bool) -> libc::sighandler_t {
    if ignored {
        libc::SIG_IGN
    } else {
        libc::SIG_DFL
    }
}

fn classify(plan: &JobPlan, error: io::Error) -> SpawnError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOTCONN | Errno::SRCH | Errno::AGAIN | Errno::NOMEM | Errno::MFILE) => {
            SpawnError::Supervision(error)
        }
        // The file is there, its interpreter is not.
        Some(Errno::NOENT) if plan.program.exists() => SpawnError::NotExecutable(error),
        Some(Errno::NOENT) => SpawnError::NotFound(error),
        _ => SpawnError::NotExecutable(error),
    }
}
