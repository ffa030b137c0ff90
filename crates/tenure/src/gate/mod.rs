//! [`Gates`]: tasks of one process that wait for one name queue here, and only the first of them
//! speaks to the store. However many wait, the store sees one waiter per process and name.
//!
//! While a hold may be handed on (a [`Run`], see `handover.rs`) nobody needs to speak: the next in
//! line gets it. When that is over, the next in line is called to speak.

mod warden;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tenure_core::{LockName, Moment, Party};
use tokio::sync::oneshot;

use crate::acquire::Blocked;
use crate::handover::{Baton, Likeness, Progress};
use crate::link::Link;

#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_name: Mutex<HashMap<LockName, Weak<Gate>>>,
}

/// Where the tasks of this process that want one name stand in line.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    turn: Whose,
    waiting: Waiting,
    /// What the first in line last heard from the store, for those behind it.
    news: Option<News>,
    runs: u64,
    /// Somebody sees to it that a run ends in time.
    watched: bool,
}

/// Whose turn it is.
#[derive(Debug, Default)]
enum Whose {
    /// Whoever comes first; nobody waits then.
    #[default]
    Nobody,
    /// Somebody speaks to the store.
    Speaker,
    /// Nobody speaks, because a hold of ours will be handed on.
    Run {
        number: u64,
        likeness: Likeness,
        progress: Progress,
    },
}

/// Those who wait, some of whom have given up.
#[derive(Debug, Default)]
struct Waiting(VecDeque<Place>);

/// One who waits, and what can be handed to it.
#[derive(Debug)]
struct Place {
    wants: Option<Likeness>,
    call: oneshot::Sender<Call>,
}

/// What the first in line is told. Dropped by whoever does not want it any more, it goes on to the
/// next, or back to the store.
#[derive(Debug)]
pub(crate) enum Call {
    /// Speak to the store.
    Speak(Turn),
    /// Here it is.
    Take(Baton),
}

/// What the first in line last heard.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// Somebody is in the way.
    Blocked(Blocked),
    /// A task of this process holds it.
    Ours(Party),
    /// The store cannot be asked, because of this.
    Silent(String),
}

/// The right to speak to the store for a name, until dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    /// `None` once it has become a run.
    gate: Option<Arc<Gate>>,
}

/// The right to hand a hold on to the next in line, until dropped. It ends by itself, too: after a
/// while the next in line is called to speak, and nothing can be handed on any more.
#[derive(Debug)]
pub(crate) struct Run {
    gate: Arc<Gate>,
    number: u64,
}

/// The next in line, which takes what is handed on, and how often that was done before.
#[derive(Debug)]
pub(crate) struct Next {
    call: oneshot::Sender<Call>,
    pub(crate) handed: u32,
}

impl Gates {
    /// The gate of this name.
    pub(crate) fn gate(&self, name: &LockName) -> Arc<Gate> {
        let mut gates = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(name).and_then(Weak::upgrade) {
            return gate;
        }
        if gates.len() >= 64 && gates.len().is_power_of_two() {
            gates.retain(|_, gate| gate.strong_count() > 0);
        }
        let gate = Arc::new(Gate::default());
        gates.insert(name.clone(), Arc::downgrade(&gate));
        gate
    }
}

impl Gate {
    /// Waits in line, first come first served. `wants` is what can be handed to us, if anything.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place up, and passes on whatever we were called for.
    pub(crate) async fn enter(self: &Arc<Self>, wants: Option<Likeness>, link: &Link) -> Call {
        loop {
            let called = match self.line_up(wants.clone(), link) {
                Ok(turn) => return Call::Speak(turn),
                Err(called) => called,
            };
            // Nobody drops a place without calling, unless it panicked: then stand in line again.
            if let Ok(call) = called.await {
                return call;
            }
        }
    }

    pub(crate) fn news(&self) -> Option<News> {
        let line = self.line();
        match &line.turn {
            Whose::Run { likeness, .. } => Some(News::Ours(likeness.party().clone())),
            Whose::Nobody | Whose::Speaker => line.news.clone(),
        }
    }

