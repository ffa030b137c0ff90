//! Saying hello: look, decide, and settle it, until nobody interferes.

use std::time::Duration;

use redis::{Pipeline, Value};
use tenure_core::{
    Cause, ErrorKind, Greeting, Hello, Life, Moment, Phase, Record, Recovery, Spelled, hello,
};

use super::super::connection::{Link, Live};
use super::super::errors::Failure;
use super::super::options::Options;
use super::super::sentinel::Epoch;
use super::look::{Look, look, text_of};
use super::record::{Beginning, merged, place_of};
use super::witnesses::{confirmed, is_witnessed, needs_witnesses};
use super::{Part, read, sweep};

/// How often the record may change under our eyes before we give up.
pub(super) const TRIES: usize = 10;

/// In place of a life: there was no record. As long as one.
const NO_LIFE: &str = "----------------";

/// What is known of a server to whom hello was said.
pub(super) struct Met {
    /// `None` if nobody has written one yet, and we may not.
    pub(super) record: Option<Record>,
    /// Whether each call has to look at the replication.
    replicated: bool,
    /// Under Sentinel: in which configuration the life began, if it says so.
    pub(super) epoch: Option<Epoch>,
}

impl Met {
    /// What every call begins with.
    pub(super) fn argument(&self, record_key: &str) -> String {
        let flag = if self.replicated { 'r' } else { '-' };
        match &self.record {
            Some(record) => format!("{}{flag}{record_key}", record.life),
            None => format!("{NO_LIFE}{flag}{record_key}"),
        }
    }
}

/// Looks, decides and settles it, for each of these parts. `None` if the server does not tell.
pub(super) async fn meet(
    link: &Link,
    live: &Live,
    parts: &[Part],
    deadline: Moment,
) -> Vec<Result<Option<Met>, Failure>> {
    let mut met: Vec<Option<Result<Option<Met>, Failure>>> = parts.iter().map(|_| None).collect();
    let mut waits = None;
    for _ in 0..TRIES {
        let open = (0..parts.len()).filter(|index| met[*index].is_none());
        let open: Vec<usize> = open.collect();
        if open.is_empty() {
            break;
        }
        let asked: Vec<Part> = open.iter().map(|index| parts[*index]).collect();
        let looks = match look(link, live, &asked, deadline).await {
            Ok(Some(looks)) => looks,
            Ok(None) => return written(link, live, parts, deadline).await,
            Err(failure) => return parts.iter().map(|_| Err(failure.clone())).collect(),
        };
        let mut begins = Vec::new();
        for (index, look) in open.into_iter().zip(looks) {
            let judged = look.and_then(|look| judge(link, parts[index], look));
            match judged {
                Ok(Judged::Met(known)) => met[index] = Some(Ok(Some(known))),
                Ok(Judged::Begins(look, beginning)) => {
                    waits = waits.or(parts[index].filter(|_| !beginning.wait.is_zero()));
                    begins.push((parts[index], *look, beginning));
                }
                Err(failure) => met[index] = Some(Err(failure)),
            }
        }
        // Whether or not it was we who began it: the next look tells what it is now.
        let settled = settle_each(link, live, &begins, deadline).await;
        for ((part, ..), settled) in begins.iter().zip(settled) {
            if let (Err(failure), Some(index)) = (settled, parts.iter().position(|it| it == part)) {
                met[index] = Some(Err(failure));
            }
        }
    }
    if let Some(slot) = waits {
        sweep::begin(link, slot);
    }
    let met = met.into_iter();
    met.map(|met| met.unwrap_or_else(|| Err(interference())))
        .collect()
}

