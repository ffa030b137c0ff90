//! [`Address`]: where a server is, and what the driver needs to connect to it.

use std::fmt;
use std::path::PathBuf;

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};
use tenure_core::Error;
use url::Url;

use super::{decoded, wrong};
use crate::stores::redis::sentinel::Service;

const DEFAULT_PORT: u16 = 6379;

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stores::redis) enum Address {
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
pub(in crate::stores::redis) struct Credentials<'a> {
    pub(in crate::stores::redis) user: Option<&'a str>,
    pub(in crate::stores::redis) password: Option<&'a str>,
}

/// What the driver needs to connect.
pub(in crate::stores::redis) fn connection_info(
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

impl Address {
    pub(super) fn of(url: &Url) -> Result<Self, Error> {
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
    pub(in crate::stores::redis) fn beside(&self, host: Option<&str>, port: u16) -> Self {
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
    pub(in crate::stores::redis) fn is_tls(&self) -> bool {
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
