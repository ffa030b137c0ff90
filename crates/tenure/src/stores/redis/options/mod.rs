//! [`Options`]: what a `redis:` URL says. Nothing here talks to a server, and no error of this file
//! ever shows a password.

mod address;
#[cfg(test)]
mod tests;
mod values;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use redis::{ConnectionInfo, ProtocolVersion};
use tenure_core::{Error, ErrorKind, Recovery, Spelled};
use url::Url;

use super::keys::{Keys, Member};
use super::memory::Caution;
use super::replicas::Replicas;
use super::sentinel::Service;
use crate::stores::url_options::nearest;
use values::{
    call_timeout, database, max_ttl, min_replicas, no_replicas, prefix, protocol, recovery,
    replica_timeout,
};

pub(super) use address::{Address, Credentials, connection_info};

/// Everything before this in a key is reserved for what the store keeps beside its locks.
pub(super) const RESERVED: &str = "~tenure:";

const DEFAULT_PREFIX: &str = "tenure:";
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(2);
const KNOWN: [&str; 13] = [
    "prefix",
    "protocol",
    "call_timeout",
    "min_replicas",
    "replica_timeout",
    "replicas",
    "max_ttl",
    "recovery",
    "db",
    "user",
    "pass",
    "sentinel_user",
    "sentinel_pass",
];

/// What a URL says.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) address: Address,
    user: Option<String>,
    password: Option<String>,
    database: i64,
    /// Put before each lock name to make its key.
    pub(super) prefix: String,
    /// Which lock has which key.
    pub(super) keys: Keys,
    /// `None`: RESP3, or RESP2 where the server refuses that.
    pub(super) protocol: Option<ProtocolVersion>,
    /// No call lasts longer.
    pub(super) call_timeout: Duration,
    /// Who else must have a grant before it counts.
    pub(super) replicas: Option<Replicas>,
    /// How careful to be with a server that may have forgotten.
    pub(super) caution: Caution,
    recovery_given: bool,
    /// Whether the server is asked to tell us of keys that change. Not an option of a URL.
    pub(super) watching: bool,
}

