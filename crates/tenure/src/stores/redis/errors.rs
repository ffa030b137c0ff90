//! [`Failure`]: everything that can go wrong with a Redis server, in words, with the right kind and
//! with advice. One failed call fails many requests, so a failure can be turned into any number of
//! errors. Nothing here ever sees a password.

use redis::{ErrorKind as DriverKind, RedisError, ServerError};
use tenure_core::{Error, ErrorKind};

use super::cluster::Redirect;
use super::options::Address;

/// Why a request, or a whole call, failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    message: String,
    cause: Option<String>,
    address: Option<String>,
    /// Whether the connection can no longer be trusted.
    pub(super) fatal: bool,
    /// What else a cluster would have us do.
    pub(super) redirect: Option<Redirect>,
}

impl Failure {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: None,
            address: None,
            fatal: false,
            redirect: None,
        }
    }

    /// A reply that does not belong to its request, or that we cannot read.
    pub(super) fn protocol(message: impl Into<String>) -> Self {
        Self {
            fatal: true,
            ..Self::new(ErrorKind::Protocol, message)
        }
    }

    /// The same, of one request only.
    pub(super) fn sparing_the_connection(self) -> Self {
        Self {
            fatal: false,
            ..self
        }
    }

    /// The same, saying whether the connection can no longer be trusted.
    pub(super) fn ending_the_connection(self, fatal: bool) -> Self {
        Self { fatal, ..self }
    }

    /// The same, saying what a cluster would have us do.
    pub(super) fn redirecting(self, redirect: Redirect) -> Self {
        Self {
            redirect: Some(redirect),
            ..self
        }
    }

    /// The same, when a cluster has not come to itself in time.
    pub(super) fn in_cluster(self, redirect: &Redirect) -> Self {
        let (kind, message) = match redirect {
            Redirect::Moved { .. } => (
                ErrorKind::Unavailable,
                "the nodes of the cluster do not agree on who has the slot of this lock: try again \
                 in a moment",
            ),
            Redirect::Moving => (
                ErrorKind::Refused,
                "the cluster is moving the slot of this lock to another node, and it cannot be used \
                 meanwhile: try again in a moment",
            ),
            Redirect::Down => (
                ErrorKind::Unavailable,
                "the cluster does not serve this lock: the node that has its slot is down, too many \
                 others are, or nobody has that slot (`redis-cli --cluster check` says which)",
            ),
            Redirect::Loading => return self,
        };
        Self {
            kind,
            message: message.into(),
            ..self
        }
    }

    /// No answer within the time that a call may take.
    pub(super) fn timeout(limit: std::time::Duration) -> Self {
        Self {
            fatal: true,
            ..Self::new(
                ErrorKind::Unavailable,
                format!(
                    "Redis did not answer within {limit:?}: it is down, stopped, overloaded or cut \
                     off (?call_timeout= waits longer)"
                ),
            )
        }
    }

    /// No connection within the time that connecting may take.
    pub(super) fn unconnected(limit: std::time::Duration, address: &Address) -> Self {
        let advice = if address.is_tls() {
            "it is down, stopped or cut off, or it does not speak TLS on this port"
        } else {
            "it is down, stopped, overloaded or cut off"
        };
        Self {
            fatal: true,
            ..Self::new(
                ErrorKind::Unavailable,
                format!("no connection to Redis within {limit:?}: {advice}"),
            )
        }
        .at(address)
    }

    /// The connection ended while it was being made.
    pub(super) fn cut(address: &Address) -> Self {
        let message = "the connection to Redis was cut as soon as it was made";
        Self::new(ErrorKind::Unavailable, message).at(address)
    }

    /// Another call found out that the connection cannot be trusted.
    pub(super) fn given_up(address: &Address) -> Self {
        let message = "the connection to Redis was lost before the answer came";
        Self::new(ErrorKind::Unavailable, message).at(address)
    }

    pub(super) fn at(mut self, address: &impl ToString) -> Self {
        self.address = Some(address.to_string());
        self
    }

    fn caused_by(mut self, cause: &impl ToString) -> Self {
        self.cause = Some(without_arguments(&cause.to_string()).to_owned());
        self
    }

    pub(super) fn error(&self) -> Error {
        let mut error = Error::new(self.kind, self.message.clone());
        if let Some(address) = &self.address {
            error = error.with("server", address);
        }
        match &self.cause {
            Some(cause) => error.because(cause.clone()),
            None => error,
        }
    }
}

