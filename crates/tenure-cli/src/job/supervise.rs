//! The supervision of one job: starting it and waiting for whatever happens next.

use std::future::pending;
use std::io;

use rustix::process::{Pid, getpid, set_child_subreaper};

use super::boottime::{Boottime, Timer};
use super::group::Target;
use super::guard::{GuardEvent, GuardProcess};
use super::lease::Lease;
use super::notice::Reporter;
use super::plan::{JobEnd, JobPlan, Outcome, SpawnError, Status};
use super::signals::{Arrived, Signals};
use super::spawn::{Cradle, spawn};
use super::supervisor::{Rules, Supervisor};
use super::terminal::Terminal;

/// How often a guard that dies is replaced before the job is ended instead.
pub(super) const MOST_GUARDS: u32 = 10;

/// Runs a job under a lease and returns when it and its whole group are gone, so that the lock may
/// be released.
///
/// Not guaranteed: that descendants which left the group are gone, and anything about time if this
/// future is not polled (then the guard process sees to the deadline, without a TERM before).
///
/// Must be polled on a thread that outlives the job, with a current-thread runtime on the main
/// thread: the job is killed when the *thread* that started it ends. Makes this process a child
/// subreaper and reaps every child it has or gets.
pub async fn run(
    plan: JobPlan,
    signals: &mut Signals,
    lease: Lease,
    reporter: &dyn Reporter,
) -> JobEnd {
    match Running::start(plan, signals, lease, reporter) {
        Ok(running) => running.until_gone().await,
        Err(outcome) => JobEnd {
            outcome,
            orphans: Vec::new(),
            asked_to_end: false,
            guard: None,
        },
    }
}

/// A job that runs.
pub(super) struct Running<'a> {
    pub(super) plan: JobPlan,
    pub(super) target: Target,
    pub(super) guard: Option<GuardProcess>,
    pub(super) guards_left: u32,
    pub(super) terminal: Option<Terminal>,
    /// The job has had the terminal, so it gets it back with `fg`.
    pub(super) had_terminal: bool,
    pub(super) supervisor: Supervisor,
    pub(super) signals: &'a mut Signals,
    pub(super) lease: Lease,
    /// Somebody may still change the lease.
    lease_open: bool,
    pub(super) reporter: &'a dyn Reporter,
    timer: Timer,
    /// How the job's leader ended, which stays a zombie until its group is empty: so nobody else
    /// can get its number.
    pub(super) ended: Option<Ended>,
    /// The job was sent HUP because it wanted a terminal that nobody can give it.
    pub(super) hung_up: bool,
    pub(super) asked_to_end: bool,
}

/// A job whose leader has ended.
pub(super) struct Ended {
    pub(super) status: Status,
    pub(super) at: Boottime,
    /// Who was left, once that has been looked into.
    pub(super) orphans: Option<Vec<Pid>>,
    /// When to look for survivors again.
    pub(super) look_again: Boottime,
}

enum Wake {
    Lease(bool),
    Guard(GuardEvent),
    Signal(Arrived),
    Timer,
}

impl<'a> Running<'a> {
    fn start(
        plan: JobPlan,
        signals: &'a mut Signals,
        mut lease: Lease,
        reporter: &'a dyn Reporter,
    ) -> Result<Self, Outcome> {
        let now = Boottime::now();
        let rules = Rules {
            grace: plan.grace,
            on_lost: plan.on_lost,
            hold_until: plan
                .hold_at_most
                .map_or(Boottime::NEVER, |most| now.plus(most)),
            shares_group: plan.foreground,
        };
        let supervisor = Supervisor::new(rules, lease.borrow_and_update().clone());
        if let Some(cause) = supervisor.too_late_to_start(now) {
            return Err(Outcome::Lost {
                cause,
                status: None,
                in_time: true,
            });
        }
        let refuse = |error: io::Error| Outcome::NotStarted(SpawnError::Supervision(error));
        let timer = Timer::new().map_err(refuse)?;
        signals.catch_job_control().map_err(refuse)?;
        set_child_subreaper(Some(getpid())).map_err(|error| refuse(error.into()))?;
        let terminal = Terminal::open();
        let had_terminal =
            !plan.foreground && terminal.as_ref().is_some_and(Terminal::is_ours_alone);
        let (target, guard) = launch(
            &plan,
            supervisor.guard_deadline(),
            terminal.as_ref().filter(|_| had_terminal),
        )
        .map_err(Outcome::NotStarted)?;
        Ok(Self {
            plan,
            target,
            guard: Some(guard),
            guards_left: MOST_GUARDS,
            terminal,
            had_terminal,
            supervisor,
            signals,
            lease,
            lease_open: true,
            reporter,
            timer,
            ended: None,
            hung_up: false,
            asked_to_end: false,
        })
    }

    async fn until_gone(mut self) -> JobEnd {
        loop {
            // The lease and the guard before the job's status: a job that was killed because the
            // lease ran out did not die by itself.
            self.hear_guard();
            let now = Boottime::now();
            let status = self.lease.borrow_and_update().clone();
            let actions = self.supervisor.lease_changed(now, status);
            self.carry_out(actions);
            self.look_at_children();
            if self.all_gone()
                && let Some(ended) = self.ended.take()
            {
                return self.finish(ended);
            }
            match self.next_wake().await {
                Wake::Lease(open) => self.lease_open = open,
                Wake::Guard(event) => self.heard_guard(event),
                Wake::Signal(arrived) => self.signal_arrived(arrived),
                Wake::Timer => {}
            }
        }
    }

    async fn next_wake(&mut self) -> Wake {
        let at = match &self.ended {
            Some(ended) => self.supervisor.wake_at().min(ended.look_again),
            None => self.supervisor.wake_at(),
        };
        let guard = async {
            match &self.guard {
                Some(guard) => guard.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = self.lease.changed(), if self.lease_open => Wake::Lease(changed.is_ok()),
            event = guard => Wake::Guard(event),
            Ok(arrived) = self.signals.next() => Wake::Signal(arrived),
            Ok(()) = self.timer.until(at) => Wake::Timer,
        }
    }
}

/// Starts a guard and, armed with it, the job.
fn launch(
    plan: &JobPlan,
    deadline: Boottime,
    terminal: Option<&Terminal>,
) -> Result<(Target, GuardProcess), SpawnError> {
    let guard = GuardProcess::start(&plan.guard_program, &plan.keep_open)
        .map_err(SpawnError::Supervision)?;
    let cradle = Cradle {
        guard: guard.line(),
        deadline,
        terminal: terminal.map(Terminal::descriptor),
    };
    match spawn(plan, &cradle) {
        Ok(target) => Ok((target, guard)),
        Err(error) => {
            drop(guard.dismiss());
            if let Some(terminal) = terminal {
                terminal.take_back_from_nobody();
            }
            Err(error)
        }
    }
}
