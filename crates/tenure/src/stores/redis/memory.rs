//! Does the server remember what it granted? On every new connection, and whenever a script says that
//! this is another life, the core's `hello` decides from what the server shows of itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{Cmd, Pipeline, Value};
use tenure_core::{
    ErrorKind, Greeting, Hello, Life, Moment, Record, Recovery, Seen, Timestamp, Ttl, hello,
};

use super::connection::{Link, Live};
use super::errors::{self, Failure};
use super::options::{Options, RESERVED};

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
    life: Option<Life>,
    /// What every call begins with.
    pub(super) argument: String,
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
        known.as_ref().and_then(|known| known.life)
    }

    fn learn(&self, now_known: Known) -> Option<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.replace(now_known)
    }
}

/// How often the record may change under our eyes before we give up.
const TRIES: usize = 10;

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
    let knew = link.memory.life();
    let life = match link.options.caution.recovery {
        Recovery::Off => None,
        _ => meet(link, live, knew.is_some(), deadline).await?,
    };
    let known = Known {
        generation: live.generation(),
        life: life.as_ref().map(|met| met.life),
        argument: life.map_or_else(String::new, |met| met.argument(&link.options)),
    };
    let before = link.memory.learn(known.clone());
    if before.is_some_and(|before| before.life != known.life) {
        // Places in the queue may be gone: everybody asks again.
        link.listeners.missed();
    }
    Ok(known)
}

/// Where the record is.
pub(super) fn record_key(options: &Options) -> String {
    format!("{RESERVED}{{{}}}:life", options.prefix)
}

struct Met {
    life: Life,
    /// Whether each call has to look at the replication.
    replicated: bool,
}

impl Met {
    fn argument(&self, options: &Options) -> String {
        let flag = if self.replicated { 'r' } else { '-' };
        format!("{}{flag}{}", self.life, record_key(options))
    }
}

/// Looks, decides and settles it, until nobody interferes. `None` if the server does not tell.
async fn meet(
    link: &Link,
    live: &Live,
    knew: bool,
    deadline: Moment,
) -> Result<Option<Met>, Failure> {
    let caution = link.options.caution;
    let greeting = Greeting {
        recovery: caution.recovery,
        knew,
        max_ttl: caution.max_ttl.duration(),
    };
    for _ in 0..TRIES {
        let Some(look) = look(link, live, deadline).await? else {
            return Ok(None);
        };
        let replicated = caution.replicated || look.has_replicas || look.seen.took_over;
        let met = |life| Some(Met { life, replicated });
        match hello(look.record.as_ref(), &look.seen, &greeting) {
            Hello::Known(life) => return Ok(met(life)),
            Hello::Disagree { max_ttl } => return Err(disagreement(&link.options, max_ttl)),
            Hello::Begin { wait } => {
                let life = Life::from_u64(getrandom::u64().map_err(|_| no_chance())?);
                if settle(link, live, &look, life, wait, deadline).await? {
                    return Ok(met(life));
                }
            }
        }
    }
    Err(Failure::new(
        ErrorKind::Unavailable,
        "the server begins another life again and again: do several servers answer at this address?",
    ))
}

/// What was seen of the server.
struct Look {
    text: String,
    record: Option<Record>,
    seen: Seen,
    /// How often data was wiped; looked at only if there is no record.
    wipes: Option<u64>,
    has_replicas: bool,
}

