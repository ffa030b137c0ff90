//! Does the server remember what it granted? On every new connection, and whenever a script says that
//! this is another life, the core's `hello` decides from what the server shows of itself.
//!
//! Here is what a client knows of the server's life. `meet` finds it out: `look` is what it asks for that, `line` a part of it, `judge` what
//! follows, `settle` writes down what begins, `record` is how, `witnesses` who is asked before. `outlook` is for those
//! who only want to see, `initialize` what a person may say instead, `take_back` if that was wrong. `sweep` does for all
//! slots of a node what was done for one.

pub(in crate::stores) mod initialize;
mod judge;
mod line;
mod look;
mod meet;
mod outlook;
mod record;
mod settle;
pub(super) mod sweep;
mod take_back;
mod witnesses;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{Life, Moment, Record, Recovery, Timestamp, Ttl};
use tokio::sync::OwnedMutexGuard;

use super::connection::{Link, Live};
use super::errors::Failure;
use super::sentinel::Epoch;

pub(super) use line::Line;
pub(super) use look::facts;
pub(super) use outlook::{Basis, Outlook, outlooks, recovering};
pub(super) use record::because;
use record::read;

/// How many parts are asked about in one go.
const AT_ONCE: usize = 128;

/// How careful to be with a server that may have forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caution {
    pub(super) recovery: Recovery,
    /// The longest lease that waiting protects.
    pub(super) max_ttl: Ttl,
    /// Whether others take the server's place, as a matter of course.
    pub(super) replicated: bool,
    /// Whether the URL says that there is no replica which could take the server's place.
    pub(super) no_replicas: bool,
}

impl Default for Caution {
    fn default() -> Self {
        Self {
            recovery: Recovery::default(),
            max_ttl: Ttl::DEFAULT,
            replicated: false,
            no_replicas: false,
        }
    }
}

/// What has a memory of its own: a server, or in a cluster each slot of a node.
pub(super) type Part = Option<u16>;

/// What is known about the life of the server.
#[derive(Debug, Default)]
pub(super) struct Memory {
    known: Mutex<HashMap<Part, Known>>,
    /// Held while saying hello, so that not everybody does at once.
    greeting: Arc<tokio::sync::Mutex<()>>,
}

/// The outcome of the last hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// On which connection it was said.
    generation: u64,
    /// `None` if there is nothing to go by: recovery is off, or the server does not tell.
    record: Option<Record>,
    /// Under Sentinel: in which configuration the life began, if it says so.
    epoch: Option<Epoch>,
    /// What every call begins with.
    pub(super) argument: String,
}

/// The life that has pushed a grant.
#[derive(Clone, Debug, Default)]
pub(super) struct Pusher {
    /// Under Sentinel: in which configuration it began, if it says so.
    pub(super) epoch: Option<Epoch>,
    /// With which replication id it began.
    pub(super) line: Option<Arc<str>>,
}

impl Known {
    fn life(&self) -> Option<Life> {
        self.record.as_ref().map(|record| record.life)
    }

    /// The replication id with which the life began.
    pub(super) fn line(&self) -> Option<Arc<str>> {
        self.record.as_ref().map(|record| record.line.clone())
    }

    /// Whether another life has begun. Those who wait for a slot were told already if the connection is
    /// new, and say hello when they ask.
    fn is_forgotten_by(&self, now: &Self, part: Part) -> bool {
        let told = part.is_some() && self.generation != now.generation;
        self.life() != now.life() && !told
    }

    /// Whether the server has begun so many lives of late that it may never open.
    pub(super) fn is_restless(&self, now: Timestamp) -> bool {
        let record = self.record.as_ref();
        record.is_some_and(|record| record.is_restless(now))
    }
}

impl Memory {
    /// What is known of the server at the other end of this connection.
    pub(super) fn known(&self, live: &Live, part: Part) -> Option<Known> {
        let known = self.lock();
        let known = known.get(&part);
        known
            .filter(|known| known.generation == live.generation())
            .cloned()
    }

    /// The life of the server as far as it is known, on whatever connection.
    pub(super) fn life(&self, part: Part) -> Option<Life> {
        self.lock().get(&part)?.life()
    }

    /// In which configuration of the sentinels it began.
    pub(super) fn epoch(&self, part: Part) -> Option<Epoch> {
        self.lock().get(&part)?.epoch
    }

    /// What is known of the life that has pushed a grant; `None` if it is another than the one that is known.
    pub(super) fn pusher(&self, part: Part, life: Option<Life>) -> Option<Pusher> {
        let known = self.lock();
        let known = known.get(&part);
        let strange = life.is_some_and(|life| known.and_then(Known::life) != Some(life));
        (!strange).then(|| Pusher {
            epoch: known.and_then(|known| known.epoch),
            line: known.and_then(Known::line),
        })
    }

    /// Whether a record of this run of the server is known.
    pub(super) fn knew(&self, part: Part, run: &str) -> bool {
        let known = self.lock();
        let record = known.get(&part).and_then(|known| known.record.as_ref());
        record.is_some_and(|record| *record.run == *run)
    }

