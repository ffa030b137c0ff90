//! [`Failure`]: everything that can go wrong with a Redis server, in words, with the right kind and
//! with advice. One failed call fails many requests, so a failure can be turned into any number of
//! errors. Nothing here ever sees a password.

mod driver;
mod server;

use tenure_core::{Error, ErrorKind, Spelled};

use super::cluster::Redirect;
use super::options::Address;

pub(super) use driver::from_driver;
pub(super) use server::{from_server, from_text};

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

    /// Whether the slot is at another node of the cluster by now, or on its way there.
    pub(super) fn is_elsewhere(&self) -> bool {
        let elsewhere =
            |redirect: &Redirect| matches!(redirect, Redirect::Moved { .. } | Redirect::Moving);
        self.redirect.as_ref().is_some_and(elsewhere)
    }

    /// The same, saying what a cluster would have us do.
    pub(super) fn redirecting(self, redirect: Redirect) -> Self {
        Self {
            redirect: Some(redirect),
            ..self
        }
    }

    /// The same, of a node of a cluster that we know to be one.
    pub(super) fn at_node(self) -> Self {
        match self.redirect.clone() {
            Some(redirect) => self.in_cluster(&redirect),
            None => self,
        }
    }

    /// The same, when a cluster has not come to itself in time.
    pub(super) fn in_cluster(self, redirect: &Redirect) -> Self {
        let (kind, message) = match redirect {
            Redirect::Moved { .. } => (
                ErrorKind::Unavailable,
                "the nodes of the cluster do not agree on who has this slot: try again \
                 in a moment",
            ),
            Redirect::Moving => (
                ErrorKind::Refused,
                "the cluster is moving the slot to another node, and its locks cannot be used \
                 meanwhile: try again in a moment",
            ),
            Redirect::Down => (
                ErrorKind::Unavailable,
                "the cluster does not serve this slot: the node that has it is down, too many others \
                 are, or nobody has that slot (`redis-cli --cluster check` says which)",
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
                    "Redis did not answer within {}: it is down, stopped, overloaded or cut \
                     off (?call_timeout= waits longer)",
                    Spelled(limit)
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
                format!("no connection to Redis within {}: {advice}", Spelled(limit)),
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

/// A server that does not know a command repeats its arguments, and those of HELLO and AUTH are the
/// password.
fn without_arguments(text: &str) -> &str {
    let arguments = text.find(", with args").or_else(|| text.find("with args"));
    arguments.map_or(text, |place| &text[..place])
}

fn unauthorized() -> Failure {
    Failure::new(
        ErrorKind::Unauthorized,
        "the server refused the credentials: give user and password as redis://user:password@host \
         (a `@`, `/` or `:` inside them percent-encoded)",
    )
}
