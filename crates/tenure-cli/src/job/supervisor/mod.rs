//! What to do about a job, decided without doing anything: lease, clock and signals in, actions
//! out. Time is an argument; the caller carries out what is decided.
//!
//! The life of a stop: TERM at `valid_until - grace`, KILL just before `valid_until`. A renewal in
//! between moves the KILL once and does not cancel the stop, because the job has seen the TERM.

mod presses;
mod stop;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rustix::process::Signal;

use super::boottime::Boottime;
use super::lease::{LeaseStatus, LossCause};
use super::notice::{Notice, Reaction};
use super::plan::{OnLost, Outcome, Status};
use super::signals::Arrived;
use presses::{Press, Presses};
use stop::{Stop, Why};

/// The most grace that a job gets when somebody else may hold the lock already.
const GRACE_WHEN_TOLD: Duration = Duration::from_secs(2);
/// The rules for one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) grace: Duration,
    pub(crate) on_lost: OnLost,
    /// The end of `--hold-at-most`.
    pub(crate) hold_until: Boottime,
    /// The job is in our own process group, so keys reach it without us.
    pub(crate) shares_group: bool,
}

/// Something to do. Carried out in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send a signal to the job.
    Send(Signal),
    /// Tell the user.
    Tell(Notice),
    /// Tell the guard when to KILL.
    SetGuard(Boottime),
}

/// Decides about one job.
#[derive(Debug)]
pub(crate) struct Supervisor {
    rules: Rules,
    lease: LeaseStatus,
    lost: Option<LossCause>,
    warned: bool,
    stop: Option<Stop>,
    presses: Presses,
    guard_deadline: Boottime,
    /// When the guard saw that nobody lived any more.
    gone_at: Option<Boottime>,
    actions: Vec<Action>,
}

impl Supervisor {
    pub(crate) fn new(rules: Rules, lease: LeaseStatus) -> Self {
        let mut supervisor = Self {
            rules,
            lost: lease.lost.clone(),
            lease,
            warned: false,
            stop: None,
            presses: Presses::default(),
            guard_deadline: Boottime::NEVER,
            gone_at: None,
            actions: Vec::new(),
        };
        supervisor.guard_deadline = supervisor.wanted_guard_deadline();
        supervisor
    }

    /// When the guard has to KILL, as things stand.
    pub(crate) fn guard_deadline(&self) -> Boottime {
        self.guard_deadline
    }

    /// A reason not to start the job at all.
    pub(crate) fn too_late_to_start(&self, now: Boottime) -> Option<LossCause> {
        let over = now >= self.lease.valid_until;
        self.lost.clone().or(over.then_some(LossCause::Expired))
    }

    /// The clock moved. Every other event includes this one.
    pub(crate) fn tick(&mut self, now: Boottime) -> Vec<Action> {
        self.look_at_lease(now);
        if now >= self.rules.hold_until && self.begin_stop(now, Why::HoldAtMost, self.rules.grace) {
            self.actions.insert(0, Action::Tell(Notice::HoldAtMost));
        }
        self.kill_if_due(now);
        self.keep_guard_informed();
        std::mem::take(&mut self.actions)
    }

    /// The lease has this status, which may be the one it had.
    pub(crate) fn lease_changed(&mut self, now: Boottime, status: LeaseStatus) -> Vec<Action> {
        // Lost is final, and the lease's keeper sees to that, too: what it says in time counts, even
        // if we hear it late.
        if self.lost.is_none() {
            let before = self.lease.valid_until;
            self.lease.valid_until = status.valid_until;
            if before < status.valid_until {
                self.renewed();
            }
        }
        if let (None, Some(cause)) = (&self.lost, status.lost) {
            self.lose(now, cause);
        }
        self.tick(now)
    }

    /// A signal arrived that is passed on to the job.
    pub(crate) fn signal(&mut self, now: Boottime, arrived: Arrived) -> Vec<Action> {
        let Arrived {
            signal,
            from_terminal,
        } = arrived;
        match self.presses.note(now, signal) {
            Press::Kill => self.actions.push(Action::Send(Signal::KILL)),
            press => {
                // A key has reached a job in our own group already.
                if !(from_terminal && self.rules.shares_group) {
                    self.actions.push(Action::Send(signal));
                    // What is to end must be able to: a stopped process would not even notice.
                    if signal == Signal::HUP || signal == Signal::TERM {
                        self.actions.push(Action::Send(Signal::CONT));
                    }
                }
                if press == Press::AgainToKill {
                    self.actions.push(Action::Tell(Notice::AgainToKill));
                }
            }
        }
        self.tick(now)
    }

    /// The guard KILLed the job at the deadline, before we did.
    pub(crate) fn killed_by_guard(&mut self, now: Boottime) -> Vec<Action> {
        if self.lost.is_none() {
            self.lose(now, LossCause::Expired);
        }
        self.tick(now)
    }

