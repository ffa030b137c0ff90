//! The guard process itself: a poll loop over the line to tenure and one timer, that only KILLs.
//!
//! It runs instead of the command line, before arguments are parsed and without a runtime.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::exit;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use rustix::process::{
    PidfdFlags, Signal, chdir, kill_process_group, pidfd_open, pidfd_send_signal,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};

use super::wire::{self, FromGuard, ToGuard};
use super::{GUARD_WORD, MOST_KEPT};
use crate::job::boottime::{Alarm, Boottime};
use crate::job::group::{Target, living_members};

/// Looks for survivors of a KILL this often. Few are seen: KILL takes no time but in the kernel.
const AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};

/// Turns this process into a guard process if it was started as one; otherwise does nothing.
pub(crate) fn become_guard_if_asked() {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == GUARD_WORD) {
        // Started by hand there is no line to tenure, and reading it fails: nothing is guarded.
        exit(if guard().is_ok() { 0 } else { 70 });
    }
}

fn guard() -> Result<(), Errno> {
    let line = seclude()?;
    let mut guard = Guard {
        line,
        alarm: Alarm::new().map_err(|_| Errno::NOMEM)?,
        job: None,
        deadline: Boottime::NEVER,
        killed: false,
        kept: Vec::new(),
    };
    guard.watch()?;
    guard.kill_until_gone();
    Ok(())
}

/// Leaves everything that tenure and its job share: signals, folder, descriptors (it was born in a session of its own). A
/// pipe held open here would keep `tenure run ... | cat` from ending.
fn seclude() -> Result<OwnedFd, Errno> {
    block_all_signals();
    let _ = rustix::thread::set_name(c"tenure-guard");
    let _ = chdir("/");
    let line = fcntl_dupfd_cloexec(stdin(), 3)?;
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    drop(null);
    close_all_but(&line);
    Ok(line)
}

struct Guard {
    line: OwnedFd,
    alarm: Alarm,
    job: Option<Prey>,
    deadline: Boottime,
    /// The deadline has come and tenure was told.
    killed: bool,
    /// Never used, only held.
    kept: Vec<OwnedFd>,
}

enum Line {
    Open,
    Closed,
}

impl Guard {
    /// Returns when tenure is gone.
    fn watch(&mut self) -> Result<(), Errno> {
        loop {
            let mut ready = [
                PollFd::new(&self.line, PollFlags::IN),
                PollFd::new(&self.alarm, PollFlags::IN),
            ];
            let overdue = self.deadline <= Boottime::now();
            match poll(&mut ready, overdue.then_some(&AGAIN)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            // Before the clock: a renewal that tenure had already sent counts.
            if let Line::Closed = self.drain_line() {
                return Ok(());
            }
            if self.deadline <= Boottime::now() {
                self.deadline_has_come();
            }
        }
    }

    fn drain_line(&mut self) -> Line {
        loop {
            let mut record = [0_u8; wire::RECORD];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_KEPT))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let received = recvmsg(
                &self.line,
                &mut [IoSliceMut::new(&mut record)],
                &mut control,
                flags,
            );
            match received {
                Ok(message) if message.bytes > 0 => {
                    for message in control.drain() {
                        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                            self.kept.extend(descriptors);
                        }
                    }
                    self.obey(ToGuard::decode(&record[..message.bytes]));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Line::Open,
                Ok(_) | Err(_) => return Line::Closed,
            }
        }
    }

    fn obey(&mut self, message: Option<ToGuard>) {
        match message {
            Some(ToGuard::Arm { target, deadline }) => {
                self.job = Some(Prey::new(target));
                self.set_deadline(deadline);
            }
            Some(ToGuard::Deadline(deadline)) => self.set_deadline(deadline),
            Some(ToGuard::Keep) | None => {}
        }
    }

    fn set_deadline(&mut self, deadline: Boottime) {
        self.deadline = deadline;
        if self.alarm.set(deadline).is_err() {
            // A deadline that cannot be kept has come.
            self.deadline = Boottime::from_nanos(0);
        }
    }

    /// KILLs, and comes back soon as long as there are survivors.
    fn deadline_has_come(&mut self) {
        let Some(job) = &self.job else {
            self.set_deadline(Boottime::NEVER);
            return;
        };
        job.kill();
        if !self.killed {
            self.killed = true;
            self.tell(FromGuard::Killed);
        }
        if !job.lives() {
            self.tell(FromGuard::Gone(Boottime::now()));
            self.set_deadline(Boottime::NEVER);
        }
    }

    fn tell(&self, message: FromGuard) {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = send(&self.line, &message.encode(), flags);
    }

    fn kill_until_gone(&self) {
        let Some(job) = &self.job else { return };
        job.kill();
        while job.lives() {
            let _ = poll(&mut [], Some(&AGAIN));
            job.kill();
        }
    }
}

/// Whom to kill.
struct Prey {
    target: Target,
    /// The process that was started: it may have moved to another group. As a descriptor, so that a
    /// number given to another process later is safe from us. `None` if it was gone already.
    leader: Option<OwnedFd>,
}

impl Prey {
    fn new(target: Target) -> Self {
        let leader = pidfd_open(target.leader(), PidfdFlags::empty()).ok();
        Self { target, leader }
    }

    fn kill(&self) {
        if let Target::Group(pgid) = self.target {
            let _ = kill_process_group(pgid, Signal::KILL);
        }
        if let Some(leader) = &self.leader {
            let _ = pidfd_send_signal(leader, Signal::KILL);
        }
    }

    fn lives(&self) -> bool {
        let leader_lives = self.leader.as_ref().is_some_and(|leader| {
            // Readable means that it has ended.
            let mut ended = [PollFd::new(leader, PollFlags::IN)];
            poll(&mut ended, Some(&Timespec::default())) == Ok(0)
        });
        leader_lives
            || matches!(self.target, Target::Group(pgid) if !living_members(pgid).is_empty())
    }
}

#[allow(unsafe_code, reason = "pthread_sigmask has no safe wrapper")]
fn block_all_signals() {
    // SAFETY: the set is filled by sigfillset before it is read; only this thread's mask changes.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// Closes every descriptor from 3 on but `kept`.
#[allow(unsafe_code, reason = "close_range has no safe wrapper")]
fn close_all_but(kept: &OwnedFd) {
    let kept = kept.as_raw_fd().unsigned_abs();
    // SAFETY: nothing else in this process owns a descriptor from 3 on: it has just started, has
    // one thread, and `kept` is left out of both ranges.
    unsafe {
        if kept > 3 {
            libc::close_range(3, kept - 1, 0);
        }
        libc::close_range(kept + 1, u32::MAX, 0);
    }
}