    /// All parts that are known.
    fn parts(&self) -> Vec<Part> {
        self.lock().keys().copied().collect()
    }

    /// When the lives began that are known of, the newest first, without `life`.
    fn began_besides(&self, part: Part, life: Option<Life>) -> Vec<Timestamp> {
        let known = self.lock();
        let record = known.get(&part).and_then(|known| known.record.as_ref());
        let began = |record: &Record| {
            let same = usize::from(Some(record.life) == life);
            record.began.iter().skip(same).copied().collect()
        };
        record.map_or_else(Vec::new, began)
    }

    fn learn(&self, part: Part, now_known: Known) -> Option<Known> {
        self.lock().insert(part, now_known)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Part, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says hello to a server, unless that was done on this connection.
pub(super) async fn greet(link: &Link, live: &Live, deadline: Moment) -> Result<(), Failure> {
    let greeted = greet_all(link, live, &[(None, None)], deadline).await;
    greeted.into_iter().try_for_each(|known| known.map(drop))
}

/// Says hello again on a new connection, to all that is known. Whoever has only looked knows nothing, and says nothing.
pub(super) async fn greet_again(link: &Link, live: &Live, deadline: Moment) {
    let parts = link.memory.parts().into_iter();
    let parts: Vec<_> = parts.map(|part| (part, None)).collect();
    for parts in parts.chunks(AT_ONCE) {
        greet_all(link, live, parts, deadline).await;
    }
}

/// Says hello to each of these parts, unless that was done on this connection since what is outdated was
/// known.
pub(super) async fn greet_all(
    link: &Link,
    live: &Live,
    parts: &[(Part, Option<&Known>)],
    deadline: Moment,
) -> Vec<Result<Known, Failure>> {
    let known = |(part, outdated): &(Part, Option<&Known>)| {
        let known = link.memory.known(live, *part);
        known.filter(|known| Some(known) != *outdated)
    };
    let all = parts.iter().map(|it| known(it).map(Ok));
    if let Some(all) = all.collect() {
        return all;
    }
    let alone = link.memory.greeting.clone().lock_owned().await;
    let mut all: Vec<_> = parts.iter().map(|it| known(it).map(Ok)).collect();
    let strangers = parts.iter().zip(&all).filter(|(_, known)| known.is_none());
    let strangers: Vec<Part> = strangers.map(|((part, _), _)| *part).collect();
    let mut met = carry_on(link, live, strangers, deadline, alone)
        .await
        .into_iter();
    for known in all.iter_mut().filter(|known| known.is_none()) {
        *known = met.next();
    }
    let unasked = || Err(meet::interference());
    let all = all.into_iter();
    all.map(|known| known.unwrap_or_else(unasked)).collect()
}

/// Says hello to its end, also if nobody waits for that any more: it takes several round trips, and a short lease cannot
/// wait for them. The next renewal then finds it done, and need not begin anew.
async fn carry_on(
    link: &Link,
    live: &Live,
    parts: Vec<Part>,
    deadline: Moment,
    alone: OwnedMutexGuard<()>,
) -> Vec<Result<Known, Failure>> {
    let Some(link) = link.me.upgrade() else {
        return Vec::new();
    };
    let live = live.clone();
    let greeting = tokio::spawn(async move {
        // What it finds out is of no use on another connection, where the next hello waits for this one.
        let mut given_up = live.given_up.clone();
        let met = tokio::select! {
            met = greet_strangers(&link, &live, &parts, deadline) => met,
            _ = given_up.changed() => {
                let failed = || Err(Failure::given_up(&live.address));
                parts.iter().map(|_| failed()).collect()
            }
        };
        drop(alone);
        met
    });
    // Otherwise it is broken off only together with the runtime.
    greeting.await.unwrap_or_default()
}

async fn greet_strangers(
    link: &Link,
    live: &Live,
    parts: &[Part],
    deadline: Moment,
) -> Vec<Result<Known, Failure>> {
    let met = match link.options.caution.recovery {
        Recovery::Off => parts.iter().map(|_| Ok(None)).collect(),
        _ => meet::meet(link, live, parts, deadline).await,
    };
    let mut changed = false;
    let met = parts.iter().zip(met).map(|(part, met)| {
        let met = met?;
        let argument = |met: &meet::Met| met.argument(&link.options.keys.record(*part));
        let known = Known {
            generation: live.generation(),
            argument: met.as_ref().map_or_else(String::new, argument),
            epoch: met.as_ref().and_then(|met| met.epoch),
            record: met.and_then(|met| met.record),
        };
        let before = link.memory.learn(*part, known.clone());
        changed |= before.is_some_and(|before| before.is_forgotten_by(&known, *part));
        Ok(known)
    });
    let met = met.collect();
    if changed {
        // Places in the queue may be gone: everybody asks again.
        link.listeners.missed();
    }
    met
}