/// What the driver reports: the connection, or an error of the server while connecting.
pub(super) fn from_driver(error: &RedisError, address: &Address) -> Failure {
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

/// An error reply to a whole call.
pub(super) fn from_server(error: &ServerError) -> Failure {
    from_text(&format!(
        "{} {}",
        error.code(),
        error.details().unwrap_or_default()
    ))
}

/// An error text of the server: a code word, then words. Inside scripts, older servers put other
/// words before the code.
pub(super) fn from_text(text: &str) -> Failure {
    // Redis 7 adds where in the script it happened, which helps nobody.
    let place = text
        .find(" script: ")
        .filter(|_| text.contains(", on @user_script"));
    let text = without_arguments(place.map_or(text, |place| &text[..place])).trim();
    let known = text.split_whitespace().find_map(|word| {
        let code = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        by_code(code, text)
    });
    let failure = known.unwrap_or_else(|| by_words(text));
    Failure {
        redirect: Redirect::read(text),
        ..failure.caused_by(&text)
    }
}

/// A server that does not know a command repeats its arguments, and those of HELLO and AUTH are the
/// password.
fn without_arguments(text: &str) -> &str {
    let arguments = text.find(", with args").or_else(|| text.find("with args"));
    arguments.map_or(text, |place| &text[..place])
}

fn by_code(code: &str, text: &str) -> Option<Failure> {
    use ErrorKind::{Configuration, Conflict, Forbidden, Refused, Unsupported};
    let (kind, message) = match code {
        "WRONGTYPE" => (
            Conflict,
            "a key that this lock needs holds another type of value, so something else uses the \
             same keys: rename or delete that key, or choose another ?prefix=",
        ),
        "READONLY" => {
            return Some(demoted(
                "the server is a read-only replica: connect to the primary",
            ));
        }
        "OOM" => (
            Refused,
            "the server is out of memory (maxmemory) and takes no new data: free memory or raise \
             the limit",
        ),
        "LOADING" => (
            Refused,
            "the server has just started and is still loading its data: try again in a moment",
        ),
        "NOAUTH" | "WRONGPASS" => return Some(unauthorized()),
        "NOPERM" => (Forbidden, permission_advice(text)),
        "MISCONF" => (
            Refused,
            "the server cannot save its data to disk and so refuses to write: look at its log and \
             its free disk space",
        ),
        "BUSY" => (
            Refused,
            "the server is busy with somebody's long-running script: wait, or end it with SCRIPT KILL",
        ),
        "MASTERDOWN" => {
            return Some(demoted(
                "the server is a replica that has lost its primary: connect to the primary",
            ));
        }
        "NOREPLICAS" => (
            Refused,
            "the server has too few replicas to accept a write (min-replicas-to-write)",
        ),
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN" => (
            Unsupported,
            "the server belongs to a Redis Cluster: use redis+cluster:// with the same address",
        ),
        "NOPROTO" => (
            Unsupported,
            "the server does not speak RESP3: use ?protocol=resp2",
        ),
        "DENIED" => (
            Configuration,
            "the server runs in protected mode and refuses connections from other machines: \
             configure a password or protected-mode on the server",
        ),
        _ => return None,
    };
    Some(Failure::new(kind, message))
}

/// The next connection may lead to the primary: a name or a sentinel tells where it is.
fn demoted(message: &str) -> Failure {
    Failure {
        fatal: true,
        ..Failure::new(ErrorKind::Refused, message)
    }
}

