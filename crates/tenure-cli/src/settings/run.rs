//! What `tenure run` was asked to do: times that fit together, a command that exists.

use std::time::Duration;

use tenure::core::Ttl;

use crate::args::{Count, ElectArgs, IfBusy, JobArgs, OnLost, Orphans, RunArgs};
use crate::exit::Exit;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::output::human;
use crate::output::view::HOLD_AT_LEAST;
use crate::program::Program;

use super::lock::LockSettings;

/// A run, checked.
#[derive(Debug)]
pub struct RunSettings {
    /// The lock.
    pub lock: LockSettings,
    /// The command.
    pub program: Program,
    /// Length of the lease.
    pub ttl: Ttl,
    /// From TERM to KILL.
    pub grace: Duration,
    /// What to do when the lock is busy.
    pub if_busy: IfBusy,
    /// What to do when the lease is lost.
    pub on_lost: OnLost,
    /// Only once per period, if that was asked for.
    pub once: Option<OnceSettings>,
    /// What follows when the lease was lost.
    pub after_loss: AfterLoss,
    /// Minimal time to keep the lock.
    pub hold_at_least: Option<Duration>,
    /// Maximal time for the command.
    pub hold_at_most: Option<Duration>,
    /// Keep the command in our process group.
    pub foreground: bool,
    /// What to do with processes that the command left.
    pub orphans: Orphans,
    /// Run under a parent's lock.
    pub inherit: bool,
    /// Tell the command the store.
    pub pass_store: bool,
    /// The exit code for busy.
    pub exit_busy: Exit,
    /// The exit code for a lost lease.
    pub exit_lost: Exit,
    /// Draw a live line on a terminal.
    pub progress: bool,
}

/// What follows when a lease was lost and the command has ended because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    /// `run`: exit 79.
    Exit,
    /// `elect`: wait in line again.
    Campaign,
}

/// `--once-per` and what belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct OnceSettings {
    /// How long a run counts.
    pub period: Duration,
    /// The period begins with the run.
    pub sliding: bool,
    /// How much later an aligned period begins.
    pub offset: Duration,
    /// What counts.
    pub count: Count,
}

impl RunSettings {
    /// What was typed after `tenure run`, checked; finds the command, so that a typo costs nobody a wait.
    ///
    /// # Errors
    /// 64 if something does not make sense, 126 or 127 if there is no such command.
    pub fn new(args: RunArgs) -> Result<Self> {
        if args.hold_at_most == Some(Duration::ZERO) {
            return Err(Failure::new(
                Code::Usage,
                "--hold-at-most is zero: nothing could run",
            ));
        }
        if let Some(least) = args.hold_at_least {
            super::ttl(least.max(Ttl::MIN.duration()))?;
        }
        let once = args.once_per.map(|period| OnceSettings {
            period,
            sliding: args.sliding,
            offset: args.offset.unwrap_or_default(),
            count: args.count,
        });
        if let Some(once) = &once {
            period(once.period)?;
            // The record of the run is kept beside the lock, under a longer name.
            super::lock_name(&format!("~once:{}", args.name))?;
        }
        let mut lock = LockSettings::new(&args.name, &args.lock)?;
        if let Some(least) = args.hold_at_least {
            // Long after this process has ended, somebody may wonder who holds it.
            lock = lock.remarked(&format!("{HOLD_AT_LEAST}{}", human::duration(least)));
        }
        Ok(Self {
            if_busy: args.if_busy,
            on_lost: args.on_lost,
            once,
            hold_at_least: args.hold_at_least,
            hold_at_most: args.hold_at_most,
            inherit: args.inherit,
            exit_busy: args.exit_busy.map_or(Exit::Busy, Exit::Code),
            exit_lost: args.exit_lost.map_or(Exit::Lost, Exit::Code),
            ..Self::plain(lock, args.ttl, args.job)?
        })
    }

    /// The same for `tenure elect`: leading is running under a lock that is waited for.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_election(args: ElectArgs) -> Result<Self> {
        let lock = LockSettings::exclusive(&args.name, &args.party)?;
        Ok(Self {
            after_loss: AfterLoss::Campaign,
            ..Self::plain(lock, args.ttl, args.job)?
        })
    }

    /// A command under a lock, with nothing else asked for.
    fn plain(lock: LockSettings, ttl: Duration, job: JobArgs) -> Result<Self> {
        Ok(Self {
            lock,
            grace: grace(ttl, job.grace)?,
            ttl: super::ttl(ttl)?,
            program: match job.shell {
                Some(string) => Program::shell(string),
                None => Program::find(&job.command)?,
            },
            if_busy: IfBusy::Fail,
            on_lost: OnLost::Kill,
            once: None,
            after_loss: AfterLoss::Exit,
            hold_at_least: None,
            hold_at_most: None,
            foreground: job.foreground,
            orphans: job.orphans,
            inherit: false,
            pass_store: job.pass_store,
            exit_busy: Exit::Busy,
            exit_lost: Exit::Lost,
            progress: !job.no_progress,
        })
    }

    /// What a person should know about an unusually long lease.
    pub fn long_ttl_remark(&self) -> Option<String> {
        (self.ttl.duration() > Duration::from_secs(600)).then(|| {
            format!(
                "a crash would block others for up to {}; leases renew by themselves, 30s is enough",
                human::duration(self.ttl.duration())
            )
        })
    }
}

// It is kept as a lease of that length.
fn period(period: Duration) -> Result<()> {
    if period <= Ttl::MAX.duration() {
        return super::ttl(period).map(drop);
    }
    let days = Ttl::MAX.duration().as_secs() / 86_400;
    let what = format!(
        "a period of {} is too long for --once-per: at most {days}d",
        human::duration(period)
    );
    Err(Failure::new(Code::Usage, what))
}

// The command must have time to end between the first missed renewal and the end of the lease.
fn grace(ttl: Duration, asked: Option<Duration>) -> Result<Duration> {
    let grace = asked.unwrap_or_else(|| Duration::from_secs(10).min(ttl / 3));
    let margin = (ttl / 100).max(Duration::from_millis(50));
    if grace + margin < ttl - ttl / 3 {
        return Ok(grace);
    }
    let (grace_text, ttl_text) = (human::duration(grace), human::duration(ttl));
    let enough = grace.saturating_mul(3).as_secs_f64().ceil();
    let enough = Duration::try_from_secs_f64(enough).unwrap_or(Duration::MAX);
    Err(Failure::new(
        Code::Usage,
        format!("--grace {grace_text} does not fit in a lease of {ttl_text}"),
    )
    .help(format!(
        "use --ttl {}, or a shorter --grace",
        human::duration(enough)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn grace_is_ten_seconds_but_at_most_a_third_of_the_lease() {
        assert_eq!(grace(SECOND * 30, None).expect("fits"), SECOND * 10);
        assert_eq!(grace(SECOND * 6, None).expect("fits"), SECOND * 2);
        assert_eq!(grace(SECOND * 600, None).expect("fits"), SECOND * 10);
    }

    #[test]
    fn a_grace_that_does_not_fit_names_a_ttl_that_does() {
        let failure = grace(SECOND * 30, Some(SECOND * 25)).expect_err("too long");
        assert_eq!(failure.what(), "--grace 25s does not fit in a lease of 30s");
        assert!(failure.facts()[0].1.contains("--ttl 1m15s"));
        assert!(grace(SECOND * 75, Some(SECOND * 25)).is_ok());
    }
}
