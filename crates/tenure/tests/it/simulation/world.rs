//! [`World`]: the one clock, the server, what is wrong with the network just now, and the judge.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tenure::clock::Clock;
use tenure::core::{
    Handover, Inbox, Life, Listener, LockName, Push, PushedGrant, Reply, Request, Timestamp,
};
use tenure::test_util::VirtualClock;
use tokio::sync::{oneshot, watch};

use super::dice::Dice;
use super::flaws::Flaw;
use super::judge::{Judge, Wrong};
use super::network::{Answer, Delivery, Direction, Fate, Pipe};
use super::profile::Profile;
use super::server::Server;

#[derive(Debug)]
pub(super) struct World {
    pub(super) clock: VirtualClock,
    pub(super) profile: Profile,
    pub(super) flaw: Option<Flaw>,
    /// How fast the server's clock runs, in millionths, and by how many microseconds it was set back.
    rate: u64,
    pub(super) behind: AtomicU64,
    state: Mutex<State>,
    pub(super) changes: watch::Sender<()>,
    story: Option<Mutex<Vec<String>>>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) server: Server,
    pub(super) judge: Judge,
    pub(super) dice: Dice,
    pub(super) calm: bool,
    /// The server is stopped.
    pub(super) stopped: bool,
    pub(super) clients: Vec<Conditions>,
    /// When the server last decided.
    pub(super) decided: Timestamp,
}

/// How one client is doing.
#[derive(Debug)]
pub(super) struct Conditions {
    down: Pipe,
    pub(super) ear: Option<(Inbox, Weak<dyn Listener>)>,
    pub(super) paused: bool,
    pub(super) cut: Option<Way>,
    pub(super) dead: bool,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Free,
    Held,
    Lossy,
}

impl World {
    pub(super) fn new(seed: u64, profile: Profile, flaw: Option<Flaw>, tells: bool) -> Arc<Self> {
        let mut dice = Dice::new(seed, 2);
        // Clocks may differ by a thousandth.
        let rate = 999_100 + dice.below(1_800);
        let world = Arc::new(Self {
            clock: VirtualClock::new(),
            profile,
            flaw,
            rate,
            behind: AtomicU64::new(0),
            state: Mutex::new(State {
                server: Server::new(profile.longest_ttl(), flaw),
                judge: Judge::default(),
                dice,
                calm: true,
                stopped: false,
                clients: Vec::new(),
                decided: Timestamp::from_micros(0),
            }),
            changes: watch::Sender::new(()),
            story: tells.then(Mutex::default),
        });
        let pipe = |client| Pipe::new(&world, client, Direction::Down);
        world.state().clients = (0..profile.clients)
            .map(|client| Conditions {
                down: pipe(client),
                ear: None,
                paused: false,
                cut: None,
                dead: false,
            })
            .collect();
        world
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Writes down what happens, if anybody will read it.
    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        if let Some(story) = &self.story {
            let at = self.clock.now().as_nanos() / 1_000_000;
            story.lock().unwrap().push(format!("{at:>8} {}", what()));
        }
    }

    pub(super) fn story(&self) -> Vec<String> {
        let story = self.story.as_ref();
        story.map_or_else(Vec::new, |story| story.lock().unwrap().clone())
    }

    pub(super) async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The server's clock.
    pub(super) fn time(&self) -> Timestamp {
        let micros = u128::from(self.clock.now().as_nanos() / 1_000) * u128::from(self.rate);
        let micros = u64::try_from(micros / 1_000_000).expect("within its range");
        Timestamp::from_micros(micros - self.behind.load(Ordering::SeqCst))
    }

    pub(super) fn fate(&self) -> Fate {
        let now = self.clock.now();
        let profile = &self.profile;
        let mut state = self.state();
        let calm = state.calm;
        let dice = &mut state.dice;
        let mut delay = || {
            let slow = !calm && dice.percent(profile.slow);
            let usual = dice.millis(3);
            if slow {
                dice.millis(profile.slowness)
            } else {
                usual
            }
        };
        let mut arrives = vec![now.plus(delay())];
        let again = now.plus(delay());
        if !calm && dice.percent(profile.repeat) {
            arrives.push(again);
        }
        if !calm && dice.percent(profile.loss) {
            arrives.clear();
        }
        let fails = dice.percent(50);
        Fate { arrives, fails }
    }