    fn line_up(
        self: &Arc<Self>,
        wants: Option<Likeness>,
        link: &Link,
    ) -> Result<Turn, oneshot::Receiver<Call>> {
        let mut line = self.line();
        if line.may_speak_at_once(wants.as_ref(), link) {
            return Ok(self.speak(&mut line));
        }
        let (call, called) = oneshot::channel();
        line.waiting.add(Place { wants, call });
        let warden = self.watch(&mut line, link);
        drop(line);
        if let Some(warden) = warden {
            warden.start(link);
        }
        Err(called)
    }

    fn speak(self: &Arc<Self>, line: &mut Line) -> Turn {
        line.turn = Whose::Speaker;
        // What our predecessor heard is no news any more.
        line.news = None;
        Turn {
            gate: Some(self.clone()),
        }
    }

    /// The turn passes on, from whoever has it, to the next in line.
    fn pass_on(self: &Arc<Self>, mut line: MutexGuard<'_, Line>) {
        let Some(place) = line.waiting.next() else {
            line.turn = Whose::Nobody;
            return;
        };
        let turn = self.speak(&mut line);
        // Whatever is not taken passes on as soon as it is dropped, which needs the line.
        drop(line);
        let _ = place.call.send(Call::Speak(turn));
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Nobody has the turn, or only a run that will not serve us.
    fn may_speak_at_once(&mut self, wants: Option<&Likeness>, link: &Link) -> bool {
        match &self.turn {
            Whose::Nobody => true,
            Whose::Speaker => false,
            Whose::Run {
                likeness, progress, ..
            } => {
                let over = wants != Some(likeness) || progress.is_over(link.now());
                over && self.waiting.peek().is_none()
            }
        }
    }
}

impl Waiting {
    fn add(&mut self, place: Place) {
        if self.0.len() >= 64 && self.0.len().is_power_of_two() {
            self.0.retain(|place| !place.call.is_closed());
        }
        self.0.push_back(place);
    }

    /// The first who still waits.
    fn peek(&mut self) -> Option<&Place> {
        while self.0.front()?.call.is_closed() {
            self.0.pop_front();
        }
        self.0.front()
    }

    fn next(&mut self) -> Option<Place> {
        self.peek()?;
        self.0.pop_front()
    }

    /// Whether the next one, if there is one, can take over a hold like this.
    fn takes(&mut self, likeness: &Likeness) -> bool {
        self.peek()
            .is_none_or(|place| place.wants.as_ref() == Some(likeness))
    }
}

impl Turn {
    /// Tells those who stand behind us.
    pub(crate) fn tell(&self, news: News) {
        if let Some(gate) = &self.gate {
            gate.line().news = Some(news);
        }
    }

    /// We got a hold that may be handed on to others who want one like it; the turn stays
    /// with it.
    pub(crate) fn run(mut self, likeness: Likeness, link: &Link) -> Option<Run> {
        let gate = self.gate.take()?;
        let mut line = gate.line();
        if !line.waiting.takes(&likeness) {
            gate.pass_on(line);
            return None;
        }
        line.runs += 1;
        let number = line.runs;
        line.turn = Whose::Run {
            number,
            likeness,
            progress: Progress::new(link.now()),
        };
        let warden = gate.watch(&mut line, link);
        drop(line);
        if let Some(warden) = warden {
            warden.start(link);
        }
        Some(Run { gate, number })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.pass_on(gate.line());
        }
    }
}

impl Run {
    /// The next in line, if a hold that is valid until `end` may be handed on to it.
    pub(crate) fn next(&self, end: Moment, now: Moment) -> Option<Next> {
        let mut line = self.gate.line();
        let Line { turn, waiting, .. } = &mut *line;
        let Whose::Run {
            number,
            likeness,
            progress,
        } = turn
        else {
            return None;
        };
        let ours = *number == self.number && progress.may_hand_on(likeness.ttl(), end, now);
        if !ours || !waiting.takes(likeness) {
            return None;
        }
        let place = waiting.next()?;
        progress.handed += 1;
        let handed = progress.handed;
        if !waiting.takes(likeness) {
            // Let it stand in the store's queue while the one before it holds.
            self.gate.pass_on(line);
        }
        Some(Next {
            call: place.call,
            handed,
        })
    }
}

impl Next {
    /// Hands it on; if nobody takes it, it is dropped.
    pub(crate) fn take(self, baton: Baton) {
        let _ = self.call.send(Call::Take(baton));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let line = self.gate.line();
        if matches!(line.turn, Whose::Run { number, .. } if number == self.number) {
            self.gate.pass_on(line);
        }
    }
}
