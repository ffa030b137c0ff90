//! [`Naive`]: a worker with one of the algorithms that go wrong. Here is what they have in common; each
//! algorithm is in the file of its anomaly.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::{Ask, BEFORE_WRITE, Order, Voice, WorkerArgs, orders_channel, write_to_resource};
use crate::anomalies;
use crate::servers::wait::{now, pass};
use crate::servers::{Answer, Session};
use crate::timeline::What;

/// A naive lock: how it is taken (`false`: somebody has it), given back and kept.
#[derive(Clone, Copy)]
pub(crate) struct Algorithm {
    pub(crate) take: fn(&mut Naive, &Ask) -> io::Result<bool>,
    pub(crate) give: fn(&mut Naive, &Ask) -> io::Result<()>,
    /// Called every third of the ttl while it believes to hold.
    pub(crate) keep: Option<fn(&mut Naive, &Ask) -> io::Result<()>>,
    /// Turns a writer into a reader.
    pub(crate) downgrade: fn(&mut Naive, &Ask) -> io::Result<()>,
}

/// What most of them have in common: nobody renews, nobody turns into a reader.
pub(crate) const PLAIN: Algorithm = Algorithm {
    take: |_, _| Ok(false),
    give: |_, _| Ok(()),
    keep: None,
    downgrade: |_, _| Ok(()),
};

/// The key of every naive lock.
pub(crate) const KEY: &str = "lock:stock";

/// Where those who wait are told that it is free, by algorithms that tell.
pub(crate) const CHANNEL: &str = "lock:stock:free";

/// Deletes the key if it still has our value, in one step: the right way to give back a simple lock.
pub(crate) const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// A worker that uses a naive algorithm.
pub(crate) struct Naive {
    args: WorkerArgs,
    voice: Voice,
    orders: Receiver<Order>,
    servers: Vec<Option<Session>>,
    stop_at: Option<String>,
    /// No answer is waited for longer than this.
    pub(crate) patience: Duration,
    /// What it writes into the key.
    pub(crate) token: String,
    /// On which servers it has the lock, where there are several.
    pub(crate) votes: Vec<usize>,
}

pub(super) fn execute(args: &WorkerArgs) {
    let Some(anomaly) = anomalies::find(&args.anomaly) else {
        return;
    };
    let mut naive = Naive {
        args: args.clone(),
        voice: Voice::of(args),
        orders: orders_channel(),
        servers: args.ports.iter().map(|_| None).collect(),
        stop_at: None,
        patience: Duration::from_secs(10),
        token: format!("{}:{}", args.name, std::process::id()),
        votes: Vec::new(),
    };
    naive.voice.say(What::Ready);
    naive.obey(anomaly.naive);
}

impl Naive {
    /// One command to the first server.
    pub(crate) fn call(&mut self, words: &[&str]) -> io::Result<Answer> {
        self.call_server(0, words)
    }

    /// One command to one of several servers.
    pub(crate) fn call_server(&mut self, index: usize, words: &[&str]) -> io::Result<Answer> {
        let mut session = match self.servers[index].take() {
            Some(session) => session,
            None => Session::open(self.args.ports[index], self.patience)?,
        };
        let answer = session.call(words)?;
        self.servers[index] = Some(session);
        Ok(answer)
    }

    /// How many servers there are.
    pub(crate) fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Comes to a point of the algorithm: stays there if it was told to, until it is told to go on.
    pub(crate) fn point(&mut self, point: &str) {
        if self.stop_at.as_deref() != Some(point) {
            return;
        }
        self.stop_at = None;
        let point = point.to_owned();
        self.voice.say(What::At { point });
        while !matches!(self.orders.recv(), Ok(Order::Go) | Err(_)) {}
    }

    /// `SET key token NX PX ttl`.
    pub(crate) fn set_if_absent(&mut self, ask: &Ask) -> io::Result<bool> {
        let token = self.token.clone();
        let ttl = ask.ttl.as_millis().to_string();
        Ok(self.call(&["SET", KEY, &token, "NX", "PX", &ttl])?.is_yes())
    }

