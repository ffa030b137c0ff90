//! Getting the lock: asking once or waiting, telling the story meanwhile, giving up on a signal.

use std::time::Duration;

use serde_json::json;
use tenure::clock::SystemClock;
use tenure::core::{Error, ErrorKind, Moment, Ttl};
use tenure::{Blocked, Guard, WaitReport};
use tokio::sync::watch;

use crate::job::{Arrived, Signals};
use crate::output::codes::Code;
use crate::output::events::Events;
use crate::output::failure::{Failure, Result};
use crate::output::view::{Holder, who};
use crate::output::waiting::{Recovering, WaitLine, WaitView};
use crate::output::{Output, complaints, human};
use crate::session::{Session, Tie};
use crate::settings::lock::LockSettings;

/// What came of asking.
pub enum Taken {
    /// We hold it.
    Held(Guard),
    /// A signal ended the wait; nothing of ours is left in the store.
    Interrupted(Arrived),
}

/// How to ask.
pub struct Taking<'a> {
    /// The connection.
    pub session: &'a Session,
    /// What is wanted.
    pub lock: &'a LockSettings,
    /// Since when: connecting is part of the wait.
    pub asked: Moment,
    /// For how long.
    pub ttl: Ttl,
    /// Whether the hold ends with this process.
    pub tie: Tie,
    /// Where to say what.
    pub output: Output,
    /// Whether a live line may be drawn.
    pub progress: bool,
    /// Where events go.
    pub events: &'a Events,
}

impl Taking<'_> {
    /// Asks, and waits if that was wanted.
    ///
    /// # Errors
    /// 75 if the lock is busy, 69 if the store cannot be asked, 64 if the name is in use otherwise.
    pub async fn take(&self, signals: &mut Signals) -> Result<Taken> {
        self.remark_on_length();
        let (report, mut reports) = watch::channel(WaitReport::default());
        let limit = self.lock.wait.limit();
        let wait = self.lock.wait.less(SystemClock::read().since(self.asked));
        let taken = {
            let acquiring = self
                .session
                .acquire(self.lock, self.ttl, self.tie, wait, report);
            tokio::pin!(acquiring);
            let mut story = Story::new(self, limit);
            loop {
                tokio::select! {
                    biased;
                    result = &mut acquiring => break Ok((result, story.end())),
                    arrived = signals.next() => break Err(arrived),
                    Ok(()) = reports.changed() => story.hear(&reports.borrow()),
                    () = self.session.clock().sleep(story.pause()) => story.go_on(&reports.borrow()),
                }
            }
        };
        match taken {
            Ok((Ok(guard), age)) => {
                if vanished(&reports.borrow(), age) {
                    self.output
                        .hint("the previous holder vanished; its lease ran out");
                }
                Ok(Taken::Held(guard))
            }
            Ok((Err(error), age)) => {
                // A wait that ran out has asked for its place to be removed; see that it happens,
                // unless the store does not answer: then it ends by itself, and we end on time.
                if error.kind() != ErrorKind::Unavailable {
                    self.session.settle().await;
                }
                Err(self.failure(&error, &reports.borrow(), age))
            }
            Err(arrived) => {
                self.session.settle().await;
                let arrived = arrived.map_err(|error| {
                    Failure::new(Code::System, format!("cannot read signals: {error}"))
                })?;
                Ok(Taken::Interrupted(arrived))
            }
        }
    }

    /// A lease that a server which forgot it may give away is worth a word.
    fn remark_on_length(&self) {
        let longest = self.session.longest_protected_lease();
        if let Some(longest) = longest.filter(|longest| self.ttl > *longest) {
            let (ttl, longest) = (self.ttl.duration(), longest.duration());
            let (ttl, longest) = (human::duration(ttl), human::duration(longest));
            self.output.note(&format!(
                "if the server forgets it, a lease of {ttl} may be given to somebody else: {longest} are \
                 protected, or what ?max_ttl= says in everybody's store URL"
            ));
        }
    }

    fn failure(&self, error: &Error, report: &WaitReport, age: Duration) -> Failure {
        match &report.blocked {
            Some(blocked) if error.kind() == ErrorKind::Busy => {
                let now = blocked.now.plus(age);
                complaints::busy(
                    &self.lock.name,
                    self.lock.mode,
                    &Blocked {
                        now,
                        ..blocked.clone()
                    },
                    self.session.choice(),
                )
            }
            _ if error.kind() == ErrorKind::Unavailable => self.unanswered(error, report),
            _ => complaints::of_error(error, self.session.choice()),
        }
    }

    /// The wait ran out, and the store has not said that the lock is busy.
    fn unanswered(&self, error: &Error, report: &WaitReport) -> Failure {
        let choice = self.session.choice();
        match (self.lock.wait.limit(), &report.silence) {
            (Some(wait), Some(silence)) => {
                complaints::of_error(&silence.error, choice).fact("waited", human::duration(wait))
            }
            (Some(wait), None) if !wait.is_zero() => complaints::wait_over(wait, choice),
            _ => complaints::of_error(error, choice),
        }
    }
}

