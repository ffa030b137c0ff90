//! Saying hello: look, decide, and settle it, until nobody interferes.

use redis::{Pipeline, Value};
use tenure_core::{ErrorKind, Moment, Record};

use super::super::connection::{Link, Live};
use super::super::errors::Failure;
use super::super::sentinel::Epoch;
use super::judge::{Judged, judge};
use super::look::{look, text_of};
use super::settle::settle_each;
use super::{Part, read, sweep};

/// How often the record may change under our eyes before we give up.
pub(super) const TRIES: usize = 10;

/// In place of a life: there was no record. As long as one.
const NO_LIFE: &str = "----------------";

/// What is known of a server to whom hello was said.
pub(super) struct Met {
    /// `None` if nobody has written one yet, and we may not.
    pub(super) record: Option<Record>,
    /// Whether each call has to look at the replication.
    pub(super) replicated: bool,
    /// Under Sentinel: in which configuration the life began, if it says so.
    pub(super) epoch: Option<Epoch>,
}

impl Met {
    /// What every call begins with.
    pub(super) fn argument(&self, record_key: &str) -> String {
        let flag = if self.replicated { 'r' } else { '-' };
        match &self.record {
            Some(record) => format!("{}{flag}{record_key}", record.life),
            None => format!("{NO_LIFE}{flag}{record_key}"),
        }
    }
}

/// Looks, decides and settles it, for each of these parts. `None` if the server does not tell.
pub(super) async fn meet(
    link: &Link,
    live: &Live,
    parts: &[Part],
    deadline: Moment,
) -> Vec<Result<Option<Met>, Failure>> {
    let mut met: Vec<Option<Result<Option<Met>, Failure>>> = parts.iter().map(|_| None).collect();
    let mut waits = None;
    for _ in 0..TRIES {
        let open = (0..parts.len()).filter(|index| met[*index].is_none());
        let open: Vec<usize> = open.collect();
        if open.is_empty() {
            break;
        }
        let asked: Vec<Part> = open.iter().map(|index| parts[*index]).collect();
        let looks = match look(link, live, &asked, deadline).await {
            Ok(Some(looks)) => looks,
            Ok(None) => return written(link, live, parts, deadline).await,
            Err(failure) => return parts.iter().map(|_| Err(failure.clone())).collect(),
        };
        let mut begins = Vec::new();
        for (index, look) in open.into_iter().zip(looks) {
            let judged = look.and_then(|look| judge(link, parts[index], look));
            match judged {
                Ok(Judged::Met(known)) => met[index] = Some(Ok(Some(known))),
                Ok(Judged::Begins(look, beginning)) => {
                    waits = waits.or(parts[index].filter(|_| !beginning.wait.is_zero()));
                    begins.push((parts[index], *look, beginning));
                }
                Err(failure) => met[index] = Some(Err(failure)),
            }
        }
        // Whether or not it was we who began it: the next look tells what it is now.
        let settled = settle_each(link, live, &begins, deadline).await;
        for ((part, ..), settled) in begins.iter().zip(settled) {
            if let (Err(failure), Some(index)) = (settled, parts.iter().position(|it| it == part)) {
                met[index] = Some(Err(failure));
            }
        }
    }
    if let Some(slot) = waits {
        sweep::begin(link, slot);
    }
    let met = met.into_iter();
    met.map(|met| met.unwrap_or_else(|| Err(interference())))
        .collect()
}

/// What others wrote down about these parts, for a user who may not look for itself: it is kept out
/// with all others while they are known to recover, but nothing that they forget is noticed by it.
pub(super) async fn written(
    link: &Link,
    live: &Live,
    parts: &[Part],
    deadline: Moment,
) -> Vec<Result<Option<Met>, Failure>> {
    let mut pipeline = Pipeline::new();
    for part in parts {
        pipeline.cmd("GET").arg(link.options.keys.record(*part));
    }
    let values = match link.send_all(live, &pipeline, deadline).await {
        Ok(values) => values,
        Err(failure) => return parts.iter().map(|_| Err(failure.clone())).collect(),
    };
    let known = |value| {
        let text = match value {
            Value::Nil => None,
            value => Some(text_of(value).unwrap_or_default()),
        };
        let record = text.as_deref().map(read);
        // One that cannot be read is none of ours.
        let met = (record != Some(None)).then(|| Met {
            record: record.flatten(),
            replicated: false,
            // Nor in which configuration it is: nobody but those who may look can begin the next one.
            epoch: None,
        });
        Ok(met)
    };
    values.into_iter().map(known).collect()
}

pub(super) fn interference() -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        "the server begins another life again and again: do several servers answer at this address?",
    )
}