    pub(super) fn way(&self, client: usize, direction: Direction) -> Way {
        let state = self.state();
        let conditions = &state.clients[client];
        if conditions.dead {
            return Way::Lossy;
        }
        match conditions.cut {
            Some(way) => way,
            None if conditions.paused => Way::Held,
            None if state.stopped && direction == Direction::Up => Way::Held,
            None => Way::Free,
        }
    }

    pub(super) fn send_down(&self, client: usize, delivery: Delivery) {
        let fate = self.fate();
        let down = self.state().clients[client].down.clone();
        if let Some(at) = fate.arrives.first() {
            down.send(*at, delivery);
        }
    }

    pub(super) fn listen(&self, client: usize, inbox: Inbox, listener: Weak<dyn Listener>) {
        self.state().clients[client].ear = Some((inbox, listener));
    }

    pub(super) fn hello(&self, knew: bool) -> Life {
        let now = self.time();
        self.state().server.hello(now, knew)
    }

    /// A call has reached the server. It may have to wait for others before it is carried out.
    pub(super) fn arrive(
        self: Arc<Self>,
        client: usize,
        life: Life,
        batch: Vec<Request>,
        tell: Option<oneshot::Sender<Answer>>,
    ) {
        let arrived = self.time();
        let wait = self.state().dice.millis(self.profile.row_lock);
        if wait.is_zero() {
            self.carry_out((client, life), &batch, arrived, tell);
            return;
        }
        tokio::spawn(async move {
            self.pass(wait).await;
            let early = self.flaw == Some(Flaw::ClockBeforeTheLock);
            let now = if early { arrived } else { self.time() };
            self.carry_out((client, life), &batch, now, tell);
        });
    }

    fn carry_out(
        &self,
        (client, life): (usize, Life),
        batch: &[Request],
        now: Timestamp,
        tell: Option<oneshot::Sender<Answer>>,
    ) {
        let mut replies = Some(Vec::new());
        for request in batch {
            let reply = self.decide(life, request, now);
            self.note(|| format!("{client}: {:?} -> {reply:?}", request.action));
            match (reply, &mut replies) {
                (Some(reply), Some(replies)) => replies.push(Ok(reply)),
                (None, _) => replies = None,
                _ => {}
            }
        }
        if let Some(tell) = tell {
            // Whoever has given up is not told.
            self.send_down(client, Box::new(move || drop(tell.send(replies))));
        }
    }

    fn decide(&self, life: Life, request: &Request, now: Timestamp) -> Option<Reply> {
        let here = self.clock.now();
        let mut state = self.state();
        let State {
            server,
            judge,
            decided,
            ..
        } = &mut *state;
        let step = server.decide(life, request, now)?;
        judge.step(&request.name, &request.action, &step, here);
        let before = std::mem::replace(decided, now);
        if now < before {
            let detail = format!("{now:?} after {before:?}");
            judge.find(Wrong::TimeGoesBack, detail);
        }
        drop(state);
        for handover in &step.decision.handovers {
            self.push(&request.name, now, handover);
        }
        let outcome = step.decision.outcome;
        Some(Reply { now, outcome })
    }

    fn push(&self, name: &LockName, now: Timestamp, handover: &Handover) {
        let state = self.state();
        let mut clients = state.clients.iter();
        let heard = |it: &Conditions| it.ear.as_ref().is_some_and(|(it, _)| *it == handover.inbox);
        let Some(client) = clients.position(heard) else {
            return;
        };
        drop(state);
        self.note(|| format!("{client}: pushed {handover:?}"));
        self.tell(
            client,
            &Push::Granted(PushedGrant {
                name: name.clone(),
                owner: handover.owner,
                fence: handover.fence,
                now,
                expiry: handover.expiry,
            }),
        );
    }

    pub(super) fn tell(&self, client: usize, push: &Push) {
        let state = self.state();
        let ear = state.clients[client].ear.clone();
        let down = state.clients[client].down.clone();
        drop(state);
        let Some((_, listener)) = ear else { return };
        for at in self.fate().arrives {
            let (listener, push) = (listener.clone(), push.clone());
            let deliver = move || {
                if let Some(listener) = listener.upgrade() {
                    listener.pushed(push);
                }
            };
            down.send(at, Box::new(deliver));
        }
    }
}
