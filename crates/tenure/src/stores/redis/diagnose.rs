//! Looking at a server as a worried operator would: reachable, how fast, and does it keep what it
//! has acknowledged? What it may not tell us is a warning, never a failure.

use std::collections::HashMap;
use std::time::Duration;

use redis::{ProtocolVersion, Value};
use tenure_core::{Error, Finding, Severity};

use super::connection::Link;
use super::errors::Failure;
use super::listing::ask;

/// How many round trips are timed.
const PINGS: usize = 5;

/// A round trip that makes a lock feel slow.
const SLOW: Duration = Duration::from_millis(20);

/// Asks the server about itself.
///
/// # Errors
/// If it cannot be asked at all.
pub(super) async fn diagnose(link: &Link) -> Result<Vec<Finding>, Error> {
    let mut findings = vec![
        round_trip(link).await.map_err(|failure| failure.error())?,
        protocol(link).await.map_err(|failure| failure.error())?,
    ];
    let about = About {
        server: facts(link, &["INFO", "server"]).await,
        replication: facts(link, &["INFO", "replication"]).await,
        eviction: facts(link, &["CONFIG", "GET", "maxmemory-policy"]).await,
        limit: facts(link, &["CONFIG", "GET", "maxmemory"]).await,
        appending: facts(link, &["CONFIG", "GET", "append*"]).await,
        saving: facts(link, &["CONFIG", "GET", "save"]).await,
    };
    findings.extend([
        about.version(),
        about.eviction(),
        about.persistence(),
        about.replication(),
    ]);
    Ok(findings)
}

type Facts = Result<HashMap<String, String>, Failure>;

struct About {
    server: Facts,
    replication: Facts,
    eviction: Facts,
    limit: Facts,
    appending: Facts,
    saving: Facts,
}

impl About {
    fn version(&self) -> Finding {
        let server = match &self.server {
            Ok(server) => server,
            Err(failure) => return hidden("version", "INFO", failure),
        };
        let name = server.get("server_name").map_or("redis", String::as_str);
        let version = server.get(&format!("{name}_version"));
        let version = version.or(server.get("redis_version"));
        let Some(version) = version else {
            return warning("version", "the server does not say which version it is");
        };
        let major = version
            .split('.')
            .next()
            .and_then(|major| major.parse::<u32>().ok());
        let said = format!("{name} {version}");
        match major {
            Some(0..=5) => warning("version", format!("{said}: tenure is made for 6 and later")),
            _ => fine("version", said),
        }
    }

    fn eviction(&self) -> Finding {
        let policy = match &self.eviction {
            Ok(facts) => facts.get("maxmemory-policy").cloned().unwrap_or_default(),
            Err(failure) => return hidden("eviction", "CONFIG GET maxmemory-policy", failure),
        };
        let limit = self.limit.as_ref().ok();
        let limit = limit.and_then(|facts| facts.get("maxmemory").cloned());
        match policy.as_str() {
            "noeviction" => fine("eviction", "maxmemory-policy is noeviction"),
            "" => warning("eviction", "the server does not say its maxmemory-policy"),
            policy => finding(
                Severity::Danger,
                "eviction",
                format!(
                    "maxmemory-policy is {policy}: when memory runs out ({}), the server throws \
                     away locks that are held, and gives them to others. Set it to noeviction.",
                    match limit.as_deref() {
                        Some("0") | None => "no limit is set yet".to_owned(),
                        Some(bytes) => format!("at {bytes} bytes"),
                    }
                ),
            ),
        }
    }

    fn persistence(&self) -> Finding {
        let (appending, saving) = match (&self.appending, &self.saving) {
            (Ok(appending), Ok(saving)) => (appending, saving),
            (Err(failure), _) | (_, Err(failure)) => {
                return hidden("persistence", "CONFIG GET appendonly", failure);
            }
        };
        let on = appending
            .get("appendonly")
            .is_some_and(|value| value == "yes");
        let fsync = appending.get("appendfsync").map_or("", String::as_str);
        let saves = saving.get("save").is_some_and(|value| !value.is_empty());
        match (on, fsync, saves) {
            (true, "always", _) => fine(
                "persistence",
                "appendonly with appendfsync always: a restart forgets nothing",
            ),
            (true, fsync, _) => warning(
                "persistence",
                format!(
                    "appendonly with appendfsync {fsync}: after a power failure the server may \
                     forget the last second or more, and with it locks that are held"
                ),
            ),
            (false, _, true) => warning(
                "persistence",
                "snapshots only (save): a restart after a crash forgets everything since the last \
                 one, and with it locks that are held. appendonly yes with appendfsync always \
                 forgets nothing.",
            ),
            (false, _, false) => warning(
                "persistence",
                "none: a restart forgets every lock, and they can be taken while their holders \
                 still work. appendonly yes with appendfsync always forgets nothing.",
            ),
        }
    }

    fn replication(&self) -> Finding {
        let facts = match &self.replication {
            Ok(facts) => facts,
            Err(failure) => return hidden("replication", "INFO", failure),
        };
        let replicas = facts.get("connected_slaves").map_or("0", String::as_str);
        match (facts.get("role").map(String::as_str), replicas) {
            (Some("slave"), _) => finding(
                Severity::Danger,
                "replication",
                "this server is a replica: it takes no locks. Connect to its primary.",
            ),
            (_, "0") => fine("replication", "a single server, no replicas"),
            (_, count) => warning(
                "replication",
                format!(
                    "{count} replicas: one that is promoted before the latest writes reached it \
                     gives away locks that are held"
                ),
            ),
        }
    }
}

async fn round_trip(link: &Link) -> Result<Finding, Failure> {
    let mut best = Duration::MAX;
    for _ in 0..PINGS {
        let started = link.clock.now();
        ask(link, &redis::cmd("PING"), link.deadline()).await?;
        best = best.min(link.clock.now().since(started));
    }
    let said = format!("{} answers in {best:.1?}", link.options.address);
    Ok(if best > SLOW {
        warning(
            "round trip",
            format!("{said}, which every lock has to wait for"),
        )
    } else {
        fine("round trip", said)
    })
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
async fn facts(link: &Link, command: &[&str]) -> Facts {
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
