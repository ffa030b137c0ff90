//! The lock while it is held: plain, or together with a run that is counted once per period; and how it
//! is given back.

use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::core::{Error, Moment};
use tenure::{Guard, OnceGuard, OncePer, Turn};

use super::Run;
use crate::exit::Exit;
use crate::job::{JobEnd, Outcome, Status};
use crate::output::complaints;
use crate::output::failure::Result;
use crate::output::human;

/// How long to try to give the lock back before leaving that to the end of the lease.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);
/// How long to try to find out whether somebody has run it in this period.
const BEGIN_LIMIT: Duration = Duration::from_secs(8);

/// A lock that is held.
pub(super) enum Held {
    /// As it is.
    Plain(Guard),
    /// For a run that is counted.
    Once(Box<OnceGuard>),
}

/// What is left to do at the end.
enum Leaving {
    Release(Guard),
    Keep(Guard, Duration),
    Tell(Box<OnceGuard>, std::result::Result<(), String>),
}

impl Held {
    /// The guard of the lock.
    pub(super) fn guard(&self) -> &Guard {
        match self {
            Self::Plain(guard) => guard,
            Self::Once(turn) => turn.guard(),
        }
    }
}

impl Run<'_> {
    /// `--once-per`, if that was asked for.
    pub(super) fn once(&self) -> Option<OncePer> {
        let settings = self.settings;
        let once = settings.once.as_ref();
        once.map(|once| self.session.once_per(&settings.lock, settings.ttl, once))
    }

    /// Whether somebody has run it in this period, before we wait for whoever runs it now.
    pub(super) async fn look_at_record(&self) -> Option<Result<Exit>> {
        let once = self.once()?;
        // Taking the lock sits out an outage, and then it is looked at again.
        let counted = self.session.within(BEGIN_LIMIT, once.counted()).await;
        counted.ok().flatten().map(|run| self.counted(&once, &run))
    }

    /// Makes sure that nobody has run it in this period; `Err` is how to end if somebody has.
    pub(super) async fn begin(&self, guard: Guard) -> std::result::Result<Held, Result<Exit>> {
        let Some(once) = self.once() else {
            return Ok(Held::Plain(guard));
        };
        let turn = self
            .session
            .within(BEGIN_LIMIT, once.begin_under(guard))
            .await;
        match turn {
            Ok(Turn::Yours(turn)) => Ok(Held::Once(Box::new(turn))),
            Ok(Turn::Counted(run)) => Err(self.counted(&once, &run)),
            Err(failure) => {
                self.session.settle().await;
                Err(Err(failure))
            }
        }
    }

    fn counted(&self, once: &OncePer, run: &tenure::CountedRun) -> Result<Exit> {
        let name = &self.settings.lock.name;
        let record = once.record_name();
        self.busy(complaints::counted(
            name,
            run,
            &record,
            self.session.choice(),
        ))
    }

    /// Gives the lock back, or leaves it for the rest of `--hold-at-least`, and counts the run. Whatever
    /// happens here, the command has had its result; a lease that cannot be given back ends by itself.
    pub(super) async fn leave(&self, held: Held, end: &JobEnd, granted: Moment) {
        let lost = matches!(end.outcome, Outcome::Lost { .. });
        let leaving = self.leaving(held, end, granted);
        let what = match &leaving {
            Leaving::Release(_) => "give the lock back",
            Leaving::Keep(..) => "keep the lock for --hold-at-least",
            Leaving::Tell(_, Ok(())) => "count the run, so that somebody may run it again,",
            Leaving::Tell(_, Err(_)) => "write down how the run ended",
        };
        let result = self
            .session
            .within(RELEASE_LIMIT, leaving.carry_out())
            .await;
        if let (Err(error), false) = (result, lost) {
            let ttl = human::duration(self.settings.ttl.duration());
            let error = error.without(&self.session.choice().url.secrets());
            self.output.warn(&format!(
                "could not {what} ({}); the lease ends by itself within {ttl}",
                error.what()
            ));
        }
        self.session.settle().await;
    }

    fn leaving(&self, held: Held, end: &JobEnd, granted: Moment) -> Leaving {
        let guard = match held {
            Held::Once(turn) => return Leaving::Tell(turn, ending(end)),
            Held::Plain(guard) => guard,
        };
        let passed = SystemClock::read().since(granted);
        let least = self.settings.hold_at_least.unwrap_or_default();
        let rest = least.saturating_sub(passed);
        match end.outcome {
            Outcome::Lost { .. } | Outcome::NotStarted(_) => Leaving::Release(guard),
            _ if rest.is_zero() => Leaving::Release(guard),
            _ => Leaving::Keep(guard, rest),
        }
    }
}

impl Leaving {
    async fn carry_out(self) -> std::result::Result<(), Error> {
        match self {
            Self::Release(guard) => guard.release().await,
            Self::Keep(guard, rest) => guard.leave_for(rest).await.map(drop),
            Self::Tell(turn, Ok(())) => turn.succeeded().await,
            Self::Tell(turn, Err(how)) => turn.failed(&how).await,
        }
    }
}

/// How a counted run ended, for those who come later.
fn ending(end: &JobEnd) -> std::result::Result<(), String> {
    match &end.outcome {
        Outcome::Ended(Status::Exited(0)) => Ok(()),
        Outcome::Ended(Status::Exited(code)) => Err(format!("exit code {code}")),
        Outcome::Ended(Status::Signalled(signal)) => Err(format!("died of signal {signal}")),
        Outcome::Lost { .. } => Err("the lease was lost".into()),
        Outcome::HoldAtMost(_) => Err("it took longer than --hold-at-most".into()),
        Outcome::Unguarded(_) => Err("it could not be watched over".into()),
        Outcome::NotStarted(error) => Err(error.to_string()),
    }
}
