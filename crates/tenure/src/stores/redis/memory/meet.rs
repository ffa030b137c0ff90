//! Saying hello: look, decide, and settle it, until nobody interferes.

use std::time::Duration;

use redis::Cmd;
use tenure_core::{ErrorKind, Greeting, Hello, Life, Moment, Record, hello};

use super::super::connection::{Link, Live};
use super::super::errors::Failure;
use super::super::options::Options;
use super::look::{Look, look, text_of};
use super::record::{Beginning, merged};
use super::record_key;

/// How often the record may change under our eyes before we give up.
pub(super) const TRIES: usize = 10;

/// What is known of a server to whom hello was said.
pub(super) struct Met {
    pub(super) record: Record,
    /// Whether each call has to look at the replication.
    replicated: bool,
}

impl Met {
    /// What every call begins with.
    pub(super) fn argument(&self, options: &Options) -> String {
        let flag = if self.replicated { 'r' } else { '-' };
        format!("{}{flag}{}", self.record.life, record_key(options))
    }
}

/// Looks, decides and settles it. `None` if the server does not tell.
pub(super) async fn meet(
    link: &Link,
    live: &Live,
    deadline: Moment,
) -> Result<Option<Met>, Failure> {
    let caution = link.options.caution;
    let greeting = Greeting {
        recovery: caution.recovery,
        knew: link.memory.life().is_some(),
        max_ttl: caution.max_ttl.duration(),
    };
    for _ in 0..TRIES {
        let Some(look) = look(link, live, deadline).await? else {
            return Ok(None);
        };
        let replicated = caution.replicated || look.has_replicas || look.seen.took_over;
        let record = look.record.as_ref();
        let remembered = link.memory.began_besides(record.map(|record| record.life));
        let began = merged(record.map_or(&[], |record| &record.began), &remembered);
        match hello(record, &look.seen, &greeting) {
            Hello::Known(_) => {
                let known = look.record.map(|record| Record { began, ..record });
                return Ok(known.map(|record| Met { record, replicated }));
            }
            Hello::Disagree { max_ttl } => return Err(disagreement(&link.options, max_ttl)),
            Hello::Begin { wait, cause } => {
                let beginning = Beginning {
                    life: new_life()?,
                    wait,
                    cause,
                    max_ttl: greeting.max_ttl,
                    earlier: began,
                };
                // Whether or not it was we who began it: the next look tells what it is now.
                settle(link, live, &look, &beginning, deadline).await?;
            }
        }
    }
    Err(interference())
}

/// Begins a life; `false` if something has changed since we looked.
pub(super) async fn settle(
    link: &Link,
    live: &Live,
    look: &Look,
    beginning: &Beginning,
    deadline: Moment,
) -> Result<bool, Failure> {
    let wipes = look.wipes.map(|wipes| wipes.to_string());
    let mut command = Cmd::new();
    command
        .arg("EVAL")
        .arg(include_str!("../scripts/settle.lua"))
        .arg(1)
        .arg(record_key(&link.options))
        .arg(&look.text)
        .arg(&*look.seen.run)
        .arg(&*look.seen.line)
        .arg(wipes.as_deref().unwrap_or("-"))
        .arg(beginning.micros())
        .arg(beginning.life.to_string())
        .arg(beginning.words(&look.seen));
    let said = text_of(link.send(live, &command, deadline).await?)?;
    Ok(said == "begun")
}

/// A life that no other looks like.
pub(super) fn new_life() -> Result<Life, Failure> {
    let bits = getrandom::u64()
        .map_err(|_| Failure::new(ErrorKind::Unsupported, "the system has no random numbers"))?;
    Ok(Life::from_u64(bits))
}

pub(super) fn interference() -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        "the server begins another life again and again: do several servers answer at this address?",
    )
}

fn disagreement(options: &Options, theirs: Duration) -> Failure {
    let ours = options.caution.max_ttl.duration();
    Failure::new(
        ErrorKind::Configuration,
        format!(
            "this client protects leases of up to {ours:?}, and those who use this server protect \
             {theirs:?}: give all of them the same ?max_ttl= (to change it, stop them all and delete \
             the key {})",
            record_key(options)
        ),
    )
}
