//! What a server shows of itself: [`look`].

use std::collections::HashMap;
use std::time::Duration;

use redis::{Pipeline, Value};
use tenure_core::{ErrorKind, Moment, Record, Recovery, Seen, Timestamp};

use super::super::cluster::incarnation;
use super::super::connection::{Link, Live};
use super::super::errors::{self, Failure};
use super::super::sentinel::Sentinels;
use super::line::Line;
use super::witnesses::PATIENCE;
use super::{Part, read};

/// What was seen of a server.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Its record, as it is written there.
    pub(super) text: String,
    pub(super) record: Option<Record>,
    pub(super) seen: Seen,
    /// How often data was wiped; looked at only if there is no record of this run.
    pub(super) wipes: Option<u64>,
    /// Its clock.
    pub(super) now: Timestamp,
    /// Whose place it has, since when; a promotion changes that, a restart does not. Of a cluster: which node it
    /// is, as it says itself. Under Sentinel: since which configuration, as a majority says, or why none does.
    pub(super) place: Result<Option<String>, Failure>,
    /// For how long a record that does not count lets nobody in.
    pub(super) pending: Duration,
    /// Whether it follows another, and may not be written to.
    pub(super) is_replica: bool,
}

impl Look {
    /// Which start of the server this is, as it says itself.
    pub(super) fn run_id(&self) -> &str {
        let run = &self.seen.run;
        run.split_once(IN_DATABASE).map_or(run, |(run, _)| run)
    }
}

/// Stands between the run id and the number of the database, of any but the first.
const IN_DATABASE: char = '/';

/// Looks at these parts of a server; `None` if it does not tell who it is, and need not.
pub(super) async fn look(
    link: &Link,
    live: &Live,
    parts: &[Part],
    deadline: Moment,
) -> Result<Option<Vec<Result<Look, Failure>>>, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.cmd("TIME");
    pipeline.cmd("INFO").arg("server");
    pipeline.cmd("INFO").arg("replication");
    pipeline.cmd("CONFIG").arg("GET").arg("append*");
    pipeline
        .cmd("CONFIG")
        .arg("GET")
        .arg("no-appendfsync-on-rewrite");
    // Not CONFIG, which many may not call.
    pipeline.cmd("INFO").arg("memory");
    for part in parts {
        pipeline.cmd("GET").arg(link.options.keys.record(*part));
    }
    let is_node = link.options.keys.member().is_some();
    if is_node {
        pipeline.cmd("CLUSTER").arg("NODES");
    }
    let mut values = link.send_all(live, &pipeline, deadline).await?;
    let node = values.pop_if(|_| is_node);
    let node = node.map(text_of).transpose()?;
    let records = values.split_off(values.len().min(6));
    let Ok([time, server, replication, append, rewrite, memory]) = <[Value; 6]>::try_from(values)
    else {
        return Err(unreadable());
    };
    let strict = link.options.caution.recovery == Recovery::Strict;
    let (server, replication) = match (facts(server), facts(replication)) {
        (Ok(server), Ok(replication)) => (server, replication),
        // Whoever may not see who the server is cannot tell whether it is another one.
        (Err(failure), _) | (_, Err(failure)) if strict => return Err(failure),
        (Err(failure), _) | (_, Err(failure)) if failure.kind == ErrorKind::Forbidden => {
            return Ok(None);
        }
        (Err(failure), _) | (_, Err(failure)) => return Err(failure),
    };
    let memory = facts(memory).unwrap_or_default();
    let policy = memory.get("maxmemory_policy").map_or("", String::as_str);
    if strict && policy != "noeviction" {
        return Err(evicting(policy));
    }
    let kept = [facts(append), facts(rewrite)].map(Result::unwrap_or_default);
    let now = clock(time)?;
    let mut seen = seen(&server, &replication, &kept, now)?;
    if live.run.as_ref().is_some_and(|run| *run != seen.run) {
        return Err(replaced());
    }
    seen.run = link.options.run_here(&seen.run, IN_DATABASE).into();
    let texts = records.into_iter().map(|record| match record {
        Value::Nil => Ok(String::new()),
        value if is_node => text_of(value).map_err(Failure::at_node),
        value => text_of(value),
    });
    let texts: Vec<Result<String, Failure>> = texts.collect();
    // That of another database is none of ours, whichever run wrote it: SWAPDB has put it here.
    let swapped = |record: &Record| {
        let number = |run: &str| run.split_once(IN_DATABASE).map(|(_, it)| it.to_owned());
        number(&record.run) != number(&seen.run)
    };
    let its = |record: &Record| record.is_of(&seen);
    let place = match &link.sentinels {
        Some(sentinels) => {
            let text = texts.first().and_then(|text| text.as_ref().ok());
            let record = text.and_then(|text| read(text)).filter(its);
            let patience = patience(link, live, record.as_ref());
            let deadline = deadline.min(link.clock.now().plus(patience));
            since(sentinels, live, deadline).await.map(Some)
        }
        None => Ok(node.as_deref().and_then(incarnation)),
    };
    let is_lost = |text: &Result<String, Failure>| {
        text.as_ref()
            .is_ok_and(|it| !read(it).is_some_and(|record| its(&record)))
    };
    let traces = match texts.iter().any(is_lost) {
        true => Some(wipes(link, live, deadline).await?),
        false => None,
    };
    let look = |text: String| {
        let record = read(&text);
        let wiped = record.as_ref().is_some_and(swapped);
        let until = record.as_ref().filter(|_| wiped).map(|it| it.until);
        let pending = until.map_or(Duration::ZERO, |until| until.since(now));
        let record = record.filter(|_| !wiped);
        let wipes = traces.filter(|_| !record.as_ref().is_some_and(its));
        let mut seen = seen.clone();
        seen.wiped = wiped || wipes.is_some_and(|wipes| wipes > 0);
        Look {
            text,
            record,
            seen,
            wipes,
            now,
            place: place.clone(),
            pending,
            is_replica: !is(&replication, "role", "master"),
        }
    };
    Ok(Some(texts.into_iter().map(|it| it.map(look)).collect()))
}

