//! Carrying out a batch: requests are sorted into calls of one script each, sent at once, and every
//! reply is checked to belong to its request.

mod allowed;
mod item;
mod nonce;
mod send;

use std::sync::Arc;

use redis::Value;
use tenure_core::{Error, ErrorKind, Moment, Outcome, Reply, Request};

use super::connection::{Link, Live};
use super::decode::{self, Answer};
use super::errors::{self, Failure};
use super::memory::Part;
use super::replicas;
use allowed::{allowed, protected};
use item::{Item, sorted};
use send::send;

pub(super) use nonce::{Nonce, Nonces};

/// Decides a batch. Never takes longer than a call may.
pub(super) async fn apply(
    link: &Link,
    nonces: &Nonces,
    batch: &[Request],
) -> Vec<Result<Reply, Error>> {
    let failed = |failure: Failure| failure.at(&link.options.address).error();
    let results = decide(link, nonces, batch.iter(), link.deadline()).await;
    let reply = |result: Result<Decided, Failure>| result.map(|decided| decided.reply);
    let results = results.into_iter().map(reply);
    results.map(|result| result.map_err(failed)).collect()
}

/// What was decided, and in which life of the server.
pub(super) struct Decided {
    pub(super) reply: Reply,
    /// The replication id with which that began, if it is known.
    pub(super) line: Option<Arc<str>>,
}

/// The same with answers and failures that say more.
pub(super) async fn decide<'a>(
    link: &Link,
    nonces: &Nonces,
    batch: impl ExactSizeIterator<Item = &'a Request>,
    deadline: Moment,
) -> Vec<Result<Decided, Failure>> {
    let mut results: Vec<Option<Result<Decided, Failure>>> = Vec::with_capacity(batch.len());
    let mut items = Vec::with_capacity(batch.len());
    for (index, request) in batch.enumerate() {
        results.push(None);
        let allowed = allowed(&link.options.prefix, &request.name)
            .and_then(|()| protected(&link.options.caution, &request.action));
        match allowed {
            Ok(()) => items.push(Item::first(index, request, nonces, &link.options.keys)),
            Err(failure) => results[index] = Some(Err(failure)),
        }
    }
    while !items.is_empty() {
        let answers = run(link, &items, deadline).await;
        let mut unfinished = Vec::new();
        for (item, (answer, line)) in items.iter().zip(answers) {
            match answer {
                Ok(Answer { reply, more }) => {
                    if let Some(reply) = reply {
                        results[item.index] = Some(Ok(Decided { reply, line }));
                    }
                    unfinished.extend(more.map(|more| item.going_on(more, nonces)));
                }
                // Somebody else's later step goes on where this one could not.
                Err(_) if item.goes_on() => {}
                Err(failure) => results[item.index] = Some(Err(failure)),
            }
        }
        items = unfinished;
    }
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(|| Err(unasked())))
        .collect()
}

/// The answer to one item, with the line of the life that has given it.
type Answered = (Result<Answer, Failure>, Option<Arc<str>>);

async fn run(link: &Link, items: &[Item<'_>], deadline: Moment) -> Vec<Answered> {
    let live = match link.live(deadline).await {
        Ok(live) => live,
        Err(failure) => {
            let failed = |_| (Err(failure.clone()), None);
            return items.iter().map(failed).collect();
        }
    };
    let (calls, independent) = sorted(items);
    let mut answers: Vec<_> = items.iter().map(|_| None).collect();
    let mut lines = vec![None; items.len()];
    // Calls that share a name must not overtake each other, not even when one of them has to be
    // repeated because the server forgot its script.
    let at_once = if independent { calls.len().max(1) } else { 1 };
    for calls in calls.chunks(at_once) {
        let values = send(link, &live, items, calls, deadline).await;
        for (call, (value, known)) in calls.iter().zip(values) {
            let line = known.and_then(|known| known.line());
            let read = value.and_then(|value| texts(value, call.items.len()));
            for (position, index) in call.items.iter().enumerate() {
                let item = &items[*index];
                lines[*index].clone_from(&line);
                answers[*index] = Some(match &read {
                    Ok(texts) => decode::answer(&texts[position], item.nonce, &item.asked),
                    Err(failure) => Err(failure.clone()),
                });
            }
        }
    }
    let mut answers: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.unwrap_or_else(|| Err(unasked())))
        .collect();
    for (item, answer) in items.iter().zip(&mut answers) {
        note_restlessness(link, &live, item.slot, answer);
    }
    let granted = (items.iter().zip(&answers))
        .find(|(_, answer)| answer.as_ref().is_ok_and(Answer::is_grant))
        .map(|(item, _)| item.slot);
    if let Some(part) = granted {
        replicas::confirm(link, &live, part, &mut answers, deadline).await;
    }
    if answers
        .iter()
        .any(|answer| answer.as_ref().is_err_and(|failure| failure.fatal))
    {
        link.discard(&live);
    }
    answers.into_iter().zip(lines).collect()
}

/// Whoever is kept waiting by a server that recovers again and again is told so.
fn note_restlessness(link: &Link, live: &Live, part: Part, answer: &mut Result<Answer, Failure>) {
    let reply = answer.as_mut().ok().and_then(|it| it.reply.as_mut());
    let Some(reply) = reply else { return };
    let (Outcome::Busy(contention) | Outcome::Queued { contention, .. }) = &mut reply.outcome
    else {
        return;
    };
    if contention.recovering.is_some() {
        let known = link.memory.known(live, part);
        contention.restless = known.is_some_and(|known| known.is_restless(reply.now));
    }
}

/// The texts of one call's reply.
fn texts(value: Value, count: usize) -> Result<Vec<String>, Failure> {
    let texts = match value {
        Value::ServerError(error) => return Err(errors::from_server(&error)),
        Value::Array(values) if values.len() == count => values,
        _ => return Err(miscounted()),
    };
    let text = |value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).map_err(|_| miscounted()),
        _ => Err(miscounted()),
    };
    texts.into_iter().map(text).collect()
}

fn miscounted() -> Failure {
    Failure::protocol(
        "the server's answer to a script has the wrong shape: is this a Redis server?",
    )
}

fn unasked() -> Failure {
    Failure::new(ErrorKind::Unavailable, "Redis was not asked")
}