/// What others wrote down about these parts, for a user who may not look for itself: it is kept out
/// with all others while they are known to recover, but nothing that they forget is noticed by it.
pub(super) async fn written(
    link: &Link,
    live: &Live,
    parts: &[Part],
    deadline: Moment,
) -> Vec<Result<Option<Met>, Failure>> {
    let mut pipeline = Pipeline::new();
    for part in parts {
        pipeline.cmd("GET").arg(link.options.keys.record(*part));
    }
    let values = match link.send_all(live, &pipeline, deadline).await {
        Ok(values) => values,
        Err(failure) => return parts.iter().map(|_| Err(failure.clone())).collect(),
    };
    let known = |value| {
        let text = match value {
            Value::Nil => None,
            value => Some(text_of(value).unwrap_or_default()),
        };
        let record = text.as_deref().map(read);
        // One that cannot be read is none of ours.
        let met = (record != Some(None)).then(|| Met {
            record: record.flatten(),
            replicated: false,
            epoch: text.and_then(|text| epoch(link, &text)),
        });
        Ok(met)
    };
    values.into_iter().map(known).collect()
}

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
                _ if place_of(&look.text).is_some() => Cause::TookOver,
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
                && record.phase(look.now) != Phase::Open
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

/// Begins lives, unless something has changed since we looked; answers how many have begun. A slot that is
/// elsewhere by now, or on its way, is left alone.
///
/// # Errors
/// If one of them could not be asked, or is not [`confirmed`].
pub(super) async fn settle(
    link: &Link,
    live: &Live,
    begins: &[(Part, Look, Beginning)],
    deadline: Moment,
) -> Result<usize, Failure> {
    let settled = settle_each(link, live, begins, deadline).await;
    let mut begun = 0;
    for settled in settled {
        begun += usize::from(settled?);
    }
    Ok(begun)
}

async fn settle_each(
    link: &Link,
    live: &Live,
    begins: &[(Part, Look, Beginning)],
    deadline: Moment,
) -> Vec<Result<bool, Failure>> {
    let confirmed = confirmed(link, begins, deadline).await;
    let sure = begins.iter().zip(&confirmed).filter(|(_, it)| it.is_ok());
    let sure: Vec<_> = sure.map(|(begins, _)| begins).collect();
    let witnessed = needs_witnesses(link);
    let mut written = match write(link, live, &sure, witnessed, deadline).await {
        Ok(written) => written.into_iter(),
        Err(failure) => vec![Err(failure); sure.len()].into_iter(),
    };
    let outcome = |confirmed: Result<(), Failure>| {
        confirmed.and_then(|()| written.next().unwrap_or_else(|| Err(interference())))
    };
    confirmed.into_iter().map(outcome).collect()
}

/// Writes records, whether or not anybody has confirmed the server, saying so; answers for each whether it was
/// written.
pub(super) async fn write(
    link: &Link,
    live: &Live,
    begins: &[&(Part, Look, Beginning)],
    witnessed: bool,
    deadline: Moment,
) -> Result<Vec<Result<bool, Failure>>, Failure> {
    const SCRIPT: &str = include_str!("../scripts/settle.lua");
    if begins.is_empty() {
        return Ok(Vec::new());
    }
    let mut commands = Pipeline::new();
    // Not by hash if there is but one: that spares a command.
    let hash = (begins.len() > 1).then(|| redis::Script::new(SCRIPT).get_hash().to_owned());
    if hash.is_some() {
        commands.cmd("SCRIPT").arg("LOAD").arg(SCRIPT);
    }
    for (part, look, beginning) in begins {
        // Whoever is strict waits for as long in either case.
        let strict = link.options.caution.recovery == Recovery::Strict;
        let wipes = look.wipes.filter(|_| !strict);
        let wipes = wipes.map(|wipes| wipes.to_string());
        let place = look.place.as_ref().ok().and_then(Option::as_deref);
        let command = match &hash {
            Some(hash) => commands.cmd("EVALSHA").arg(hash),
            None => commands.cmd("EVAL").arg(SCRIPT),
        };
        command
            .arg(1)
            .arg(link.options.keys.record(*part))
            .arg(&look.text)
            .arg(look.run_id())
            .arg(&*look.seen.line)
            .arg(wipes.as_deref().unwrap_or("-"))
            .arg(beginning.micros())
            .arg(beginning.life.to_string())
            .arg(beginning.words(&look.seen, witnessed, place));
    }
    let values = link.send_all(live, &commands, deadline).await?;
    let values = values.into_iter().skip(usize::from(hash.is_some()));
    let begun = values.map(|value| match text_of(value) {
        Ok(said) => Ok(said == "begun"),
        Err(failure) if failure.redirect.is_some() => Ok(false),
        Err(failure) => Err(failure),
    });
    Ok(begun.collect())
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