/// What is told while we wait.
struct Story<'a> {
    taking: &'a Taking<'a>,
    line: WaitLine,
    started: Moment,
    answered: Moment,
    told_events: bool,
}

impl<'a> Story<'a> {
    fn new(taking: &'a Taking<'a>, limit: Option<Duration>) -> Self {
        let name = taking.lock.name.as_str();
        let line = WaitLine::new(taking.output, name, limit, taking.progress);
        let now = SystemClock::read();
        Self {
            taking,
            line,
            started: taking.asked,
            answered: now,
            told_events: false,
        }
    }

    fn waited(&self) -> Duration {
        SystemClock::read().since(self.started)
    }

    fn pause(&self) -> Duration {
        self.line.pause(self.waited())
    }

    /// The store has answered, or has failed to.
    fn hear(&mut self, report: &WaitReport) {
        if report.silence.is_some() {
            return;
        }
        self.answered = SystemClock::read();
        if let (Some(blocked), false) = (&report.blocked, self.told_events) {
            self.told_events = true;
            let holders: Vec<Holder> = blocked
                .contention
                .holders
                .iter()
                .map(|one| Holder::new(one, blocked.now))
                .collect();
            let name = self.taking.lock.name.as_str();
            self.taking
                .events
                .write("waiting", json!({ "name": name, "holders": holders }));
        }
    }

    /// Removes the line; answers how long ago the store was last heard of.
    fn end(&mut self) -> Duration {
        self.line.clear();
        SystemClock::read().since(self.answered)
    }

    fn go_on(&mut self, report: &WaitReport) {
        self.line.tick(&view(report, self.answered), self.waited());
    }
}

/// Whether the holder we last heard of had not renewed its lease when that ended.
fn vanished(report: &WaitReport, age: Duration) -> bool {
    report.blocked.as_ref().is_some_and(|blocked| {
        let expiry = blocked.contention.next_expiry;
        expiry.is_some_and(|expiry| age >= expiry.since(blocked.now))
    })
}

fn view(report: &WaitReport, answered: Moment) -> WaitView {
    let now = SystemClock::read();
    let mut view = WaitView {
        store_trouble: report.silence.as_ref().map(|silence| {
            // Why a store is out of reach matters less than that it is; why it refuses, more.
            let reason = match silence.error.kind() {
                ErrorKind::Unavailable => None,
                _ => Some(silence.error.message().to_owned()),
            };
            (now.since(silence.since), reason)
        }),
        ..WaitView::default()
    };
    if let Some(blocked) = &report.blocked {
        // The store's answer ages; what is shown goes on with our own clock.
        let age = now.since(answered);
        let contention = &blocked.contention;
        if let Some(holder) = contention.holders.first() {
            let held = blocked.held_for(holder).map(|held| held + age);
            view.holder = Some((who(holder), held));
        }
        view.more_holders = contention.holder_count.saturating_sub(1) as usize;
        let next = contention.next_expiry;
        view.lease_left = next.map(|expiry| expiry.since(blocked.now).saturating_sub(age));
        view.recovering = blocked
            .recovering()
            .map(|left| left.saturating_sub(age))
            .filter(|left| !left.is_zero())
            .map(|left| Recovering {
                left,
                restless: contention.restless,
            });
        view.place = blocked.ahead.map(|ahead| {
            let place = ahead as usize + 1;
            (place, place.max(contention.waiter_count as usize))
        });
    }
    view
}
