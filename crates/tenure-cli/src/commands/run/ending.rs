//! How a run ended: exit code, the words for it, and the record in the last event.

use crate::exit::Exit;
use crate::job::{self, JobEnd, LossCause, Outcome, Signal, SpawnError, Status};
use crate::output::codes::Code;
use crate::output::failure::Failure;
use crate::output::human;
use crate::settings::run::RunSettings;

/// What follows from the end of a job.
#[derive(Debug)]
pub(super) struct Ending {
    /// For the shell.
    pub(super) exit: Exit,
    /// For the last event.
    pub(super) outcome: &'static str,
    /// What the command returned, if it did.
    pub(super) child_code: Option<i32>,
    /// What signal ended it, if one did.
    pub(super) signal: Option<i32>,
    /// For the user, unless all went well.
    pub(super) failure: Option<Failure>,
    dies_of: Option<Signal>,
}

impl Ending {
    /// Judges the end of a job.
    pub(super) fn of(end: &JobEnd, settings: &RunSettings) -> Self {
        match &end.outcome {
            Outcome::Ended(status) => Self::natural(*status),
            Outcome::Lost {
                cause,
                status,
                in_time,
            } => Self::lost(cause, *status, *in_time, settings),
            Outcome::HoldAtMost(status) => {
                let limit = human::duration(settings.hold_at_most.unwrap_or_default());
                let what = format!(
                    "{:?} was held for {limit}, as long as it may be",
                    settings.lock.name.as_str()
                );
                let failure = Failure::new(Code::HeldTooLong, what);
                Self::failed("hold_at_most", Some(*status), failure)
            }
            Outcome::Unguarded(status) => {
                let what =
                    "the guard process died and could not be replaced; the command was ended";
                Self::failed("unguarded", Some(*status), Failure::new(Code::Bug, what))
            }
            Outcome::NotStarted(error) => Self::not_started(error, settings),
        }
    }

    /// After ^C a loop in the shell stops only if the signal is what ended us too.
    pub(super) fn die_if_the_job_did(&self) {
        if let Some(signal) = self.dies_of {
            job::die_of(signal);
        }
    }

    fn natural(status: Status) -> Self {
        let exit = Exit::Code(status.exit_code());
        let outcome = if status == Status::Exited(0) {
            "ok"
        } else {
            "child_failed"
        };
        let dies_of = match status {
            Status::Signalled(number) if number == Signal::INT.as_raw() => Some(Signal::INT),
            Status::Signalled(number) if number == Signal::QUIT.as_raw() => Some(Signal::QUIT),
            _ => None,
        };
        let (child_code, signal) = parts(Some(status));
        Self {
            exit,
            outcome,
            child_code,
            signal,
            failure: None,
            dies_of,
        }
    }

    fn lost(
        cause: &LossCause,
        status: Option<Status>,
        in_time: bool,
        settings: &RunSettings,
    ) -> Self {
        let name = settings.lock.name.as_str();
        let what = format!("the lease of {name:?} was lost");
        let because = match cause {
            LossCause::Expired => {
                "it could not be renewed in time: the store was out of reach, or \
                                   this machine or process was stopped"
                    .to_owned()
            }
            LossCause::ToldByStore(how) => how.clone(),
        };
        let mut failure = Failure::new(Code::Lost, what)
            .exit(settings.exit_lost)
            .fact("because", because);
        failure = match (status, in_time) {
            (None, _) => failure.fact("command", "was not started"),
            (Some(_), true) => {
                failure.fact("command", "was gone before anybody else could get the lock")
            }
            (Some(_), false) => failure.fact("command", "may have overlapped with the next holder"),
        };
        if *cause == LossCause::Expired {
            let longer = human::duration(settings.ttl.duration() * 4);
            failure = failure.help(format!(
                "a longer lease sits out longer outages: --ttl {longer}"
            ));
        }
        Self::failed("lost", status, failure)
    }

    fn not_started(error: &SpawnError, settings: &RunSettings) -> Self {
        let path = settings.program.path.display();
        let (code, what) = match error {
            SpawnError::NotFound(why) => (
                Code::CommandNotFound,
                format!("cannot execute '{path}': {why}"),
            ),
            SpawnError::NotExecutable(why) => (
                Code::CommandNotExecutable,
                format!("cannot execute '{path}': {why}"),
            ),
            SpawnError::Supervision(_) => (Code::Bug, error.to_string()),
        };
        let mut failure = Failure::new(code, what);
        let missing = matches!(error, SpawnError::NotExecutable(why) | SpawnError::NotFound(why)
            if why.kind() == std::io::ErrorKind::NotFound);
        if missing && settings.program.path.exists() {
            failure = failure.help("its first line (#!) names an interpreter that does not exist");
        }
        Self::failed(code.outcome(), None, failure)
    }

    fn failed(outcome: &'static str, status: Option<Status>, failure: Failure) -> Self {
        let (child_code, signal) = parts(status);
        let exit = failure.exit;
        Self {
            exit,
            outcome,
            child_code,
            signal,
            failure: Some(failure),
            dies_of: None,
        }
    }
}

fn parts(status: Option<Status>) -> (Option<i32>, Option<i32>) {
    match status {
        Some(Status::Exited(code)) => (Some(code), None),
        Some(Status::Signalled(signal)) => (None, Some(signal)),
        None => (None, None),
    }
}
