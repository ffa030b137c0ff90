//! [`Replicas`]: with `?min_replicas=` a grant counts only once that many replicas have it.
//!
//! WAIT holds up its connection, so it has one of its own. It asks how far the replicas are with what
//! *that* connection has written: hence the mark, which is written after the grants and so confirmed after
//! them.

use std::time::Duration;

use redis::{Pipeline, Value};
use tenure_core::{ErrorKind, Moment, Spelled};

use super::cluster::tag;
use super::connection::{Link, Live};
use super::decode::Answer;
use super::errors::{self, Failure};
use super::memory::Part;
use super::options::RESERVED;

/// How many replicas must confirm a grant, and how long that may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replicas {
    pub(super) least: u32,
    pub(super) patience: Duration,
}

/// Makes failures of the grants among `answers` that too few replicas have; `part` is that of one.
///
/// They are not given back here: that might arrive late, when whoever asks again has it and relies on
/// it. The asker gives it back when it stops asking.
pub(super) async fn confirm(
    link: &Link,
    live: &Live,
    part: Part,
    answers: &mut [Result<Answer, Failure>],
    deadline: Moment,
) {
    let is_grant = |answer: &Result<Answer, Failure>| answer.as_ref().is_ok_and(Answer::is_grant);
    let Some(replicas) = link.options.replicas else {
        return;
    };
    let commands = replicas.commands(part);
    let confirmation = link.send_confirming(live, &commands, deadline).await;
    if let Some(shortfall) = replicas.shortfall(confirmation) {
        for answer in answers.iter_mut().filter(|answer| is_grant(answer)) {
            *answer = Err(shortfall.clone());
        }
    }
}

impl Replicas {
    /// In a cluster the mark must be in a slot of this node.
    fn commands(self, part: Part) -> Pipeline {
        let mut commands = Pipeline::with_capacity(2);
        let mark = match part {
            Some(slot) => format!("{RESERVED}{{{}}}:replicated", tag(slot)),
            None => format!("{RESERVED}replicated"),
        };
        let mark = commands.cmd("SET").arg(mark);
        mark.arg(1).arg("PX").arg(60_000);
        let wait = commands.cmd("WAIT").arg(self.least);
        wait.arg(self.patience.as_millis());
        commands
    }

    /// Why grants do not count, if they do not; from the answers to [`commands`](Self::commands).
    fn shortfall(self, answers: Result<Vec<Value>, Failure>) -> Option<Failure> {
        let answers = match answers {
            Ok(answers) => answers,
            Err(failure) => return Some(failure),
        };
        // Without the mark, nothing was waited for.
        let confirmed = match &answers[..] {
            [Value::ServerError(error), ..] | [_, Value::ServerError(error)] => {
                return Some(errors::from_server(error));
            }
            [_, Value::Int(confirmed)] => *confirmed,
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
                    "{confirmed} of {} replicas confirmed the lock within {}, so it does not \
                     count: a replica is down or lags (?min_replicas=, ?replica_timeout=)",
                    self.least,
                    Spelled(self.patience)
                ),
            )
        })
    }
}
