//! [`Options`]: what a `redis:` URL says. Nothing here talks to a server, and no error of this file
//! ever shows a password.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};
use tenure_core::{Error, ErrorKind, Recovery, Ttl};

use url::Url;

use super::keys::{Keys, Member};
use super::memory::Caution;
use super::replicas::Replicas;
use super::sentinel::Service;
use crate::stores::url_options::{duration, nearest};

/// Everything before this in a key is reserved for what the store keeps beside its locks.
pub(super) const RESERVED: &str = "~tenure:";

const DEFAULT_PREFIX: &str = "tenure:";
const DEFAULT_PORT: u16 = 6379;
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(2);
const DEFAULT_REPLICA_TIMEOUT: Duration = Duration::from_millis(200);
const KNOWN: [&str; 12] = [
    "prefix",
    "protocol",
    "call_timeout",
    "min_replicas",
    "replica_timeout",
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

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Tcp {
        host: String,
        port: u16,
    },
    Tls {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
    /// Wherever the sentinels of a service say.
    Service(Service),
}

/// What a server wants to know before it serves us.
#[derive(Clone, Copy)]
pub(super) struct Credentials<'a> {
    pub(super) user: Option<&'a str>,
    pub(super) password: Option<&'a str>,
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
        Ok(match options.address {
            Address::Service(_) => options.for_a_member().for_replicas(),
            _ => options,
        })
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
    pub(super) fn for_replicas(mut self) -> Self {
        self.caution.replicated = true;
        self
    }

    fn check_replicas(&mut self, timeout_given: bool) -> Result<(), Error> {
        self.replicas = match self.replicas {
            Some(replicas) if replicas.least == 0 && timeout_given => {
                return Err(wrong("replica_timeout needs min_replicas, of 1 or more"));
            }
            Some(replicas) if replicas.patience * 2 > self.call_timeout => {
                return Err(wrong(format!(
                    "a replica_timeout of {:?} is too long for a call_timeout of {:?}: it may be half                      of it at most",
                    replicas.patience, self.call_timeout
                )));
            }
            replicas => replicas.filter(|replicas| replicas.least > 0),
        };
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

    /// The same for servers of which it is not noticed when they forget.
    pub(super) fn unprotected(mut self) -> Self {
        self.caution.recovery = Recovery::Off;
        self
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

/// What the driver needs to connect.
pub(super) fn connection_info(
    address: &Address,
    credentials: Credentials<'_>,
    database: i64,
    protocol: ProtocolVersion,
) -> redis::RedisResult<ConnectionInfo> {
    let mut settings = RedisConnectionInfo::default()
        .set_db(database)
        .set_protocol(protocol)
        .set_lib_name("tenure", env!("CARGO_PKG_VERSION"));
    if let Some(user) = credentials.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = credentials.password {
        settings = settings.set_password(password);
    }
    let address = match address.clone() {
        Address::Tcp { host, port } => ConnectionAddr::Tcp(host, port),
        Address::Tls { host, port } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            tls_params: None,
        },
        Address::Unix(path) => ConnectionAddr::Unix(path),
        // Whoever connects has asked the sentinels before.
        Address::Service(_) => {
            let kind = redis::ErrorKind::InvalidClientConfig;
            return Err((kind, "a service is not an address").into());
        }
    };
    let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    Ok(address
        .into_connection_info()?
        .set_redis_settings(settings)
        .set_tcp_settings(tcp))
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

impl Address {
    fn of(url: &Url) -> Result<Self, Error> {
        let host = match url.host() {
            Some(url::Host::Ipv6(address)) => address.to_string(),
            Some(host) if !host.to_string().is_empty() => decoded(&host.to_string(), "host name")?,
            _ => "localhost".to_owned(),
        };
        let port = url.port().unwrap_or(DEFAULT_PORT);
        match url.scheme() {
            "redis" | "valkey" => Ok(Self::Tcp { host, port }),
            "rediss" | "valkeys" => Ok(Self::Tls { host, port }),
            "redis+unix" | "unix" | "valkey+unix" => {
                let path = decoded(url.path(), "path")?;
                if path.is_empty() || path == "/" || url.has_host() && url.host_str() != Some("") {
                    return Err(wrong(
                        "a Unix socket is written redis+unix:///path/to/redis.sock (three slashes)",
                    ));
                }
                Ok(Self::Unix(path.into()))
            }
            other => Err(wrong(format!(
                "`{other}:` is not a Redis URL: use redis://, rediss://, redis+unix:// or \
                 redis+sentinel://"
            ))),
        }
    }

    /// Another port, on another host or the same.
    pub(super) fn beside(&self, host: Option<&str>, port: u16) -> Self {
        let own = match self {
            Self::Tcp { host, .. } | Self::Tls { host, .. } => host,
            Self::Unix(_) | Self::Service(_) => "localhost",
        };
        let host = host.unwrap_or(own).to_owned();
        if self.is_tls() {
            Self::Tls { host, port }
        } else {
            Self::Tcp { host, port }
        }
    }

    /// Whether the connection is encrypted.
    pub(super) fn is_tls(&self) -> bool {
        match self {
            Self::Tls { .. } => true,
            Self::Service(service) => service.is_tls(),
            Self::Tcp { .. } | Self::Unix(_) => false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } | Self::Tls { host, port } if host.contains(':') => {
                write!(f, "[{host}]:{port}")
            }
            Self::Tcp { host, port } | Self::Tls { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Service(service) => write!(f, "{service}"),
        }
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
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
             min_replicas, replica_timeout, max_ttl and recovery"
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

fn database(text: &str) -> Result<i64, Error> {
    if text.is_empty() {
        return Ok(0);
    }
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| wrong(format!("`{text}` is not a database number (0, 1, …)")))
}

fn prefix(text: &str) -> Result<String, Error> {
    if text.chars().any(char::is_control) {
        return Err(wrong("the prefix contains a control character"));
    }
    if text.starts_with(RESERVED) {
        return Err(wrong(format!(
            "the prefix must not begin with `{RESERVED}`: tenure keeps its own keys there"
        )));
    }
    Ok(text.to_owned())
}

fn protocol(text: &str) -> Result<ProtocolVersion, Error> {
    match text {
        "resp3" | "3" => Ok(ProtocolVersion::RESP3),
        "resp2" | "2" => Ok(ProtocolVersion::RESP2),
        _ => Err(wrong(format!(
            "`{text}` is not a protocol: use resp3 or resp2"
        ))),
    }
}

fn call_timeout(text: &str) -> Result<Duration, Error> {
    let allowed = Duration::from_millis(10)..=Duration::from_secs(600);
    let given = duration(text).filter(|given| allowed.contains(given));
    given.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a call_timeout: write a whole number with its unit, from 10ms to 10m, \
             for example 2s"
        ))
    })
}