fn by_words(text: &str) -> Failure {
    let lower = text.to_ascii_lowercase();
    if lower.contains("unknown command") && lower.contains("hello") {
        Failure::new(
            ErrorKind::Unsupported,
            "the server does not speak RESP3: use ?protocol=resp2",
        )
    } else if lower.contains("unknown command") || lower.contains("unknown subcommand") {
        Failure::new(
            ErrorKind::Unsupported,
            "the server lacks a command that tenure needs (EVAL, EVALSHA, TIME, PUBLISH, SUBSCRIBE \
             and the commands of strings, hashes and sorted sets): it was disabled or renamed, or \
             this is not Redis",
        )
    } else if lower.contains("cluster support disabled") {
        Failure::new(
            ErrorKind::Configuration,
            "the server is not a node of a Redis Cluster: use redis:// with the same address",
        )
    } else if lower.contains("max number of clients") {
        Failure::new(
            ErrorKind::Refused,
            "the server has as many clients as it allows (maxclients)",
        )
    } else if lower.contains("db index is out of range") || lower.contains("select is not allowed")
    {
        Failure::new(
            ErrorKind::Configuration,
            "the server has no database of this number",
        )
    } else if lower.contains("without any password configured")
        || lower.contains("invalid password")
    {
        unauthorized()
    } else {
        Failure::new(
            ErrorKind::Protocol,
            "the server answered with an error that tenure does not know",
        )
    }
}

fn permission_advice(text: &str) -> &'static str {
    if text.contains("channel") {
        "the Redis user may not use tenure's channels: allow them with ACL SETUSER <user> \
         &<prefix>in:* (with the default prefix &tenure:in:*)"
    } else if text.contains("key") {
        "the Redis user may not use tenure's keys: allow them with ACL SETUSER <user> ~<prefix>* \
         ~~tenure:* (with the default prefix ~tenure:*)"
    } else {
        "the Redis user lacks a command: allow them with ACL SETUSER <user> +@read +@write \
         +@scripting +@pubsub +@connection +time"
    }
}

fn unauthorized() -> Failure {
    Failure::new(
        ErrorKind::Unauthorized,
        "the server refused the credentials: give user and password as redis://user:password@host \
         (a `@`, `/` or `:` inside them percent-encoded)",
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_server_has_its_kind() {
        for (text, kind) in [
            ("WRONGTYPE Operation against a key", ErrorKind::Conflict),
            (
                "READONLY You can't write against a read only replica. script: abc, on @user_script:9.",
                ErrorKind::Refused,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                ErrorKind::Refused,
            ),
            (
                "ERR Error running script: @user_script: 3: -OOM command not allowed",
                ErrorKind::Refused,
            ),
            (
                "LOADING Redis is loading the dataset in memory",
                ErrorKind::Refused,
            ),
            ("NOAUTH Authentication required.", ErrorKind::Unauthorized),
            (
                "NOPERM this user has no permissions to run the 'eval' command",
                ErrorKind::Forbidden,
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots",
                ErrorKind::Refused,
            ),
            ("BUSY Redis is busy running a script.", ErrorKind::Refused),
            ("MASTERDOWN Link with MASTER is down", ErrorKind::Refused),
            ("MOVED 866 127.0.0.1:7001", ErrorKind::Unsupported),
            (
                "ERR unknown command 'EVALSHA', with args beginning with:",
                ErrorKind::Unsupported,
            ),
            ("ERR max number of clients reached", ErrorKind::Refused),
            ("ERR something new", ErrorKind::Protocol),
        ] {
            assert_eq!(from_text(text).kind, kind, "{text}");
        }
    }

    #[test]
    fn the_arguments_of_an_unknown_command_are_left_out() {
        for text in [
            "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'OOM-pw' ",
            "ERR unknown command `AUTH`, with args beginning with: `OOM-pw`, ",
        ] {
            let failure = from_text(text);
            assert_eq!(failure.kind, ErrorKind::Unsupported);
            assert!(!format!("{failure:?} {}", failure.error()).contains("OOM-pw"));
        }
    }

    #[test]
    fn the_place_in_the_script_is_left_out() {
        let error = from_text("READONLY You can't write. script: abc, on @user_script:9.").error();
        assert!(!error.to_string().contains("user_script"), "{error}");
    }
}
