//! Looking at a server as a worried operator would: reachable, how fast, and does it keep what it
//! has acknowledged?

mod about;

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{ProtocolVersion, Value};
use tenure_core::{Error, Finding, Phase, Recovery, Severity, Spelled, Timestamp};

use super::connection::Link;
use super::errors::Failure;
use super::listing::{ask, time};
use super::memory::{self, Basis, Caution, Outlook};
use about::{About, Facts, Said};

/// How many round trips are timed.
const PINGS: usize = 50;

/// A round trip that makes a lock feel slow.
const SLOW: Duration = Duration::from_millis(20);

/// Clocks that differ by more than this are set by different people.
const APART: Duration = Duration::from_secs(5);

/// Asks the server about itself.
///
/// # Errors
/// If it cannot be asked at all.
pub(super) async fn diagnose(link: &Link) -> Result<Vec<Finding>, Error> {
    let failed = |failure: Failure| failure.error();
    let mut findings = vec![
        round_trip(link).await.map_err(failed)?,
        protocol(link).await.map_err(failed)?,
        clocks(link).await.map_err(failed)?,
    ];
    let about = About {
        server: facts(link, &["INFO", "server"]).await,
        replication: facts(link, &["INFO", "replication"]).await,
        safeguard: facts(link, &["CONFIG", "GET", "min-replicas-to-write"]).await,
        eviction: facts(link, &["CONFIG", "GET", "maxmemory-policy"]).await,
        limit: facts(link, &["CONFIG", "GET", "maxmemory"]).await,
        appending: facts(link, &["CONFIG", "GET", "append*"]).await,
        rewriting: facts(link, &["CONFIG", "GET", "no-appendfsync-on-rewrite"]).await,
        saving: facts(link, &["CONFIG", "GET", "save"]).await,
        said: match link.options.caution {
            Caution {
                no_replicas: true, ..
            } => Said::None,
            Caution {
                replicated: true, ..
            } => Said::TakeOver,
            _ => Said::Nothing,
        },
    };
    findings.extend(about.findings());
    findings.push(recovery(link).await);
    findings.extend(backlog(link).await);
    Ok(findings)
}

/// A server that drops its backlog no longer shows that it was another's replica.
async fn backlog(link: &Link) -> Option<Finding> {
    let facts = facts(link, &["CONFIG", "GET", "repl-backlog-ttl"])
        .await
        .ok()?;
    let kept: u64 = facts.get("repl-backlog-ttl")?.parse().ok()?;
    let max_ttl = link.options.caution.max_ttl.duration();
    (kept > 0 && Duration::from_secs(kept) <= max_ttl).then(|| {
        warning(
            "backlog",
            format!(
                "repl-backlog-ttl is {kept} s: after that long without replicas the server no longer shows that \
                 it was one itself, and what it lost then goes unnoticed. Set it to more than max_ttl \
                 ({}), or to 0",
                Spelled(max_ttl)
            ),
        )
    })
}

/// Whether the server may have forgotten something, as far as the record says.
async fn recovery(link: &Link) -> Finding {
    let subject = "recovery";
    if link.options.caution.recovery == Recovery::Off {
        let detail = "recovery=off: a server that restarts without its data, or is replaced by a \
                      replica that lags behind, gives away locks that are held";
        return finding(Severity::Danger, subject, detail);
    }
    let outlook = match memory::outlooks(link, &[None])
        .await
        .map(|mut all| all.pop())
    {
        Ok(Some(Ok(outlook))) => outlook,
        Ok(Some(Err(failure))) | Err(failure) => return unknown(subject, &failure),
        Ok(None) => None,
    };
    let Some(Outlook { record, basis, now }) = outlook else {
        return warning(
            subject,
            "unknown, because this user may not call INFO, and nobody else has recorded anything: if the \
             server forgets, it gives away locks that are held",
        );
    };
    let vouch = match record.cause.is_evidence() {
        true => "",
        false => ". If it is known to be new: tenure doctor --init",
    };
    match record.phase(now) {
        Phase::Recovering { until } if record.is_restless(now) => finding(
            Severity::Danger,
            subject,
            format!(
                "recovering, {} left, and it has begun to do so {} times within {}: it restarts, is \
                 replaced, or shares its address with others so often that it may never let anybody \
                 in. Find out why, or nobody gets a lock here",
                Spelled(until.since(now)),
                record.began.len(),
                Spelled(
                    record
                        .began
                        .last()
                        .map_or(record.max_ttl, |first| now.since(*first))
                ),
            ),
        ),
        Phase::Open { .. } if basis == Basis::Hearsay => warning(
            subject,
            "unknown, because this user may not call INFO: somebody has recorded that the server remembers, but perhaps \
             before it was last started. If it forgets, and nobody else uses it who sees that, it gives away locks \
             that are held (allow +info)",
        ),
        Phase::Open { .. } => fine(
            subject,
            format!(
                "remembers what it granted; if it forgets, leases of up to {} are protected",
                Spelled(record.max_ttl)
            ),
        ),
        Phase::Recovering { until } if basis == Basis::Foreseen => warning(
            subject,
            format!(
                "{}: whoever first asks for a lock waits {}, so that all that it may have forgotten has \
                 ended{vouch}",
                memory::because(record.cause),
                Spelled(until.since(now)),
            ),
        ),
        Phase::Recovering { until } => warning(
            subject,
            format!(
                "recovering, {} left: {}, and lets nobody in before all that it may have forgotten \
                 has ended{vouch}",
                Spelled(until.since(now)),
                memory::because(record.cause),
            ),
        ),
    }
}