fn max_ttl(text: &str) -> Result<Ttl, Error> {
    let length = duration(text).filter(|length| *length >= Duration::from_secs(1));
    let ttl = length.and_then(|length| Ttl::new(length).ok());
    ttl.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a max_ttl: write a whole number with its unit, 1s or more, for example \
             30s"
        ))
    })
}

fn recovery(text: &str) -> Result<Recovery, Error> {
    match text {
        "careful" => Ok(Recovery::Careful),
        "strict" => Ok(Recovery::Strict),
        "open" => Ok(Recovery::Open),
        "off" => Ok(Recovery::Off),
        _ => Err(wrong(format!(
            "`{text}` is not a way of recovery: use careful, strict, open or off"
        ))),
    }
}

fn min_replicas(text: &str, known: Option<Replicas>) -> Result<Replicas, Error> {
    let least = text.parse().ok().filter(|least| *least <= 100);
    let least = least.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a number of replicas: write min_replicas=1, for example"
        ))
    })?;
    let patience = known.map_or(DEFAULT_REPLICA_TIMEOUT, |known| known.patience);
    Ok(Replicas { least, patience })
}

fn replica_timeout(text: &str, known: Option<Replicas>) -> Result<Replicas, Error> {
    let patience = duration(text).filter(|given| *given >= Duration::from_millis(1));
    let patience = patience.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a replica_timeout: write a whole number with its unit, for example 200ms"
        ))
    })?;
    let least = known.map_or(0, |known| known.least);
    Ok(Replicas { least, patience })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> Options {
        Options::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    fn refusal(url: &str) -> String {
        let error = Options::parse(url).expect_err(url);
        assert_eq!(error.kind(), ErrorKind::Configuration);
        error.to_string()
    }

    #[test]
    fn a_host_alone_is_enough() {
        let options = options("redis://example");
        assert_eq!(options.address.to_string(), "example:6379");
        assert_eq!(options.prefix, "tenure:");
        assert_eq!(options.call_timeout, Duration::from_secs(2));
        assert_eq!((options.protocol, options.database), (None, 0));
    }

    #[test]
    fn every_part_is_read() {
        let options =
            options("rediss://us%20er:p%40ss@h:7000/3?prefix=&protocol=resp2&call_timeout=150ms");
        assert!(options.address.is_tls());
        assert_eq!(options.address.to_string(), "h:7000");
        assert_eq!(options.user.as_deref(), Some("us er"));
        assert_eq!(options.password.as_deref(), Some("p@ss"));
        assert_eq!(options.database, 3);
        assert_eq!(options.prefix, "");
        assert_eq!(options.protocol, Some(ProtocolVersion::RESP2));
        assert_eq!(options.call_timeout, Duration::from_millis(150));
    }

    #[test]
    fn a_unix_socket_takes_database_and_credentials_as_options() {
        for scheme in ["redis+unix", "unix"] {
            let options = options(&format!("{scheme}:///run/re%20dis.sock?db=2&user=u&pass=p"));
            assert_eq!(options.address, Address::Unix("/run/re dis.sock".into()));
            assert_eq!(options.database, 2);
            assert_eq!(options.password.as_deref(), Some("p"));
        }
        assert!(refusal("redis+unix://run/redis.sock").contains("three slashes"));
    }

    #[test]
    fn an_ipv6_address_keeps_its_brackets_on_screen_only() {
        let options = options("redis://[::1]:7000");
        assert_eq!(options.address.to_string(), "[::1]:7000");
        assert!(matches!(options.address, Address::Tcp { host, .. } if host == "::1"));
    }

    #[test]
    fn replicas_are_asked_for_with_a_time_limit_that_leaves_room_for_the_call() {
        let replicas = options("redis://h?replica_timeout=50ms&min_replicas=2").replicas;
        let patience = Duration::from_millis(50);
        assert_eq!(replicas, Some(Replicas { least: 2, patience }));
        assert_eq!(options("redis://h?min_replicas=0").replicas, None);
        assert!(refusal("redis://h?min_replicas=two").contains("min_replicas=1"));
        assert!(refusal("redis://h?replica_timeout=50ms").contains("needs min_replicas"));
        assert!(refusal("redis://h?min_replicas=1&replica_timeout=2s").contains("too long"));
        assert!(refusal("redis://h?min_replicas=1&call_timeout=100ms").contains("too long"));
    }

    #[test]
    fn sentinels_are_named_before_their_service() {
        let options = options(
            "redis+sentinel://u:p%2Cw@one,two:7000,[::1]:7001/my%20service/3?sentinel_user=s\
             &sentinel_pass=t&max_ttl=5s",
        );
        assert_eq!(
            options.address.to_string(),
            "my service (of sentinels one:26379, two:7000, [::1]:7001)"
        );
        assert_eq!(options.password.as_deref(), Some("p,w"));
        assert_eq!(options.database, 3);
        assert_eq!(options.caution.max_ttl.duration(), Duration::from_secs(5));
        assert_eq!(options.caution.recovery, Recovery::Strict);
        let Address::Service(service) = &options.address else {
            panic!("{:?}", options.address);
        };
        assert_eq!(service.user.as_deref(), Some("s"));
        assert_eq!(service.password.as_deref(), Some("t"));
        assert!(!options.address.is_tls());
        assert!(super::Options::parse("rediss+sentinel://h/s").is_ok_and(|it| it.address.is_tls()));
    }

    #[test]
    fn a_sentinel_url_that_lacks_something_is_refused_with_advice() {
        assert!(refusal("redis+sentinel://one,two").contains("/mymaster"));
        assert!(refusal("redis+sentinel://one,/s").contains("not the address"));
        assert!(refusal("redis+sentinel://one,one:26379/s").contains("twice"));
        assert!(refusal("redis+sentinel://one/s/db").contains("database number"));
        assert!(refusal("redis+sentinel://one/s?max_ttl=9").contains("with its unit"));
        assert!(refusal("redis://h?sentinel_pass=secret").contains("redis+sentinel"));
        assert!(!refusal("redis://h?sentinel_pass=secret").contains("secret"));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_advice() {
        assert!(refusal("redis://h?prefx=a").contains("did you mean `prefix`?"));
        assert!(refusal("redis://h?insecure").contains("there are prefix"));
        assert!(refusal("redis://h?prefix=a&prefix=b").contains("twice"));
        assert!(refusal("redis://h?protocol=4").contains("resp3 or resp2"));
        assert!(refusal("redis://h?call_timeout=2").contains("with its unit"));
        assert!(refusal("redis://h?call_timeout=1ms").contains("from 10ms"));
        assert!(refusal("redis://h?prefix=~tenure:x").contains("~tenure:"));
        assert!(refusal("redis://h/zero").contains("database number"));
        assert!(refusal("redis:h").contains("redis://host"));
        assert!(refusal("redis:/h").contains("redis://host"));
        assert!(refusal("redis://u:a/b@h").contains("`/` as %2F"));
        assert!(refusal("redis://h?db=1").contains("redis://host/1"));
        assert!(refusal("redis://h#insecure").contains('#'));
    }

    #[test]
    fn no_text_shows_the_password() {
        let secret = "hunter2";
        for url in [
            "redis://u:hunter2@h:port",
            "redis://u:hunter2@h/zero",
            "redis://u:hunter2@h?nonsense=1",
            "redis://u:hunter2@h#x",
            "ftp://u:hunter2@h",
            "redis+unix:///s?pass=hunter2&bad=1",
        ] {
            assert!(!refusal(url).contains(secret), "{url}");
        }
        let shown = format!("{:?}", options("redis://u:hunter2@h"));
        assert!(!shown.contains(secret), "{shown}");
    }
}
