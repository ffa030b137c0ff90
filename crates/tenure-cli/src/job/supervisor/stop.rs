//! A job that is being ended: why, and when TERM turns into KILL, by us or by the guard.

use std::time::Duration;

use rustix::process::Signal;

use super::{Action, Supervisor};
use crate::job::boottime::Boottime;
use crate::job::plan::OnLost;

/// KILL this long before the lease can pass on: on a busy machine a signal takes a moment to be
/// sent and another one to end a process.
const KILL_AHEAD: Duration = Duration::from_millis(50);
/// The guard acts this much later than we do, so that it acts only when we do not.
const GUARD_BEHIND: Duration = Duration::from_millis(20);
/// A KILL is repeated this often, in case a member was being created.
const KILL_AGAIN: Duration = Duration::from_millis(100);

/// A job that is being ended.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) why: Why,
    pub(super) kill_at: Boottime,
    /// A renewal has moved the KILL already.
    pub(super) moved: bool,
    /// It has come to KILL; when to repeat it.
    pub(super) kill_again_at: Option<Boottime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Lease,
    HoldAtMost,
    Unguarded,
    Orphans,
}

impl Supervisor {
    /// Begins to end the job, or hurries if that has begun. True if it began.
    pub(super) fn begin_stop(&mut self, now: Boottime, why: Why, grace: Duration) -> bool {
        let kill_at = now.plus(grace);
        if let Some(stop) = &mut self.stop {
            stop.kill_at = stop.kill_at.min(kill_at);
            if why == Why::Lease {
                stop.why = why;
            }
            return false;
        }
        self.stop = Some(Stop {
            why,
            kill_at,
            moved: false,
            kill_again_at: None,
        });
        if grace > Duration::ZERO {
            self.actions.push(Action::Send(Signal::TERM));
            // A stopped process does not see a TERM.
            self.actions.push(Action::Send(Signal::CONT));
        }
        true
    }

    pub(super) fn kill_if_due(&mut self, now: Boottime) {
        let Some(stop) = &self.stop else { return };
        if now >= self.kill_line(stop) {
            self.actions.push(Action::Send(Signal::KILL));
            if let Some(stop) = &mut self.stop {
                stop.kill_again_at = Some(now.plus(KILL_AGAIN));
            }
        }
    }

    /// When this stop turns into a KILL: in its own time, but before the lease can pass on. Then
    /// again and again, until the caller finds nobody left.
    pub(super) fn kill_line(&self, stop: &Stop) -> Boottime {
        match stop.kill_again_at {
            Some(again) => again,
            None if self.rules.on_lost == OnLost::Kill => {
                stop.kill_at.min(self.lease.valid_until.minus(KILL_AHEAD))
            }
            None => stop.kill_at,
        }
    }

    pub(super) fn wanted_guard_deadline(&self) -> Boottime {
        if self.rules.on_lost != OnLost::Kill {
            return Boottime::NEVER;
        }
        let from_lease = self.lease.valid_until.minus(KILL_AHEAD);
        let kill_at = match &self.stop {
            Some(stop) if stop.why == Why::Lease => from_lease.min(stop.kill_at),
            _ => from_lease,
        };
        kill_at.plus(GUARD_BEHIND)
    }

    pub(super) fn keep_guard_informed(&mut self) {
        let deadline = self.wanted_guard_deadline();
        if deadline != self.guard_deadline {
            self.guard_deadline = deadline;
            self.actions.push(Action::SetGuard(deadline));
        }
    }
}
