//! What the driver reports: the connection, or an error of the server while connecting.

use redis::{ErrorKind as DriverKind, RedisError};
use tenure_core::ErrorKind;

use super::super::options::Address;
use super::{Failure, from_text, unauthorized};

/// What the driver reports: the connection, or an error of the server while connecting.
pub(in super::super) fn from_driver(error: &RedisError, address: &Address) -> Failure {
    let failure = match error.kind() {
        DriverKind::AuthenticationFailed => unauthorized(),
        DriverKind::Parse | DriverKind::UnexpectedReturnType => Failure::protocol(
            "the server's answer is not Redis protocol: is this the address of a Redis server?",
        ),
        DriverKind::RESP3NotSupported => Failure::new(
            ErrorKind::Unsupported,
            "the server does not speak RESP3 (Redis 6 and later do): use ?protocol=resp2",
        ),
        DriverKind::InvalidClientConfig | DriverKind::Client => Failure::new(
            ErrorKind::Configuration,
            "the Redis driver does not accept these settings",
        ),
        DriverKind::Io => unreachable(error, address),
        _ => {
            let code = error.code().unwrap_or("ERR");
            let text = format!("{code} {}", error.detail().unwrap_or_default());
            return from_text(&text).at(address);
        }
    };
    failure.caused_by(error).at(address)
}

fn unreachable(error: &RedisError, address: &Address) -> Failure {
    let message = if error.is_connection_refusal() {
        "nothing listens there: is the Redis server running, and is this its address?"
    } else if error.is_timeout() {
        "Redis did not answer in time: it is down, stopped, overloaded or cut off"
    } else if address.is_tls() {
        "the encrypted connection to Redis failed or was cut: check that the server speaks TLS on \
         this port, and that its certificate is trusted here (SSL_CERT_FILE names other roots)"
    } else {
        "the connection to Redis failed or was cut"
    };
    Failure {
        fatal: true,
        ..Failure::new(ErrorKind::Unavailable, message)
    }
}
