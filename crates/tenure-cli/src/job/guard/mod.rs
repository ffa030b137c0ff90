//! The guard process, seen from tenure: starting it, telling it the deadline, noticing its death.
//!
//! The guard KILLs the job at the deadline even if tenure is stopped or starved, and at once when
//! tenure is gone. Why it is a process of its own: `docs/decisions/002-the-guard-process.md`.

mod process;
mod wire;

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, kill_process, setsid};
use tokio::io::unix::AsyncFd;

pub(crate) use process::become_guard_if_asked;
use wire::FromGuard;
pub(crate) use wire::ToGuard;

use super::boottime::Boottime;
use super::group::{Target, reap_dying};
use super::readiness::watched;

/// The word after the program's name that makes a guard of it.
const GUARD_WORD: &str = "__guard";

/// How many descriptors a guard can be asked to keep.
pub(crate) const MOST_KEPT: usize = 8;

/// A running guard process.
///
/// Dropping it closes the line, which makes the guard KILL the job: what is right if this process
/// fails half-way. [`dismiss`](Self::dismiss) is for when there is nothing left to guard.
#[derive(Debug)]
pub(crate) struct GuardProcess {
    pid: Pid,
    socket: AsyncFd<OwnedFd>,
}

/// A guard process that was sent a KILL and is not reaped yet.
#[derive(Debug)]
#[must_use = "dropping it waits for the end of the guard"]
pub(crate) struct DyingGuard(Pid);

impl Drop for DyingGuard {
    fn drop(&mut self) {
        reap_dying(self.0);
    }
}

/// Something that happened to the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardEvent {
    /// It killed the job because the deadline had come.
    KilledJob,
    /// After that no member of the job lived any more, at this moment.
    JobGone(Boottime),
    /// It is gone: nobody guards the job.
    Died,
}

impl GuardProcess {
    /// Starts a guard that knows of no job yet. What it is to keep open is with it, in the
    /// socket's queue, even before it has run its first instruction.
    pub(crate) fn start(program: &Path, keep: &[OwnedFd]) -> io::Result<Self> {
        if keep.len() > MOST_KEPT {
            return Err(io::Error::other("too many descriptors to keep open"));
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let mut command = Command::new(program);
        // No environment: it needs none, and a password in it would live as long as the guard.
        command
            .arg0("tenure-guard")
            .arg(GUARD_WORD)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        born_in_a_session_of_its_own(&mut command);
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let guard = Self {
            pid: pid.ok_or_else(|| io::Error::other("a process id out of range"))?,
            socket: watched(ours)?,
        };
        if !keep.is_empty() {
            guard.hand_over(keep)?;
        }
        Ok(guard)
    }

    /// The line on which a starting job arms the guard.
    pub(crate) fn line(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Tells a guard that takes over whom to kill, and when.
    pub(crate) fn arm(&self, target: Target, deadline: Boottime) -> io::Result<()> {
        self.tell(ToGuard::Arm { target, deadline })
    }

    /// Moves the deadline. An error means that the guard is dead, or stopped and its queue full:
    /// either way it is of no use.
    pub(crate) fn set_deadline(&self, deadline: Boottime) -> io::Result<()> {
        self.tell(ToGuard::Deadline(deadline))
    }

    /// What the guard has said so far, without waiting.
    pub(crate) fn try_next(&self) -> Option<GuardEvent> {
        let mut record = [0_u8; wire::RECORD];
        match recv(self.line(), &mut record, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok((length, _)) => Some(match FromGuard::decode(&record[..length]) {
                Some(FromGuard::Killed) => GuardEvent::KilledJob,
                Some(FromGuard::Gone(at)) => GuardEvent::JobGone(at),
                None => GuardEvent::Died,
            }),
            Err(_) => Some(GuardEvent::Died),
        }
    }

    /// Waits for the next thing that happens to the guard. Cancel safe.
    pub(crate) async fn next(&self) -> GuardEvent {
        loop {
            let Ok(mut ready) = self.socket.readable().await else {
                return GuardEvent::Died;
            };
            match self.try_next() {
                Some(event) => return event,
                None => ready.clear_ready(),
            }
        }
    }

    /// Ends the guard without a look at the job. Only for a job that is proven gone or never
    /// started, and for a guard that is no use any more. Dropping what is answered waits for its
    /// end.
    pub(crate) fn dismiss(self) -> DyingGuard {
        let _ = kill_process(self.pid, Signal::KILL);
        DyingGuard(self.pid)
    }

    fn tell(&self, message: ToGuard) -> io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        send(self.line(), &message.encode(), flags)?;
        Ok(())
    }

    fn hand_over(&self, keep: &[OwnedFd]) -> io::Result<()> {
        let keep: Vec<BorrowedFd<'_>> = keep.iter().map(OwnedFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_KEPT))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&keep));
        let record = ToGuard::Keep.encode();
        let flags = SendFlags::NOSIGNAL;
        sendmsg(self.line(), &[IoSlice::new(&record)], &mut control, flags)?;
        Ok(())
    }
}

/// A key stops or ends our whole group, and so do we when the job stops. The job may run by then and the guard, on a busy
/// machine, not have run its first instruction yet: stopped with us it would guard nobody.
#[allow(
    unsafe_code,
    reason = "a session can only be made by the process that is to be in it"
)]
fn born_in_a_session_of_its_own(command: &mut Command) {
    // SAFETY: one system call between fork and exec; nothing is allocated, locked or dropped. It cannot fail: a process
    // that was just forked leads no group.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
}
