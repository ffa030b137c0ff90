//! [`Service`]: what a `redis+sentinel:` URL says about whom to ask, and for what.

use std::borrow::Cow;
use std::fmt;

use tenure_core::{Error, ErrorKind, Retry};
use url::Url;

use super::super::errors::Failure;
use super::super::options::{Address, decoded, non_empty};

const SENTINEL_PORT: u16 = 26379;

/// A service that sentinels watch over.
#[derive(Clone, PartialEq, Eq)]
pub(in super::super) struct Service {
    /// What the sentinels call it.
    pub(super) name: String,
    /// Where they are, each once.
    pub(super) sentinels: Vec<Address>,
    /// For the sentinels; the servers have credentials of their own.
    pub(in super::super) user: Option<String>,
    pub(in super::super) password: Option<String>,
    tls: bool,
}

impl Service {
    /// Takes the hosts out of `text`, because a URL as such has one: what is left has one, too.
    /// `None` if it is a URL of another scheme.
    pub(in super::super) fn split(text: &str) -> Option<(Cow<'_, str>, &str)> {
        let (scheme, rest) = text.split_once("://")?;
        if !matches!(scheme, "redis+sentinel" | "rediss+sentinel") {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let start = rest[..end].rfind('@').map_or(0, |at| at + 1);
        let (credentials, hosts, tail) = (&rest[..start], &rest[start..end], &rest[end..]);
        let text = format!("{scheme}://{credentials}sentinels{tail}");
        Some((text.into(), hosts))
    }

    /// Reads what [`split`](Self::split) has taken apart.
    pub(in super::super) fn of(url: &Url, hosts: &str) -> Result<Self, Error> {
        let tls = url.scheme() == "rediss+sentinel";
        let mut sentinels = Vec::new();
        for host in hosts.split(',') {
            let sentinel = sentinel(host, tls)?;
            if sentinels.contains(&sentinel) {
                return Err(wrong(format!("the sentinel {sentinel} is named twice")));
            }
            sentinels.push(sentinel);
        }
        let name = url.path().trim_matches('/').split('/').next().unwrap_or("");
        let name = non_empty(decoded(name, "service")?).ok_or_else(|| {
            wrong(
                "the URL does not say which service the sentinels watch over: write \
                 redis+sentinel://host1,host2,host3/mymaster",
            )
        })?;
        Ok(Self {
            name,
            sentinels,
            user: None,
            password: None,
            tls,
        })
    }

    /// What follows the name of the service: the database.
    pub(in super::super) fn database(url: &Url) -> &str {
        let path = url.path().trim_matches('/');
        path.split_once('/').map_or("", |(_, database)| database)
    }

    /// Where the server is that they name.
    pub(super) fn server(&self, host: String, port: u16) -> Address {
        address(host, port, self.tls)
    }

    pub(in super::super) fn is_tls(&self) -> bool {
        self.tls
    }

    /// How many of them are a majority.
    pub(super) fn majority(&self) -> usize {
        self.sentinels.len() / 2 + 1
    }

    /// What is said by so many who refuse for good that the others are no majority, however long one waits for them.
    pub(super) fn refusal<'a>(&self, failures: &'a [Failure]) -> Option<&'a Failure> {
        let lasting = |failure: &&Failure| failure.error().retry() == Retry::Never;
        let count = failures.iter().filter(lasting).count();
        let is_enough = count > self.sentinels.len() - self.majority();
        failures.iter().find(lasting).filter(|_| is_enough)
    }
}

fn sentinel(text: &str, tls: bool) -> Result<Address, Error> {
    // The port is kept apart by the same rules as in any other URL, brackets of IPv6 included.
    let url = Url::parse(&format!("redis://{text}"));
    let url = url
        .ok()
        .filter(|url| url.host().is_some() && url.path().is_empty());
    let url = url.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not the address of a sentinel: write them as host1,host2:26379,host3"
        ))
    })?;
    let host = match url.host() {
        Some(url::Host::Ipv6(address)) => address.to_string(),
        host => decoded(
            &host.map(|host| host.to_string()).unwrap_or_default(),
            "host",
        )?,
    };
    Ok(address(host, url.port().unwrap_or(SENTINEL_PORT), tls))
}

fn address(host: String, port: u16, tls: bool) -> Address {
    if tls {
        Address::Tls { host, port }
    } else {
        Address::Tcp { host, port }
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentinels: Vec<_> = self.sentinels.iter().map(ToString::to_string).collect();
        write!(f, "{} (of sentinels {})", self.name, sentinels.join(", "))
    }
}

/// Without the password.
impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
