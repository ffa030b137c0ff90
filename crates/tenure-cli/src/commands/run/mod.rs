//! `tenure run`: take the lock, run the command under it, give the lock back. `tenure elect` is the same, and
//! waits in line again after a lease was lost.

mod ending;
mod held;
mod lease_status;
mod nested;
mod notices;
mod supervision;

use serde_json::json;
use tenure::clock::SystemClock;
use tenure::core::Moment;

use self::ending::Ending;
use super::interrupted;
use crate::args::{IfBusy, JsonTarget};
use crate::exit::Exit;
use crate::job::{self, Signals};
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::events::{self, End, Events};
use crate::output::failure::{Failure, Result};
use crate::output::view::milliseconds;
use crate::session::{Session, Tie};
use crate::settings::environment::Inherited;
use crate::settings::run::{AfterLoss, RunSettings};
use crate::store_choice::StoreChoice;
use crate::taking::{Taken, Taking};

/// Runs the command; every way out writes the last event.
///
/// # Errors
/// Says why the command was not run, or was ended.
pub fn execute(
    json: Option<&JsonTarget>,
    settings: impl FnOnce() -> Result<RunSettings>,
    store: Option<&str>,
    output: Output,
) -> Result<Exit> {
    let events = Events::open(json)?;
    let events_on_stderr = json == Some(&JsonTarget::Descriptor(2));
    let output = if events_on_stderr {
        output.silenced()
    } else {
        output
    };
    let asked = SystemClock::read();
    let executed = settings().and_then(|settings| execute_with(&settings, store, output, &events));
    match executed {
        Ok(exit) => Ok(exit),
        Err(failure) => {
            events.end(&End {
                outcome: failure.code.outcome(),
                waited_ms: milliseconds(SystemClock::read().since(asked)),
                exit_code: failure.exit.code(),
                error: Some(events::failure(&failure)),
                ..End::default()
            });
            if events_on_stderr {
                Ok(failure.exit)
            } else {
                Err(failure)
            }
        }
    }
}

fn execute_with(
    settings: &RunSettings,
    store: Option<&str>,
    output: Output,
    events: &Events,
) -> Result<Exit> {
    let choice = StoreChoice::resolve(store)?;
    choice.check_shared()?;
    let inherited = Inherited::read();
    choice.check_parent(&inherited)?;
    choice.remark(&output);
    if let Some(remark) = settings.long_ttl_remark() {
        output.hint(&remark);
    }
    if inherited.holds(&settings.lock.name) {
        return nested::execute(settings, &inherited, choice, output);
    }
    super::runtime()?.block_on(async {
        let asked = SystemClock::read();
        let session = Session::open_patiently(choice, settings.lock.wait, output).await?;
        let run = Run {
            settings,
            asked,
            session: &session,
            inherited,
            output,
            events,
        };
        run.go().await
    })
}

struct Run<'a> {
    settings: &'a RunSettings,
    asked: Moment,
    session: &'a Session,
    inherited: Inherited,
    output: Output,
    events: &'a Events,
}

/// What follows from a term.
enum Next {
    Exit(Exit),
    Campaign,
}