async fn round_trip(link: &Link) -> Result<Finding, Failure> {
    let mut times = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let started = link.clock.now();
        ask(link, &redis::cmd("PING"), link.deadline()).await?;
        times.push(link.clock.now().since(started));
        // A server that is far away need not be asked for ever.
        if times.len() >= 5 && times.iter().sum::<Duration>() > Duration::from_secs(1) {
            break;
        }
    }
    times.sort_unstable();
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    let said = format!(
        "{} answers in {} (median of {}, slowest {})",
        link.options.address,
        Spelled(median),
        times.len(),
        Spelled(slowest)
    );
    Ok(if median > SLOW {
        warning(
            "round trip",
            format!("{said}, which every lock has to wait for"),
        )
    } else {
        fine("round trip", said)
    })
}

/// How far the server's clock is from ours. Only the server's counts for leases.
async fn clocks(link: &Link) -> Result<Finding, Failure> {
    let (before, started) = (wall_clock(), link.clock.now());
    let theirs = time(link).await?;
    let ours = before.plus(link.clock.now().since(started) / 2);
    let (apart, ahead) = match theirs >= ours {
        true => (theirs.since(ours), "ahead of"),
        false => (ours.since(theirs), "behind"),
    };
    let by = Spelled(apart);
    Ok(if apart > APART {
        warning(
            "clocks",
            format!(
                "the server's clock is {by} {ahead} this machine's: one of the two is wrong. Leases \
                 count by the server's alone, but if that one is set forward, they end early. Run \
                 NTP on both."
            ),
        )
    } else {
        fine(
            "clocks",
            format!("the server's is {by} {ahead} this machine's"),
        )
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "to be compared with the server's clock and shown, never to decide anything"
)]
fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.unwrap_or_default().as_micros();
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

async fn protocol(link: &Link) -> Result<Finding, Failure> {
    let live = link.live(link.deadline()).await?;
    let encrypted = if link.options.address.is_tls() {
        ", encrypted"
    } else {
        ""
    };
    Ok(if live.protocol == ProtocolVersion::RESP3 {
        fine("protocol", format!("RESP3, one connection{encrypted}"))
    } else {
        fine(
            "protocol",
            format!("RESP2, a second connection for wake-ups{encrypted}"),
        )
    })
}

/// What the server says about itself, as keys and values.
pub(super) async fn facts(link: &Link, command: &[&str]) -> Facts {
    let mut asked = redis::cmd(command[0]);
    asked.arg(&command[1..]);
    let value = ask(link, &asked, link.deadline()).await?;
    Ok(match value {
        Value::BulkString(bytes) => lines(&String::from_utf8_lossy(&bytes)),
        Value::VerbatimString { text, .. } => lines(&text),
        value => redis::from_redis_value(value).unwrap_or_default(),
    })
}

fn lines(text: &str) -> HashMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn unknown(subject: &str, failure: &Failure) -> Finding {
    warning(subject, format!("unknown: {}", failure.error().message()))
}

fn hidden(subject: &str, command: &str, failure: &Failure) -> Finding {
    let why = failure.error();
    warning(
        subject,
        format!(
            "unknown, because the server does not answer {command}: {}",
            why.message()
        ),
    )
}

fn fine(subject: &str, detail: impl Into<String>) -> Finding {
    finding(Severity::Fine, subject, detail)
}

fn warning(subject: &str, detail: impl Into<String>) -> Finding {
    finding(Severity::Warning, subject, detail)
}

fn finding(severity: Severity, subject: &str, detail: impl Into<String>) -> Finding {
    Finding {
        severity,
        subject: subject.to_owned(),
        detail: detail.into(),
    }
}