impl Options {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] that says what is wrong and what is meant instead.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        // The parser's own errors do not repeat the text, so they cannot leak a password.
        let (text, sentinels) = match Service::split(text) {
            Some((text, sentinels)) => (text, Some(sentinels)),
            None => (Cow::from(text), None),
        };
        if sentinels.is_none() && names_several(&text) {
            return Err(wrong(
                "several servers in the URL of a single one: which is meant? redis+sentinel://H1,H2,H3/SERVICE \
                 (a primary with replicas), redis+cluster://H1,H2 (a Redis Cluster), redlock://H1,H2,H3 (a \
                 majority of independent servers) or redis+all://H1,H2 (all of them); with TLS \
                 rediss+sentinel://, rediss+cluster://, redlocks://, rediss+all://",
            ));
        }
        let url = Url::parse(&text).map_err(|cause| not_a_url(&text).because(cause))?;
        if !text.contains("//") && !url.path().is_empty() {
            return Err(wrong(
                "two slashes are missing in the Redis URL: write redis://host",
            ));
        }
        if url.fragment().is_some() {
            return Err(wrong(
                "a Redis URL has no part after `#`: write a `#` in a password as %23",
            ));
        }
        let mut options = Self {
            address: match sentinels {
                Some(sentinels) => Address::Service(Service::of(&url, sentinels)?),
                None => Address::of(&url)?,
            },
            user: non_empty(decoded(url.username(), "user name")?),
            password: url
                .password()
                .map(|text| decoded(text, "password"))
                .transpose()?,
            database: 0,
            prefix: DEFAULT_PREFIX.to_owned(),
            keys: Keys::new(DEFAULT_PREFIX),
            protocol: None,
            call_timeout: DEFAULT_CALL_TIMEOUT,
            replicas: None,
            caution: Caution::default(),
            recovery_given: false,
            watching: false,
        };
        match options.address {
            Address::Unix(_) => {}
            Address::Service(_) => options.database = database(Service::database(&url))?,
            _ => options.database = database(url.path().trim_matches('/'))?,
        }
        let mut seen = Vec::new();
        for (key, value) in url.query_pairs() {
            if seen.contains(&key) {
                return Err(wrong(format!("the option `{key}` is given twice")));
            }
            options.set(&key, &value)?;
            seen.push(key);
        }
        options.check_replicas(seen.iter().any(|key| key == "replica_timeout"))?;
        match options.address {
            Address::Service(_) => options.for_a_member().for_replicas(),
            _ => Ok(options),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let unix = matches!(self.address, Address::Unix(_));
        match key {
            "prefix" => {
                self.prefix = prefix(value)?;
                self.keys = Keys::new(&self.prefix);
            }
            "protocol" => self.protocol = Some(protocol(value)?),
            "call_timeout" => self.call_timeout = call_timeout(value)?,
            "min_replicas" => self.replicas = Some(min_replicas(value, self.replicas)?),
            "replica_timeout" => self.replicas = Some(replica_timeout(value, self.replicas)?),
            "replicas" => self.caution.no_replicas = no_replicas(value)?,
            "sentinel_user" | "sentinel_pass" => return self.set_service(key, value),
            "max_ttl" => self.caution.max_ttl = max_ttl(value)?,
            "recovery" => {
                self.caution.recovery = recovery(value)?;
                self.recovery_given = true;
            }
            "db" if unix => self.database = database(value)?,
            "user" if unix => self.user = non_empty(value.to_owned()),
            "pass" if unix => self.password = Some(value.to_owned()),
            "db" => {
                return Err(wrong(
                    "write the database number as the path: redis://host/1",
                ));
            }
            "user" | "pass" => {
                return Err(wrong(
                    "write credentials before the host: redis://user:password@host",
                ));
            }
            _ => return Err(unknown_option(key)),
        }
        Ok(())
    }

    /// For a server that is one of several: strict, unless the URL says otherwise.
    pub(super) fn for_a_member(mut self) -> Self {
        if !self.recovery_given {
            self.caution.recovery = Recovery::Strict;
        }
        self
    }

    /// For a server whose place another may take.
    ///
    /// # Errors
    /// If the URL says that there is no such server.
    pub(super) fn for_replicas(mut self) -> Result<Self, Error> {
        if self.caution.no_replicas {
            return Err(wrong(
                "replicas=none is for a server whose place no other ever takes: under Sentinel and on a \
                 cluster a replica does, perhaps without the last grants. Leave it out",
            ));
        }
        self.caution.replicated = true;
        Ok(self)
    }

    fn check_replicas(&mut self, timeout_given: bool) -> Result<(), Error> {
        self.replicas = match self.replicas {
            Some(replicas) if replicas.least == 0 && timeout_given => {
                return Err(wrong("replica_timeout needs min_replicas, of 1 or more"));
            }
            Some(replicas) if replicas.patience * 2 > self.call_timeout => {
                return Err(wrong(format!(
                    "a replica_timeout of {} is too long for a call_timeout of {}: it may be half \
                     of it at most",
                    Spelled(replicas.patience),
                    Spelled(self.call_timeout)
                )));
            }
            replicas => replicas.filter(|replicas| replicas.least > 0),
        };
        if let (Some(_), true) = (self.replicas, self.caution.no_replicas) {
            return Err(wrong(
                "min_replicas and replicas=none contradict each other: a server has replicas, or it has \
                 none. Leave one of them out",
            ));
        }
        Ok(())
    }

    fn set_service(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let Address::Service(service) = &mut self.address else {
            return Err(wrong(format!(
                "the option `{key}` is for redis+sentinel:// only"
            )));
        };
        match key {
            "sentinel_user" => service.user = non_empty(value.to_owned()),
            _ => service.password = Some(value.to_owned()),
        }
        Ok(())
    }

    /// The same for a server elsewhere.
    pub(super) fn at(&self, address: Address) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }

    /// The same for a node of a cluster.
    pub(super) fn of(self, member: Member) -> Self {
        Self {
            keys: self.keys.of(member),
            ..self
        }
    }

    /// What tells this run of the server, and this database of it, from every other.
    pub(super) fn run_here(&self, run_id: &str, between: char) -> String {
        match self.database {
            0 => run_id.to_owned(),
            number => format!("{run_id}{between}{number}"),
        }
    }

    /// Whether locks are in the database that every server has.
    pub(super) fn is_first_database(&self) -> bool {
        self.database == 0
    }

    /// What the driver needs to connect to the server at `address` with this protocol.
    pub(super) fn connection_info(
        &self,
        address: &Address,
        protocol: ProtocolVersion,
    ) -> redis::RedisResult<ConnectionInfo> {
        let credentials = Credentials {
            user: self.user.as_deref(),
            password: self.password.as_deref(),
        };
        connection_info(address, credentials, self.database, protocol)
    }
}

/// Without the password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address)
            .field("database", &self.database)
            .field("prefix", &self.prefix)
            .field("call_timeout", &self.call_timeout)
            .finish_non_exhaustive()
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

/// Whether there is a comma where the host is. One in a password is none of these.
fn names_several(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (hosts, tail) = rest.split_at(end);
        let hosts = hosts.rsplit('@').next().unwrap_or_default();
        hosts.contains(',') && !tail.contains('@')
    })
}

fn not_a_url(text: &str) -> Error {
    wrong(if text.contains('@') {
        "the Redis URL is not a URL: in a user name or password write `/` as %2F, `#` as %23, \
         `?` as %3F, `@` as %40, `:` as %3A and `%` as %25"
    } else {
        "the Redis URL is not a URL"
    })
}

fn unknown_option(key: &str) -> Error {
    wrong(match nearest(key, &KNOWN) {
        Some(known) => {
            format!("a Redis URL has no option `{key}`: did you mean `{known}`?")
        }
        None => format!(
            "a Redis URL has no option `{key}`: there are prefix, protocol, call_timeout, \
             min_replicas, replica_timeout, replicas, max_ttl and recovery"
        ),
    })
}

pub(super) fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

pub(super) fn decoded(text: &str, what: &str) -> Result<String, Error> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| wrong(format!("the {what} in the URL is not UTF-8")))?;
    Ok(decoded.into_owned())
}
