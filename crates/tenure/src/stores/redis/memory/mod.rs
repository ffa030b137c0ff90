//! Does the server remember what it granted? On every new connection, and whenever a script says that
//! this is another life, the core's `hello` decides from what the server shows of itself.
//!
//! Here is what a client knows of the server's life; `meet` finds it out, `look` is what it asks for that,
//! `record` what the server keeps of it, `initialize` what a person may say instead.

pub(in crate::stores) mod initialize;
mod look;
mod meet;
mod record;

use std::sync::{Mutex, PoisonError};

use tenure_core::{Life, Moment, Record, Recovery, Timestamp, Ttl};

use super::connection::{Link, Live};
use super::errors::Failure;
use super::options::{Options, RESERVED};

pub(super) use record::{because, read};

/// How careful to be with a server that may have forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caution {
    pub(super) recovery: Recovery,
    /// The longest lease that waiting protects.
    pub(super) max_ttl: Ttl,
    /// Whether each call also looks whether the server was demoted and promoted meanwhile.
    pub(super) replicated: bool,
}

impl Default for Caution {
    fn default() -> Self {
        Self {
            recovery: Recovery::default(),
            max_ttl: Ttl::DEFAULT,
            replicated: false,
        }
    }
}

/// What is known about the life of the server.
#[derive(Debug, Default)]
pub(super) struct Memory {
    known: Mutex<Option<Known>>,
    /// Held while saying hello, so that not everybody does at once.
    pub(super) greeting: tokio::sync::Mutex<()>,
}

/// The outcome of the last hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// On which connection it was said.
    generation: u64,
    /// `None` if there is nothing to go by: recovery is off, or the server does not tell.
    record: Option<Record>,
    /// What every call begins with.
    pub(super) argument: String,
}

impl Known {
    /// Whether the server has begun so many lives of late that it may never open.
    pub(super) fn is_restless(&self, now: Timestamp) -> bool {
        let record = self.record.as_ref();
        record.is_some_and(|record| record.is_restless(now))
    }
}

impl Memory {
    /// What is known of the server at the other end of this connection.
    pub(super) fn known(&self, live: &Live) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .clone()
            .filter(|known| known.generation == live.generation())
    }

    /// The life of the server as far as it is known, on whatever connection.
    pub(super) fn life(&self) -> Option<Life> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let record = known.as_ref().and_then(|known| known.record.as_ref());
        record.map(|record| record.life)
    }

    /// When the lives began that are known of, the newest first, without `life`.
    fn began_besides(&self, life: Option<Life>) -> Vec<Timestamp> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let record = known.as_ref().and_then(|known| known.record.as_ref());
        let began = |record: &Record| {
            let same = usize::from(Some(record.life) == life);
            record.began.iter().skip(same).copied().collect()
        };
        record.map_or_else(Vec::new, began)
    }

    fn learn(&self, now_known: Known) -> Option<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.replace(now_known)
    }
}

/// Says hello, unless that was done on this connection since `outdated` was known.
pub(super) async fn greet(
    link: &Link,
    live: &Live,
    outdated: Option<&Known>,
    deadline: Moment,
) -> Result<Known, Failure> {
    if let Some(known) = link.memory.known(live).filter(|it| Some(it) != outdated) {
        return Ok(known);
    }
    let _alone = link.memory.greeting.lock().await;
    if let Some(known) = link.memory.known(live).filter(|it| Some(it) != outdated) {
        return Ok(known);
    }
    let met = match link.options.caution.recovery {
        Recovery::Off => None,
        _ => meet::meet(link, live, deadline).await?,
    };
    let known = Known {
        generation: live.generation(),
        argument: met
            .as_ref()
            .map_or_else(String::new, |met| met.argument(&link.options)),
        record: met.map(|met| met.record),
    };
    let life = |known: &Known| known.record.as_ref().map(|record| record.life);
    let before = link.memory.learn(known.clone());
    if before.is_some_and(|before| life(&before) != life(&known)) {
        // Places in the queue may be gone: everybody asks again.
        link.listeners.missed();
    }
    Ok(known)
}

/// Where the record is.
pub(super) fn record_key(options: &Options) -> String {
    format!("{RESERVED}{{{}}}:life", options.prefix)
}
