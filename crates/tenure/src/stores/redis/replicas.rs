//! [`Replicas`]: with `?min_replicas=` a grant counts only once that many replicas have it.
//!
//! WAIT follows the acquires of a call on the same connection. It asks how far the replicas are with
//! what *this* connection has written, and an acquire that only finds its earlier grant writes nothing:
//! hence the mark.

use std::time::Duration;

use redis::{Cmd, Value};
use tenure_core::ErrorKind;

use super::errors::{self, Failure};
use super::options::RESERVED;

/// How many replicas must confirm a grant, and how long that may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replicas {
    pub(super) least: u32,
    pub(super) patience: Duration,
}

impl Replicas {
    /// What follows the acquires of a call.
    pub(super) fn commands(self) -> [Cmd; 2] {
        let mut mark = redis::cmd("SET");
        mark.arg(format!("{RESERVED}replicated"))
            .arg(1)
            .arg("PX")
            .arg(60_000);
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.least).arg(self.patience.as_millis());
        [mark, wait]
    }

    /// Why the grants of a call do not count, if they do not; from the answers to
    /// [`commands`](Self::commands).
    pub(super) fn shortfall(self, answers: Vec<Result<Value, Failure>>) -> Option<Failure> {
        let confirmed = match answers.into_iter().last() {
            Some(Ok(Value::Int(confirmed))) => confirmed,
            Some(Ok(Value::ServerError(error))) => return Some(errors::from_server(&error)),
            Some(Err(failure)) => return Some(failure),
            _ => {
                return Some(Failure::protocol(
                    "the server's answer to WAIT is no number",
                ));
            }
        };
        (confirmed < i64::from(self.least)).then(|| {
            Failure::new(
                ErrorKind::Refused,
                format!(
                    "{confirmed} of {} replicas confirmed the lock within {:?}, so it does not \
                     count: a replica is down or lags (?min_replicas=, ?replica_timeout=)",
                    self.least, self.patience
                ),
            )
        })
    }
}
