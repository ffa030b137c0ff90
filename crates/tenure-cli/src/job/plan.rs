//! What to run and how to treat it ([`JobPlan`]), and how it ended ([`JobEnd`]).

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::guard::DyingGuard;
use super::lease::LossCause;

/// A job to run under a lease.
#[derive(Debug)]
pub struct JobPlan {
    /// The file to execute, found by [`resolve_program`](super::resolve_program).
    pub program: PathBuf,
    /// The job's own name for itself (`argv[0]`): what the user typed.
    pub name: OsString,
    /// The job's arguments, without `argv[0]`.
    pub args: Vec<OsString>,
    /// Environment variables to set (`Some`) or to remove (`None`) for the job.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Time between TERM and KILL. Must be shorter than a lease.
    pub grace: Duration,
    /// What happens to the job when the lease is about to be lost.
    pub on_lost: OnLost,
    /// End the job after this long.
    pub hold_at_most: Option<Duration>,
    /// What to do with members of the group that outlive the job.
    pub orphans: Orphans,
    /// Keep the job in our own process group. Then **only the job's own process is ended**, never
    /// its descendants, and orphans are not looked for: the group is not ours to kill.
    pub foreground: bool,
    /// Descriptors that the guard process keeps open until no living member of the group is left,
    /// whatever happens to this process (a lock file that proves the job to be alive).
    pub keep_open: Vec<OwnedFd>,
    /// The executable that becomes the guard process: `/proc/self/exe`, except in tests.
    pub guard_program: PathBuf,
}

impl JobPlan {
    /// A plan with the defaults of `tenure run` for everything but the command.
    pub fn new(program: impl Into<PathBuf>, name: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            name: name.into(),
            args: Vec::new(),
            env: Vec::new(),
            grace: Duration::from_secs(10),
            on_lost: OnLost::Kill,
            hold_at_most: None,
            orphans: Orphans::Kill,
            foreground: false,
            keep_open: Vec::new(),
            guard_program: PathBuf::from("/proc/self/exe"),
        }
    }
}

/// What happens to the job when its lease is about to be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLost {
    /// TERM early enough, KILL before the lease can pass on. The only choice that keeps the
    /// promise of the lock.
    Kill,
    /// This signal, once, at the time of the TERM; the job may go on without the lock.
    Signal(Signal),
    /// A warning; the job goes on without the lock.
    Warn,
}

/// What happens to members of the job's group that are left when the job has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// TERM, grace, KILL.
    Kill,
    /// The lock is kept until they have ended by themselves.
    Wait,
    /// They go on **without the lock**.
    Release,
}

/// How a job ended.
#[derive(Debug)]
pub struct JobEnd {
    /// What the exit code follows from.
    pub outcome: Outcome,
    /// Members of the group that were left when the job itself had ended. With
    /// [`Orphans::Release`] they still live, otherwise they are gone.
    pub orphans: Vec<Pid>,
    /// A signal that asks us to end (HUP, INT, QUIT, TERM) has arrived meanwhile.
    pub asked_to_end: bool,
    /// Ends while the lock is given back; dropping this waits for it.
    #[allow(dead_code, reason = "held for its drop")]
    pub(super) guard: Option<DyingGuard>,
}

/// The outcome of a job. When it is known, the job and (unless it shared our group, or orphans
/// were to be released) every member of its group is gone.
#[derive(Debug)]
pub enum Outcome {
    /// The job ended while the lease was held.
    Ended(Status),
    /// The lease was lost, or the job was ended because it was about to be.
    Lost {
        /// Why the lease was lost, or would have been.
        cause: LossCause,
        /// How the job ended; `None` if it was never started.
        status: Option<Status>,
        /// The job was gone while the lease was still valid: nobody else can have held it meanwhile.
        in_time: bool,
    },
    /// `hold_at_most` was reached and the job was ended.
    HoldAtMost(Status),
    /// The guard process could not be kept alive, so the job was ended.
    Unguarded(Status),
    /// The job could not be started.
    NotStarted(SpawnError),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

impl Status {
    /// The code a shell would show: the process's own, or 128 + signal.
    pub fn exit_code(self) -> u8 {
        let code = match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
        };
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }
}

/// Why a job could not be started although its program had been found.
#[derive(Debug)]
pub enum SpawnError {
    /// The system refused to execute the program: exit code 126.
    NotExecutable(io::Error),
    /// The program is gone: exit code 127.
    NotFound(io::Error),
    /// Something that the supervision needs (guard process, timer, signal handler) failed: exit
    /// code 70. Nothing was started.
    Supervision(io::Error),
}

impl SpawnError {
    /// The exit code of `tenure run`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotExecutable(_) => 126,
            Self::NotFound(_) => 127,
            Self::Supervision(_) => 70,
        }
    }
}

impl std::fmt::Display for SpawnError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotExecutable(error) => write!(out, "cannot execute: {error}"),
            Self::NotFound(error) => write!(out, "not found: {error}"),
            Self::Supervision(error) => write!(out, "cannot watch over the job: {error}"),
        }
    }
}
