//! What follows from a look: [`judge`], with what we bring along ourselves.

use std::time::Duration;

use tenure_core::{Cause, ErrorKind, Greeting, Hello, Life, Record, Recovery, Spelled, hello};

use super::super::connection::Link;
use super::super::errors::Failure;
use super::super::options::Options;
use super::super::sentinel::Epoch;
use super::Part;
use super::look::Look;
use super::meet::{Met, interference};
use super::record::{Beginning, merged, place_of, says_witnessed};
use super::witnesses::{is_witnessed, needs_witnesses};

/// What follows from a look.
pub(super) enum Judged {
    Met(Met),
    /// A new life begins.
    Begins(Box<Look>, Beginning),
}

/// Decides whether this part of the server remembers.
pub(super) fn judge(link: &Link, part: Part, look: Look) -> Result<Judged, Failure> {
    let caution = link.options.caution;
    if caution.no_replicas && look.seen.has_replicas {
        return Err(replicas_after_all());
    }
    // One may attach at any time after this, unless somebody says that none ever does.
    let replicated = !caution.no_replicas || look.seen.took_over;
    let greeting = greeting(link, part, &look.seen.run);
    let durable = look.seen.keeps_everything(&greeting);
    let record = look.record.as_ref();
    let remembered = link
        .memory
        .began_besides(part, record.map(|record| record.life));
    let began = merged(record.map_or(&[], |record| &record.began), &remembered);
    match (hello(record, &look.seen, &greeting), &look.record) {
        // Somebody has come by the address of the server, and asked nobody whether it is the primary; or another
        // was the primary meanwhile.
        (Hello::Known(_), Some(record)) if !is_witnessed(link, &look) => {
            let cause = match record.cause {
                _ if says_witnessed(&look.text) && place_of(&look.text).is_some() => {
                    Cause::TookOver
                }
                Cause::Vouched => Cause::Unknown,
                cause => cause,
            };
            let beginning = Beginning {
                life: new_life()?,
                wait: greeting.max_ttl,
                cause,
                max_ttl: greeting.max_ttl,
                durable,
                earlier: began,
            };
            Ok(Judged::Begins(Box::new(look), beginning))
        }
        // A newcomer has taken it for new, but we know that it was in use.
        (Hello::Known(life), Some(record))
            if record.cause == Cause::Unknown
                && !record.phase(look.now).is_open()
                && link.memory.life(part).is_some_and(|knew| knew != life) =>
        {
            let beginning = Beginning {
                life: new_life()?,
                wait: record.until.since(look.now),
                cause: Cause::Missed,
                max_ttl: greeting.max_ttl,
                durable,
                earlier: merged(&record.began[1..], &remembered),
            };
            Ok(Judged::Begins(Box::new(look), beginning))
        }
        (Hello::Known(_), Some(record)) => {
            let record = Record {
                began,
                ..record.clone()
            };
            if let (Some(slot), Some(member)) = (part, link.options.keys.member()) {
                member.slots.set_used(slot);
            }
            Ok(Judged::Met(Met {
                record: Some(record),
                replicated,
                epoch: epoch(link, &look.text),
            }))
        }
        (Hello::Disagree { max_ttl }, _) => Err(disagreement(&link.options, part, max_ttl)),
        (Hello::Begin { wait, cause }, _) => {
            let new = record.is_none() && caution.recovery == Recovery::Open;
            // What another server granted, and others confirmed until now, does not end sooner because this one
            // is old.
            let wait = match needs_witnesses(link) && !new {
                true => greeting.max_ttl,
                false => wait.max(look.pending.min(greeting.max_ttl)),
            };
            let beginning = Beginning {
                life: new_life()?,
                wait,
                cause,
                max_ttl: greeting.max_ttl,
                durable,
                earlier: began,
            };
            Ok(Judged::Begins(Box::new(look), beginning))
        }
        (Hello::Known(_), None) => Err(interference()),
    }
}

/// In which configuration of the sentinels the life of this record began, if there are any and it says so.
fn epoch(link: &Link, text: &str) -> Option<Epoch> {
    let place = link.sentinels.as_ref().and(place_of(text));
    place.and_then(Epoch::parse)
}

/// What we bring along to this run of a server.
pub(super) fn greeting(link: &Link, part: Part, run: &str) -> Greeting {
    let caution = link.options.caution;
    let used = |slot| {
        let member = link.options.keys.member();
        member.is_some_and(|member| member.slots.is_used(slot))
    };
    Greeting {
        recovery: caution.recovery,
        knew: link.memory.life(part).is_some() || part.is_some_and(used),
        knew_this_run: link.memory.knew(part, run),
        max_ttl: caution.max_ttl.duration(),
        no_replicas: caution.no_replicas,
    }
}

/// A life that no other looks like.
pub(super) fn new_life() -> Result<Life, Failure> {
    let bits = getrandom::u64()
        .map_err(|_| Failure::new(ErrorKind::Unsupported, "the system has no random numbers"))?;
    Ok(Life::from_u64(bits))
}

fn replicas_after_all() -> Failure {
    Failure::new(
        ErrorKind::Configuration,
        "the URL says replicas=none, but this server has replicas: one that is promoted may lack the \
         last grants, and could not be told from this server. Leave replicas=none out of the URL of \
         every client, or detach them",
    )
}

fn disagreement(options: &Options, part: Part, theirs: Duration) -> Failure {
    let (ours, theirs) = (Spelled(options.caution.max_ttl.duration()), Spelled(theirs));
    let keys = match part {
        Some(_) => format!("all keys like ~tenure:{{*}}:life:{}", options.prefix),
        None => format!("the key {}", options.keys.record(None)),
    };
    Failure::new(
        ErrorKind::Configuration,
        format!(
            "this client protects leases of up to {ours}, and those who use this server protect \
             {theirs}: give all of them the same ?max_ttl= (to change it, stop them all and delete \
             {keys})"
        ),
    )
}
