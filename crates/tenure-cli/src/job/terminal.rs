//! Whose terminal it is: handing it to the job, taking it back, and what to do when the job stops.

use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::process::{Pid, Signal, getpgrp, test_kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use super::group::own_group_has_others;
use super::signals::{ignored_at_start, set_disposition};

/// Our controlling terminal while a job runs.
#[derive(Debug)]
pub(crate) struct Terminal {
    tty: OwnedFd,
    own_group: Pid,
}

/// Which process group the terminal listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreground {
    /// Ours, which may hold other processes of a pipeline.
    Ours,
    /// The job's own.
    Jobs,
    /// Another: we are in the background.
    Elsewhere,
    /// There is no terminal.
    NoTerminal,
}

/// What to do when the job was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReaction {
    /// It needs the terminal and can have it: give it, and let the job go on.
    HandOver,
    /// Stop, too, so that the shell notices; with `group` the whole of our group, as the key
    /// would have done if the terminal had been ours.
    Suspend { group: bool },
    /// Go on and keep the lease: nobody asked us to stop.
    Stay,
}

/// The table behind the terminal's behaviour.
pub(crate) fn when_stopped(signal: Signal, foreground: Foreground) -> StopReaction {
    match (signal, foreground) {
        (_, Foreground::NoTerminal) => StopReaction::Stay,
        (Signal::TTIN | Signal::TTOU, Foreground::Ours | Foreground::Jobs) => {
            StopReaction::HandOver
        }
        (Signal::TTIN | Signal::TTOU, Foreground::Elsewhere) => {
            StopReaction::Suspend { group: false }
        }
        (Signal::TSTP | Signal::STOP, Foreground::Jobs) => StopReaction::Suspend { group: true },
        (Signal::TSTP, _) => StopReaction::Suspend { group: false },
        // Somebody stopped the job by hand, behind a terminal that is busy with something else.
        _ => StopReaction::Stay,
    }
}

impl Terminal {
    /// Our controlling terminal, if there is one. While it exists we may write to the terminal and
    /// move it from the background, too.
    pub(crate) fn open() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let tty = open("/dev/tty", flags, Mode::empty()).ok()?;
        set_disposition(Signal::TTOU, libc::SIG_IGN);
        Some(Self {
            tty,
            own_group: getpgrp(),
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.tty.as_fd()
    }

    /// Whether the job should get the terminal before it asks for it: only if nobody else of our
    /// group can need it. In `tenure run ... | less` that would stop `less`.
    pub(crate) fn is_ours_alone(&self) -> bool {
        std::io::stdin().is_terminal()
            && tcgetpgrp(&self.tty) == Ok(self.own_group)
            // The shell may not have started the other end of the pipe yet.
            && !is_pipe(rustix::stdio::stdout())
            && !own_group_has_others()
    }

    pub(crate) fn foreground(&self, job: Pid) -> Foreground {
        match tcgetpgrp(&self.tty) {
            Ok(group) if group == self.own_group => Foreground::Ours,
            Ok(group) if group == job => Foreground::Jobs,
            _ => Foreground::Elsewhere,
        }
    }

    pub(crate) fn give(&self, job: Pid) {
        let _ = tcsetpgrp(&self.tty, job);
    }

    /// Takes the terminal back if the job's group has it, and from nobody else: after `bg` it is
    /// the shell's.
    pub(crate) fn take_back(&self, job: Pid) {
        if self.foreground(job) == Foreground::Jobs {
            let _ = tcsetpgrp(&self.tty, self.own_group);
        }
    }

    /// Takes the terminal back from a job that failed to start, whose number we do not know.
    pub(crate) fn take_back_from_nobody(&self) {
        let gone = |group| test_kill_process_group(group).is_err();
        if tcgetpgrp(&self.tty).is_ok_and(gone) {
            let _ = tcsetpgrp(&self.tty, self.own_group);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !ignored_at_start(Signal::TTOU) {
            set_disposition(Signal::TTOU, libc::SIG_DFL);
        }
    }
}

fn is_pipe(descriptor: BorrowedFd<'_>) -> bool {
    fstat(descriptor).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::Socket
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_reads_gets_the_terminal_if_it_is_ours_to_give() {
        let when = |foreground| when_stopped(Signal::TTIN, foreground);
        assert_eq!(when(Foreground::Ours), StopReaction::HandOver);
        assert_eq!(when(Foreground::Jobs), StopReaction::HandOver);
        assert_eq!(
            when(Foreground::Elsewhere),
            StopReaction::Suspend { group: false }
        );
    }

    #[test]
    fn the_stop_key_in_the_job_stops_our_whole_group() {
        let when = |foreground| when_stopped(Signal::TSTP, foreground);
        assert_eq!(
            when(Foreground::Jobs),
            StopReaction::Suspend { group: true }
        );
        assert_eq!(
            when(Foreground::Ours),
            StopReaction::Suspend { group: false }
        );
    }

    #[test]
    fn a_job_stopped_by_hand_keeps_its_lease_unless_it_has_the_terminal() {
        let when = |foreground| when_stopped(Signal::STOP, foreground);
        assert_eq!(when(Foreground::NoTerminal), StopReaction::Stay);
        assert_eq!(when(Foreground::Ours), StopReaction::Stay);
        assert_eq!(
            when(Foreground::Jobs),
            StopReaction::Suspend { group: true }
        );
        assert_eq!(
            when_stopped(Signal::TSTP, Foreground::NoTerminal),
            StopReaction::Stay
        );
    }
}