async fn look(link: &Link, live: &Live, deadline: Moment) -> Result<Option<Look>, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.cmd("GET").arg(record_key(&link.options));
    pipeline.cmd("INFO").arg("server");
    pipeline.cmd("INFO").arg("replication");
    pipeline.cmd("CONFIG").arg("GET").arg("append*");
    pipeline
        .cmd("CONFIG")
        .arg("GET")
        .arg("no-appendfsync-on-rewrite");
    pipeline.cmd("CONFIG").arg("GET").arg("maxmemory-policy");
    let values = link.send_all(live, &pipeline, deadline).await?;
    let Ok([record, server, replication, append, rewrite, eviction]) =
        <[Value; 6]>::try_from(values)
    else {
        return Err(unreadable());
    };
    let text = match record {
        Value::Nil => String::new(),
        value => text_of(value)?,
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
    let eviction = facts(eviction).unwrap_or_default();
    let policy = eviction.get("maxmemory-policy").map_or("", String::as_str);
    if strict && !matches!(policy, "" | "noeviction") {
        return Err(evicting(policy));
    }
    let append = facts(append).unwrap_or_default();
    let rewrite = facts(rewrite).unwrap_or_default();
    let is = |facts: &HashMap<String, String>, name: &str, value: &str| {
        facts.get(name).is_some_and(|it| it == value)
    };
    let record = read(&text);
    let wipes = match record {
        None => Some(wipes(link, live, deadline).await?),
        Some(_) => None,
    };
    let name = |facts: &HashMap<String, String>, name: &str| facts.get(name).cloned();
    let earlier = name(&replication, "master_replid2").unwrap_or_default();
    let seen = Seen {
        run: name(&server, "run_id").ok_or_else(unreadable)?.into(),
        line: name(&replication, "master_replid")
            .ok_or_else(unreadable)?
            .into(),
        took_over: earlier.contains(|c| c != '0') || !is(&replication, "role", "master"),
        age: name(&server, "uptime_in_seconds")
            .and_then(|age| age.parse().ok())
            .map_or(Duration::ZERO, Duration::from_secs),
        durable: is(&append, "appendonly", "yes")
            && is(&append, "appendfsync", "always")
            && is(&rewrite, "no-appendfsync-on-rewrite", "no"),
        wiped: wipes.is_some_and(|wipes| wipes > 0),
    };
    Ok(Some(Look {
        record,
        text,
        seen,
        wipes,
        has_replicas: !is(&replication, "connected_slaves", "0"),
    }))
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

/// Begins a life; `false` if something has changed since we looked.
async fn settle(
    link: &Link,
    live: &Live,
    look: &Look,
    life: Life,
    wait: Duration,
    deadline: Moment,
) -> Result<bool, Failure> {
    let Seen { run, line, .. } = &look.seen;
    let max_ttl = link.options.caution.max_ttl.as_millis();
    let durable = if look.seen.durable { "durable" } else { "-" };
    let mut command = Cmd::new();
    command
        .arg("EVAL")
        .arg(include_str!("scripts/settle.lua"))
        .arg(1)
        .arg(record_key(&link.options))
        .arg(&look.text)
        .arg(&**run)
        .arg(&**line)
        .arg(
            look.wipes
                .map_or_else(|| "-".to_owned(), |it| it.to_string()),
        )
        .arg(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX))
        .arg(life.to_string())
        .arg(format!("{run} {line} {max_ttl} {durable}"));
    let said = text_of(link.send(live, &command, deadline).await?)?;
    Ok(said == "begun")
}

/// A record as settle.lua writes it; `None` if it is none, or not ours.
pub(super) fn read(text: &str) -> Option<Record> {
    let mut words = text.strip_prefix("v1 ")?.split(' ');
    let mut next = || words.next();
    Some(Record {
        life: Life::parse(next()?)?,
        until: Timestamp::from_micros(next()?.parse().ok()?),
        run: next()?.into(),
        line: next()?.into(),
        max_ttl: Duration::from_millis(next()?.parse().ok()?),
        durable: next()? == "durable",
    })
}

/// `name:value` lines of INFO, or pairs of CONFIG GET.
fn facts(value: Value) -> Result<HashMap<String, String>, Failure> {
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

fn text_of(value: Value) -> Result<String, Failure> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).map_err(|_| unreadable()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text),
        Value::ServerError(error) => Err(errors::from_server(&error)),
        _ => Err(unreadable()),
    }
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

fn evicting(policy: &str) -> Failure {
    Failure::new(
        ErrorKind::Configuration,
        format!(
            "recovery=strict needs a server that throws nothing away, and its maxmemory-policy is \
             {policy}: set it to noeviction"
        ),
    )
}

fn unreadable() -> Failure {
    Failure::protocol("the server does not say who it is (INFO): is this a Redis server?")
}

fn no_chance() -> Failure {
    Failure::new(ErrorKind::Unsupported, "the system has no random numbers")
}
