//! What a server says about itself, judged: what it may not tell us is a warning, never a failure.

use std::collections::HashMap;

use tenure_core::{Finding, Severity};

use super::super::errors::Failure;
use super::{finding, fine, hidden, warning};

pub(super) type Facts = Result<HashMap<String, String>, Failure>;

/// What the server says about itself.
pub(super) struct About {
    pub(super) server: Facts,
    pub(super) replication: Facts,
    pub(super) safeguard: Facts,
    pub(super) eviction: Facts,
    pub(super) limit: Facts,
    pub(super) appending: Facts,
    pub(super) rewriting: Facts,
    pub(super) saving: Facts,
    /// What the URL says about others that have its data.
    pub(super) said: Said,
}

/// What the URL says about replicas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    /// There are none, and never will be.
    None,
    /// They take the server's place.
    TakeOver,
}

impl About {
    pub(super) fn findings(&self) -> [Finding; 4] {
        [
            self.version(),
            self.eviction(),
            self.persistence(),
            self.replication(),
        ]
    }

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
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        let numbers = (numbers.next().flatten(), numbers.next().flatten());
        let said = format!("{name} {version}");
        match numbers {
            (Some(0..=5), _) | (Some(6), Some(0..=1)) => finding(
                Severity::Danger,
                "version",
                format!("{said}: tenure needs 6.2 or later"),
            ),
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
        let rewriting = self.rewriting.as_ref().ok();
        let pauses = rewriting.and_then(|facts| facts.get("no-appendfsync-on-rewrite"));
        match (on, fsync, saves) {
            (true, "always", _) if pauses.is_some_and(|pauses| pauses != "no") => warning(
                "persistence",
                "appendonly with appendfsync always, but not while the file is rewritten: after a power \
                 failure then the server may forget locks that are held. Set no-appendfsync-on-rewrite to no.",
            ),
            (true, "always", _) => fine("persistence", self.durable()),
            (true, fsync, _) => warning(
                "persistence",
                format!(
                    "appendonly with appendfsync {fsync}: after a power failure the server may \
                     forget the last second or more, and with it locks that are held: nobody \
                     is let in then until they have ended, unless recovery is off"
                ),
            ),
            (false, _, true) => warning(
                "persistence",
                "snapshots only (save): a restart after a crash forgets everything since the last \
                 one, and with it locks that are held: nobody is let in then until they have ended, \
                 unless recovery is off. appendonly yes with appendfsync always forgets nothing, and with \
                 ?replicas=none in the URL nobody waits after a restart.",
            ),
            (false, _, false) => warning(
                "persistence",
                "none: a restart forgets every lock, and nobody is let in then until they have ended, \
                 unless recovery is off. appendonly yes with appendfsync always forgets nothing, and with \
                 ?replicas=none in the URL nobody waits after a restart.",
            ),
        }
    }

    /// What it means that every write is saved.
    fn durable(&self) -> String {
        let replication = self.replication.as_ref().ok();
        let alone = replication.is_some_and(|facts| replicas_behind(facts).is_empty());
        let meaning = match self.said {
            Said::None => {
                ", and the URL says that no replica ever takes its place: it is open at once"
            }
            Said::Nothing if alone => {
                ". Nobody is let in for max_ttl all the same, because a replica that took its place would look \
                 the same. If it has none and never gets one, say so with ?replicas=none in the URL of \
                 every client: then it is open at once"
            }
            Said::Nothing | Said::TakeOver => {
                ". A replica that takes its place may lack the last locks, so nobody is let in for \
                 max_ttl all the same"
            }
        };
        format!("appendonly with appendfsync always: a restart forgets nothing{meaning}")
    }

    fn replication(&self) -> Finding {
        let facts = match &self.replication {
            Ok(facts) => facts,
            Err(failure) => return hidden("replication", "INFO", failure),
        };
        if facts.get("role").is_some_and(|role| role == "slave") {
            return finding(
                Severity::Danger,
                "replication",
                "this server is a replica: it takes no locks. Connect to its primary.",
            );
        }
        let behind = replicas_behind(facts);
        let before = facts.get("master_replid2").map_or("", String::as_str);
        let followed = before.contains(|digit| digit != '0');
        let Some(furthest) = behind.iter().max() else {
            if followed && self.said == Said::None {
                return warning(
                    "replication",
                    "the URL says replicas=none, but this server was a replica or had one, so after a \
                     restart it waits like any other. Leave replicas=none out of the URL of every \
                     client, unless that is over for good.",
                );
            }
            return fine("replication", "a single server, no replicas");
        };
        let safeguard = self.safeguard.as_ref().ok();
        let safeguard = safeguard.and_then(|facts| facts.get("min-replicas-to-write"));
        let cut_off = match safeguard.map(String::as_str) {
            Some("0") => {
                "min-replicas-to-write is 0: cut off from them, it would go on granting locks. "
            }
            _ => "",
        };
        warning(
            "replication",
            format!(
                "{} replicas, {furthest} bytes behind at most: one that is promoted before the \
                 latest writes reached it does not know the latest locks. {cut_off}?min_replicas= \
                 narrows that window.",
                behind.len()
            ),
        )
    }
}

/// How many bytes each replica is behind, from lines such as
/// `slave0:ip=10.0.0.2,port=6379,state=online,offset=1234,lag=0`.
fn replicas_behind(facts: &HashMap<String, String>) -> Vec<u64> {
    let number = |text: &str| text.parse::<u64>().ok();
    let written = facts
        .get("master_repl_offset")
        .and_then(|text| number(text))
        .unwrap_or(0);
    let is_replica = |key: &str| {
        let digits = key.strip_prefix("slave").unwrap_or("x");
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let replicas = facts.iter().filter(|(key, _)| is_replica(key));
    let offset = |value: &str| {
        value
            .split(',')
            .find_map(|field| number(field.strip_prefix("offset=")?))
    };
    replicas
        .map(|(_, value)| written.saturating_sub(offset(value).unwrap_or(0)))
        .collect()
}