    /// The guard, having KILLed the job, saw at this moment that nobody was left. We may hear of it
    /// much later.
    pub(crate) fn gone_by_guard(&mut self, at: Boottime) {
        self.gone_at = Some(at);
    }

    /// There is no guard any more and there will be none.
    pub(crate) fn unguarded(&mut self, now: Boottime) -> Vec<Action> {
        self.begin_stop(now, Why::Unguarded, self.rules.grace);
        self.tick(now)
    }

    /// The job has ended and what it left behind has to go, too.
    pub(crate) fn end_orphans(&mut self, now: Boottime) -> Vec<Action> {
        self.begin_stop(now, Why::Orphans, self.rules.grace);
        self.tick(now)
    }

    /// How long the lease is valid still.
    pub(crate) fn remaining(&self, now: Boottime) -> Duration {
        self.lease.valid_until.since(now)
    }

    /// Whether the job is being ended.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether the job may go on after a pause.
    pub(crate) fn may_go_on(&self) -> bool {
        self.rules.on_lost != OnLost::Kill || self.lost.is_none()
    }

    /// When to call [`tick`](Self::tick) next, if nothing else happens.
    pub(crate) fn wake_at(&self) -> Boottime {
        let mut at = Boottime::NEVER;
        if self.lost.is_none() {
            at = at.min(self.lease.valid_until);
            if !self.warned {
                at = at.min(self.lease.valid_until.minus(self.rules.grace));
            }
        }
        match &self.stop {
            Some(stop) => at.min(self.kill_line(stop)),
            None => at.min(self.rules.hold_until),
        }
    }

    /// What it all comes to, now that everything has ended.
    pub(crate) fn outcome(&mut self, now: Boottime, status: Status) -> Outcome {
        let over = now >= self.lease.valid_until;
        let why = self.stop.as_ref().map(|stop| stop.why);
        if over || self.lost.is_some() || why == Some(Why::Lease) {
            let told = matches!(self.lost, Some(LossCause::ToldByStore(_)));
            return Outcome::Lost {
                cause: self.lost.take().unwrap_or(LossCause::Expired),
                status: Some(status),
                in_time: self.gone_at.unwrap_or(now) < self.lease.valid_until && !told,
            };
        }
        match why {
            Some(Why::HoldAtMost) => Outcome::HoldAtMost(status),
            Some(Why::Unguarded) => Outcome::Unguarded(status),
            _ => Outcome::Ended(status),
        }
    }

    fn look_at_lease(&mut self, now: Boottime) {
        if self.lost.is_some() {
            return;
        }
        if now >= self.lease.valid_until {
            self.lose(now, LossCause::Expired);
        } else if now >= self.lease.valid_until.minus(self.rules.grace) && !self.warned {
            self.warn(now);
        }
    }

    /// The lease is still held, but the time in which a job can end in peace begins.
    fn warn(&mut self, now: Boottime) {
        self.warned = true;
        let reaction = match self.rules.on_lost {
            OnLost::Kill => Reaction::Ending,
            OnLost::Signal(_) => Reaction::Signalling,
            OnLost::Warn => Reaction::Watching,
        };
        let remaining = self.remaining(now);
        let notice = Notice::AtRisk {
            remaining,
            reaction,
        };
        self.actions.push(Action::Tell(notice));
        match self.rules.on_lost {
            OnLost::Kill => {
                self.begin_stop(now, Why::Lease, remaining);
            }
            OnLost::Signal(signal) => self.actions.push(Action::Send(signal)),
            OnLost::Warn => {}
        }
    }

    fn lose(&mut self, now: Boottime, cause: LossCause) {
        self.actions.push(Action::Tell(Notice::Lost(cause.clone())));
        let told = matches!(cause, LossCause::ToldByStore(_));
        self.lost = Some(cause);
        match self.rules.on_lost {
            OnLost::Kill if told => {
                let grace = self.rules.grace.min(GRACE_WHEN_TOLD);
                self.begin_stop(now, Why::Lease, grace);
            }
            // Too late for grace: somebody else may hold the lock.
            OnLost::Kill => {
                self.begin_stop(now, Why::Lease, Duration::ZERO);
            }
            OnLost::Signal(signal) if !self.warned => self.actions.push(Action::Send(signal)),
            OnLost::Signal(_) | OnLost::Warn => {}
        }
        self.warned = true;
    }

    fn renewed(&mut self) {
        match &mut self.stop {
            Some(stop) if stop.why == Why::Lease && !stop.moved => {
                let kill_at = self.lease.valid_until;
                if kill_at > stop.kill_at {
                    stop.kill_at = kill_at;
                    stop.moved = true;
                }
            }
            Some(_) => {}
            // A new lease, a new warning.
            None => self.warned = false,
        }
    }
}