/// How long sentinels may take to say since when the server is the primary. If its life goes on, as far as it can
/// tell, nobody waits for them for long: whoever relies on it asks them again, and a renewal must not wait.
fn patience(link: &Link, live: &Live, record: Option<&Record>) -> Duration {
    let known = link.memory.known(live, None).and_then(|known| known.life());
    match known.is_some() && known == record.map(|record| record.life) {
        true => PATIENCE / 10,
        false => PATIENCE,
    }
}

/// Since which configuration the server is the primary. Asked after its record was read: what that says was said
/// by a majority before, so that another answer is a later one.
async fn since(sentinels: &Sentinels, live: &Live, deadline: Moment) -> Result<String, Failure> {
    let epoch = sentinels.epoch_of(&live.address, deadline).await?;
    Ok(epoch.to_string())
}

fn seen(
    server: &Facts,
    replication: &Facts,
    [append, rewrite]: &[Facts; 2],
    now: Timestamp,
) -> Result<Seen, Failure> {
    let name = |facts: &Facts, name: &str| facts.get(name).cloned();
    let Line { id, took_over } = Line::of(replication).ok_or_else(unreadable)?;
    Ok(Seen {
        run: name(server, "run_id").ok_or_else(unreadable)?.into(),
        line: id,
        took_over,
        age: name(server, "uptime_in_seconds")
            .and_then(|age| age.parse().ok())
            .map_or(Duration::ZERO, Duration::from_secs),
        durable: is(append, "appendonly", "yes")
            && is(append, "appendfsync", "always")
            && is(rewrite, "no-appendfsync-on-rewrite", "no"),
        has_replicas: !is(replication, "connected_slaves", "0"),
        wiped: false,
        now,
    })
}

/// Traces of data having been wiped since the server started.
async fn wipes(link: &Link, live: &Live, deadline: Moment) -> Result<u64, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.cmd("INFO").arg("commandstats");
    pipeline.cmd("INFO").arg("stats");
    let values = link.send_all(live, &pipeline, deadline).await?;
    let mut wipes = 0;
    for value in values {
        let facts = facts(value)?;
        let calls = |name: &str| {
            let text = facts.get(name)?;
            let text = text.strip_prefix("calls=").unwrap_or(text);
            text.split(',').next()?.parse::<u64>().ok()
        };
        let names = [
            "cmdstat_flushall",
            "cmdstat_flushdb",
            "cmdstat_swapdb",
            "evicted_keys",
        ];
        wipes += names.into_iter().filter_map(calls).sum::<u64>();
    }
    Ok(wipes)
}

pub(in super::super) type Facts = HashMap<String, String>;

pub(super) fn is(facts: &Facts, name: &str, value: &str) -> bool {
    facts.get(name).is_some_and(|it| it == value)
}

/// `name:value` lines of INFO, or pairs of CONFIG GET.
pub(in super::super) fn facts(value: Value) -> Result<Facts, Failure> {
    match value {
        Value::Array(values) => {
            let texts: Vec<_> = values.into_iter().map(text_of).collect::<Result<_, _>>()?;
            let pairs = texts.chunks_exact(2);
            Ok(pairs.map(|it| (it[0].clone(), it[1].clone())).collect())
        }
        Value::Map(pairs) => pairs
            .into_iter()
            .map(|(name, value)| Ok((text_of(name)?, text_of(value)?)))
            .collect(),
        value => {
            let text = text_of(value)?;
            let pairs = text.lines().filter_map(|line| line.split_once(':'));
            Ok(pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect())
        }
    }
}

fn clock(value: Value) -> Result<Timestamp, Failure> {
    if let Value::ServerError(error) = &value {
        return Err(errors::from_server(error));
    }
    let (seconds, micros): (u64, u64) = redis::from_redis_value(value).map_err(|_| unreadable())?;
    Ok(Timestamp::from_micros(seconds * 1_000_000 + micros))
}

pub(super) fn text_of(value: Value) -> Result<String, Failure> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).map_err(|_| unreadable()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text),
        Value::ServerError(error) => Err(errors::from_server(&error)),
        _ => Err(unreadable()),
    }
}

fn evicting(policy: &str) -> Failure {
    Failure::new(
        ErrorKind::Configuration,
        format!(
            "recovery=strict needs a server that throws nothing away, and its maxmemory-policy is \
             {}: set it to noeviction",
            if policy.is_empty() {
                "not to be seen (INFO memory)"
            } else {
                policy
            }
        ),
    )
}

/// A connection stands for one server, and its answers are counted as those of that server.
fn replaced() -> Failure {
    let message = "another server answers on this connection than the one that it was made to: is there a \
                   proxy between, and has it been led somewhere else?";
    Failure::new(ErrorKind::Unavailable, message).ending_the_connection(true)
}

fn unreadable() -> Failure {
    Failure::protocol("the server does not say who it is (INFO): is this a Redis server?")
}