    /// Gives back only what is its own, in one step.
    pub(crate) fn delete_own(&mut self) -> io::Result<()> {
        let token = self.token.clone();
        self.call(&["EVAL", COMPARE_AND_DELETE, "1", KEY, &token])?;
        Ok(())
    }

    fn obey(&mut self, algorithm: Algorithm) {
        let mut held: Option<Ask> = None;
        loop {
            let pause = held
                .as_ref()
                .map_or(Duration::from_secs(60), |ask| ask.ttl / 3);
            match self.orders.recv_timeout(pause) {
                Ok(Order::Acquire(ask)) => {
                    if self.acquire(algorithm, &ask) {
                        held = Some(ask);
                    }
                }
                Ok(Order::Reenter) => {
                    if let Some(ask) = &held {
                        let _ = (algorithm.take)(self, ask);
                    }
                    self.voice.done("reenter");
                }
                Ok(Order::Write { stop }) => self.write(stop, held.is_some()),
                Ok(Order::Downgrade) => {
                    if let Some(ask) = held.as_mut() {
                        self.voice.say(What::Released);
                        let _ = (algorithm.downgrade)(self, ask);
                        ask.shared = true;
                        self.voice.say(What::Holds {
                            shared: true,
                            until: None,
                            fence: None,
                        });
                    }
                    self.voice.done("downgrade");
                }
                Ok(Order::Release) => {
                    if let Some(ask) = held.take() {
                        self.voice.say(What::Released);
                        let _ = (algorithm.give)(self, &ask);
                    }
                    self.voice.done("release");
                }
                Ok(Order::Draw { at }) => self.draw(at),
                Ok(Order::Go) => {}
                Err(RecvTimeoutError::Timeout) => {
                    if let (Some(ask), Some(keep)) = (&held, algorithm.keep) {
                        let _ = keep(self, ask);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn acquire(&mut self, algorithm: Algorithm, ask: &Ask) -> bool {
        self.stop_at.clone_from(&ask.stop_at);
        self.voice.say(What::Wants);
        let start = now();
        loop {
            if (algorithm.take)(self, ask).unwrap_or(false) {
                self.voice.say(What::Holds {
                    shared: ask.shared,
                    until: None,
                    fence: None,
                });
                return true;
            }
            let left = ask.wait.saturating_sub(now().since(start));
            let goes_on = match ask.told_by_push {
                _ if left.is_zero() => false,
                true => self.is_told_within(left),
                false => {
                    pass(Duration::from_millis(20));
                    true
                }
            };
            if !goes_on {
                let in_vain = !ask.wait.is_zero();
                self.voice
                    .say(if in_vain { What::GaveUp } else { What::Busy });
                return false;
            }
        }
    }

    /// Waits until somebody says that the lock is free. Nothing else wakes it.
    fn is_told_within(&mut self, at_most: Duration) -> bool {
        let session = Session::open(self.args.ports[0], at_most);
        let message = session.and_then(|mut session| {
            session.call(&["SUBSCRIBE", CHANNEL])?;
            session.answer()
        });
        message.is_ok()
    }

    fn write(&mut self, stop: bool, holds: bool) {
        self.stop_at = stop.then(|| BEFORE_WRITE.to_owned());
        self.point(BEFORE_WRITE);
        if holds {
            write_to_resource(&self.args, None);
        }
        self.voice.done("write");
    }

    /// Makes an owner id out of the wall clock at a given moment, as `uniqid()` does.
    #[allow(
        clippy::disallowed_methods,
        reason = "the mistake that is to be shown: an id from the wall clock"
    )]
    fn draw(&mut self, at: u64) {
        while now().as_nanos() < at {
            std::hint::spin_loop();
        }
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.token = format!("{:.4}", wall.unwrap_or_default().as_secs_f64());
        let word = self.token.clone();
        self.voice.done(&word);
    }
}