impl Run<'_> {
    async fn go(mut self) -> Result<Exit> {
        let mut signals = caught_signals()?;
        loop {
            match self.term(&mut signals).await? {
                Next::Exit(exit) => return Ok(exit),
                Next::Campaign => {
                    self.asked = SystemClock::read();
                    // Those that matter only while a job runs would end the wait.
                    let fresh = caught_signals()?;
                    let mut before = std::mem::replace(&mut signals, fresh);
                    if let Some(arrived) = before.asked_to_end() {
                        return Ok(self.give_up(arrived));
                    }
                }
            }
        }
    }

    /// From asking for the lock to giving it back.
    async fn term(&self, signals: &mut Signals) -> Result<Next> {
        if let Some(end) = self.look_at_record().await {
            return end.map(Next::Exit);
        }
        let guard = match self.take(signals).await {
            Ok(Taken::Held(guard)) => guard,
            Ok(Taken::Interrupted(arrived)) => return Ok(Next::Exit(self.give_up(arrived))),
            Err(failure) if failure.code == Code::Busy => {
                return self.busy(failure).map(Next::Exit);
            }
            Err(failure) => return Err(failure),
        };
        let held = match self.begin(guard).await {
            Ok(held) => held,
            Err(end) => return end.map(Next::Exit),
        };
        let guard = held.guard();
        let granted = SystemClock::read();
        let name = self.settings.lock.name.as_str();
        let fence = guard.fence().to_string();
        let waited_ms = self.waited_ms();
        self.output
            .detail(&format!("got {name:?} after {waited_ms} ms, fence {fence}"));
        self.events.write(
            "acquired",
            json!({ "name": name, "fence": fence, "waited_ms": waited_ms }),
        );
        let end = self.supervise(guard, signals).await;
        let held_for = SystemClock::read().since(granted);
        self.leave(held, &end, granted).await;
        let ending = Ending::of(&end, self.settings);
        if self.settings.after_loss == AfterLoss::Campaign
            && matches!(end.outcome, job::Outcome::Lost { .. })
            && !end.asked_to_end
        {
            self.stand_by(&ending);
            return Ok(Next::Campaign);
        }
        self.events.end(&End {
            outcome: ending.outcome,
            child_code: ending.child_code,
            signal: ending.signal,
            waited_ms,
            held_ms: milliseconds(held_for),
            fence: Some(fence),
            exit_code: ending.exit.code(),
            error: ending.failure.as_ref().map(events::failure),
        });
        if let Some(failure) = &ending.failure
            && !self.output.is_silenced()
        {
            self.output.failure(failure);
        }
        ending.die_if_the_job_did();
        Ok(Next::Exit(ending.exit))
    }

    /// After a lost lease, the next campaign begins.
    fn stand_by(&self, ending: &Ending) {
        let what = ending.failure.as_ref().map_or("", Failure::what);
        self.output.note(&format!("{what}; standing by"));
        self.events.write("standby", json!({}));
    }

    async fn take(&self, signals: &mut Signals) -> Result<Taken> {
        let settings = self.settings;
        let taking = Taking {
            session: self.session,
            lock: &settings.lock,
            asked: self.asked,
            ttl: settings.ttl,
            tie: Tie::DiesWithUs,
            output: self.output,
            progress: settings.progress,
            events: self.events,
        };
        taking.take(signals).await
    }

    fn give_up(&self, arrived: job::Arrived) -> Exit {
        self.events.end(&End {
            outcome: "interrupted",
            signal: Some(arrived.signal.as_raw()),
            waited_ms: self.waited_ms(),
            exit_code: Exit::of_signal(arrived.signal).code(),
            ..End::default()
        });
        interrupted(arrived)
    }

    fn waited_ms(&self) -> u64 {
        milliseconds(SystemClock::read().since(self.asked))
    }

    fn busy(&self, failure: Failure) -> Result<Exit> {
        if self.settings.if_busy == IfBusy::Fail {
            return Err(failure.exit(self.settings.exit_busy));
        }
        let why = failure
            .facts()
            .iter()
            .find(|(label, _)| matches!(*label, "held by" | "run by"));
        let why = why.map_or_else(String::new, |(label, text)| format!(" ({label} {text})"));
        self.output
            .note(&format!("{}, skipped{why}", failure.what()));
        self.events.end(&End {
            outcome: "skipped",
            waited_ms: self.waited_ms(),
            error: Some(events::failure(&failure)),
            ..End::default()
        });
        Ok(Exit::Success)
    }
}

fn caught_signals() -> Result<Signals> {
    Signals::install()
        .map_err(|error| Failure::new(Code::System, format!("cannot catch signals: {error}")))
}
