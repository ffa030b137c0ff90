//! What the supervision does about each thing that happens.

use std::time::Duration;

use rustix::process::Signal;

use super::boottime::Boottime;
use super::group::{Target, own_children, peek_ended, reap, take_stopped};
use super::guard::{GuardEvent, GuardProcess};
use super::notice::{Notice, Reaction};
use super::plan::{JobEnd, Orphans};
use super::signals::{Arrived, ENDING, stop_self};
use super::supervise::{Ended, Running};
use super::supervisor::Action;
use super::terminal::{Foreground, StopReaction, when_stopped};

/// Members that are still there this long after the job are orphans rather than about to end.
const SETTLE: Duration = Duration::from_millis(50);
/// Members whose parent is not us end without telling us, so we look this often.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl Running<'_> {
    pub(super) fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(signal) => self.target.send(signal),
                Action::Tell(notice) => self.reporter.tell(&notice),
                Action::SetGuard(deadline) => {
                    let told = match &self.guard {
                        Some(guard) => guard.set_deadline(deadline),
                        None => Ok(()),
                    };
                    if told.is_err() {
                        self.replace_guard();
                    }
                }
            }
        }
    }

    pub(super) fn signal_arrived(&mut self, arrived: Arrived) {
        match arrived.signal {
            // Children are looked at after every wake-up.
            Signal::CHILD => {}
            Signal::CONT => self.go_on(),
            Signal::TSTP => {
                // We stop when the job has: it may want to tidy the screen first, or not to stop.
                if !(arrived.from_terminal && self.plan.foreground) {
                    self.target.send(Signal::TSTP);
                }
            }
            signal => {
                self.asked_to_end |= ENDING.contains(&signal);
                let actions = self.supervisor.signal(Boottime::now(), arrived);
                self.carry_out(actions);
            }
        }
    }

    pub(super) fn hear_guard(&mut self) {
        while let Some(event) = self.guard.as_ref().and_then(GuardProcess::try_next) {
            self.heard_guard(event);
        }
    }

    pub(super) fn heard_guard(&mut self, event: GuardEvent) {
        match event {
            GuardEvent::KilledJob => {
                let actions = self.supervisor.killed_by_guard(Boottime::now());
                self.carry_out(actions);
            }
            GuardEvent::JobGone(at) => self.supervisor.gone_by_guard(at),
            GuardEvent::Died => self.replace_guard(),
        }
    }

    /// Puts another guard in the place of one that died or does not listen, or ends the job.
    fn replace_guard(&mut self) {
        let Some(old) = self.guard.take() else { return };
        drop(old.dismiss());
        let next = if self.guards_left == 0 {
            Err(std::io::Error::other("it keeps dying"))
        } else {
            self.guards_left -= 1;
            self.start_guard()
        };
        match next {
            Ok(guard) => {
                self.guard = Some(guard);
                self.reporter.tell(&Notice::GuardReplaced);
            }
            Err(error) => {
                self.reporter.tell(&Notice::GuardLost(error.to_string()));
                let actions = self.supervisor.unguarded(Boottime::now());
                self.carry_out(actions);
            }
        }
    }

    fn start_guard(&self) -> std::io::Result<GuardProcess> {
        let guard = GuardProcess::start(&self.plan.guard_program, &self.plan.keep_open)?;
        guard.arm(self.target, self.supervisor.guard_deadline())?;
        Ok(guard)
    }

    pub(super) fn look_at_children(&mut self) {
        let leader = self.target.leader();
        if self.ended.is_none() {
            if let Some(signal) = take_stopped(leader) {
                self.job_stopped(signal);
            }
            if let Some(status) = peek_ended(leader) {
                let now = Boottime::now();
                self.ended = Some(Ended {
                    status,
                    at: now,
                    orphans: None,
                    look_again: now,
                });
            }
        }
        for child in self.others() {
            reap(child);
        }
    }

    /// Our children but the job's leader and the guard: what a subreaper adopted.
    fn others(&self) -> Vec<rustix::process::Pid> {
        let (leader, guard) = (
            self.target.leader(),
            self.guard.as_ref().map(GuardProcess::pid),
        );
        let mut children = own_children();
        children.retain(|child| *child != leader && Some(*child) != guard);
        children
    }

    /// Whether the job has ended and nothing is left to wait for.
    pub(super) fn all_gone(&mut self) -> bool {
        let now = Boottime::now();
        if self.ended.is_none() {
            return false;
        }
        // Nobody whom we could have adopted: there are no descendants at all.
        let survivors = if self.others().is_empty() {
            Vec::new()
        } else {
            self.target.living_followers()
        };
        let Some(ended) = &mut self.ended else {
            return false;
        };
        if survivors.is_empty() {
            return true;
        }
        ended.look_again = now.plus(LOOK_AGAIN);
        if ended.orphans.is_some() || now < ended.at.plus(SETTLE) {
            return false;
        }
        ended.orphans = Some(survivors.clone());
        self.found_orphans(survivors)
    }

    /// True if they are to be left alone.
    fn found_orphans(&mut self, pids: Vec<rustix::process::Pid>) -> bool {
        let reaction = match self.plan.orphans {
            Orphans::Kill => Reaction::Ending,
            // A lease that is being lost takes everybody with it.
            Orphans::Release if !self.supervisor.is_stopping() => return true,
            Orphans::Wait | Orphans::Release => Reaction::Watching,
        };
        self.reporter.tell(&Notice::Orphans { pids, reaction });
        if reaction == Reaction::Ending {
            let actions = self.supervisor.end_orphans(Boottime::now());
            self.carry_out(actions);
        }
        false
    }

    fn job_stopped(&mut self, signal: Signal) {
        match when_stopped(signal, self.foreground()) {
            StopReaction::HandOver => {
                self.give_terminal();
                self.target.send(Signal::CONT);
            }
            StopReaction::Suspend { group } => self.suspend(signal, group),
            StopReaction::Stay => {}
        }
    }

    /// Stops us as the job was stopped, until the shell continues us.
    fn suspend(&mut self, signal: Signal, group: bool) {
        if let Some(terminal) = &self.terminal {
            terminal.take_back(self.target.leader());
        }
        let expires_in = self.supervisor.remaining(Boottime::now());
        self.reporter.tell(&Notice::Stopped { expires_in });
        // Not STOP: where nobody can continue us, we must not stop for ever.
        let signal = if signal == Signal::STOP {
            Signal::TSTP
        } else {
            signal
        };
        if stop_self(signal, group) {
            self.go_on();
        } else {
            self.could_not_stop(signal);
        }
    }

    /// After CONT: the lease first, then the terminal, then the job.
    fn go_on(&mut self) {
        let status = self.lease.borrow_and_update().clone();
        let actions = self.supervisor.lease_changed(Boottime::now(), status);
        self.carry_out(actions);
        self.hear_guard();
        if !self.supervisor.may_go_on() {
            return;
        }
        if self.had_terminal && self.foreground() == Foreground::Ours {
            self.give_terminal();
        }
        self.target.send(Signal::CONT);
    }

    /// Nobody is there who could continue us, so the kernel did not stop us. A job started without
    /// us would not have been stopped either; and one that waits for a terminal in the background
    /// would have been refused it. The nearest that we can do is what the kernel does to stopped
    /// groups that are left alone: HUP and CONT, once.
    fn could_not_stop(&mut self, signal: Signal) {
        if signal == Signal::TSTP {
            self.go_on();
        } else if !self.hung_up {
            self.hung_up = true;
            self.target.send(Signal::HUP);
            self.target.send(Signal::CONT);
        }
    }

    fn foreground(&self) -> Foreground {
        match &self.terminal {
            Some(terminal) => terminal.foreground(self.target.leader()),
            None => Foreground::NoTerminal,
        }
    }

    fn give_terminal(&mut self) {
        if let (Some(terminal), Target::Group(leader)) = (&self.terminal, self.target) {
            terminal.give(leader);
            self.had_terminal = true;
        }
    }

    /// The job may have been killed by the guard after we looked at the clock and before we looked at
    /// the job: once more, in the right order.
    fn judge_again(&mut self) {
        while let Some(event) = self.guard.as_ref().and_then(GuardProcess::try_next) {
            if event == GuardEvent::Died {
                break;
            }
            self.heard_guard(event);
        }
        let status = self.lease.borrow_and_update().clone();
        let actions = self.supervisor.lease_changed(Boottime::now(), status);
        // There is nobody left to do anything to.
        for action in actions {
            if let Action::Tell(notice) = action {
                self.reporter.tell(&notice);
            }
        }
    }

    /// Everybody is gone: reap the leader, whose number may now be given to others, and tell.
    pub(super) fn finish(mut self, ended: Ended) -> JobEnd {
        if let Some(terminal) = &self.terminal {
            terminal.take_back(self.target.leader());
        }
        self.judge_again();
        let guard = self.guard.take().map(GuardProcess::dismiss);
        let outcome = self.supervisor.outcome(Boottime::now(), ended.status);
        reap(self.target.leader());
        JobEnd {
            outcome,
            orphans: ended.orphans.unwrap_or_default(),
            asked_to_end: self.asked_to_end,
            guard,
        }
    }
}
