//! Carrying out a batch: requests are sorted into calls of one script each, sent at once, and every
//! reply is checked to belong to its request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::{Cmd, Pipeline, Value};
use tenure_core::{Action, Error, ErrorKind, Fence, LockName, Moment, Reply, Request};

use super::connection::{Link, Live};
use super::decode::{self, Answer, Asked};
use super::encode::{self, FROM_THE_HEAD};
use super::errors::{self, Failure};
use super::options::RESERVED;
use super::scripts::ScriptName;

/// Numbers that name requests, so that a reply cannot be taken for another's.
#[derive(Debug)]
pub(super) struct Nonces(AtomicU64);

impl Nonces {
    pub(super) fn new() -> Result<Self, Error> {
        let start = getrandom::u64().map_err(|cause| {
            Error::new(ErrorKind::Unsupported, "the system has no random numbers")
                .because(cause.to_string())
        })?;
        Ok(Self(AtomicU64::new(start)))
    }

    fn next(&self) -> String {
        format!("{:x}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Decides a batch. Never takes longer than a call may.
pub(super) async fn apply(
    link: &Link,
    nonces: &Nonces,
    batch: &[Request],
) -> Vec<Result<Reply, Error>> {
    let deadline = link.deadline();
    let mut results: Vec<Result<Reply, Failure>> = batch.iter().map(|_| Err(unasked())).collect();
    let mut items = Vec::with_capacity(batch.len());
    for (index, request) in batch.iter().enumerate() {
        match allowed(&link.options.prefix, &request.name) {
            Ok(()) => items.push(Item::first(index, request, link, nonces)),
            Err(failure) => results[index] = Err(failure),
        }
    }
    while !items.is_empty() {
        let answers = run(link, &items, deadline).await;
        let mut unfinished = Vec::new();
        for (item, answer) in items.iter().zip(answers) {
            match answer {
                Ok(Answer { reply, more }) => {
                    if let Some(reply) = reply {
                        results[item.index] = Ok(reply);
                    }
                    let request = &batch[item.index];
                    unfinished.extend(more.map(|more| item.going_on(request, &more, link, nonces)));
                }
                // Somebody else's later step goes on where this one could not.
                Err(_) if item.goes_on => {}
                Err(failure) => results[item.index] = Err(failure),
            }
        }
        items = unfinished;
    }
    let failed = |failure: Failure| failure.at(&link.options.address).error();
    results
        .into_iter()
        .map(|result| result.map_err(failed))
        .collect()
}

/// One request on its way to one script.
struct Item {
    /// Of the request, in the batch.
    index: usize,
    name: LockName,
    script: ScriptName,
    keys: [String; 6],
    nonce: String,
    asked: Asked,
    arguments: Vec<String>,
    /// Not the first call for this request: its outcome is known already.
    goes_on: bool,
}

impl Item {
    fn first(index: usize, request: &Request, link: &Link, nonces: &Nonces) -> Self {
        let prefix = &link.options.prefix;
        Self {
            index,
            name: request.name.clone(),
            script: encode::script(&request.action),
            keys: encode::keys(prefix, request.name.as_str()),
            nonce: nonces.next(),
            asked: Asked {
                owner: encode::owner(&request.action),
                fence: fence(&request.action),
            },
            arguments: encode::arguments(prefix, request, FROM_THE_HEAD),
            goes_on: false,
        }
    }

    /// The rest of a step that had looked at enough waiters. An acquire asks again, because its
    /// outcome may change; for all others it is enough that somebody is let in.
    fn going_on(&self, request: &Request, cursor: &str, link: &Link, nonces: &Nonces) -> Self {
        let asks_again = self.script == ScriptName::Acquire;
        let (script, asked, arguments) = if asks_again {
            let arguments = encode::arguments(&link.options.prefix, request, cursor);
            (self.script, self.asked, arguments)
        } else {
            let nobody = Asked {
                owner: None,
                fence: None,
            };
            (ScriptName::Admit, nobody, vec![cursor.to_owned()])
        };
        Self {
            index: self.index,
            name: self.name.clone(),
            script,
            keys: self.keys.clone(),
            nonce: nonces.next(),
            asked,
            arguments,
            goes_on: true,
        }
    }
}

/// Requests that travel in one call, as indices of items.
struct Call {
    script: ScriptName,
    items: Vec<usize>,
}

async fn run(link: &Link, items: &[Item], deadline: Moment) -> Vec<Result<Answer, Failure>> {
    let live = match link.live(deadline).await {
        Ok(live) => live,
        Err(failure) => return items.iter().map(|_| Err(failure.clone())).collect(),
    };
    let (calls, independent) = sorted(items);
    let mut answers: Vec<_> = items.iter().map(|_| Err(unasked())).collect();
    // Calls that share a name must not overtake each other, not even when one of them has to be
    // repeated because the server forgot its script.
    let at_once = if independent { calls.len().max(1) } else { 1 };
    for calls in calls.chunks(at_once) {
        let values = send(link, &live, items, calls, deadline).await;
        for (call, value) in calls.iter().zip(values) {
            let read = value.and_then(|value| texts(value, call.items.len()));
            for (position, index) in call.items.iter().enumerate() {
                let item = &items[*index];
                answers[*index] = match &read {
                    Ok(texts) => decode::answer(&texts[position], &item.nonce, &item.asked),
                    Err(failure) => Err(failure.clone()),
                };
            }
        }
    }
    if answers
        .iter()
        .any(|answer| answer.as_ref().is_err_and(|failure| failure.fatal))
    {
        link.discard(&live);
    }
    answers
}

/// Sorts items into calls, each request after all earlier ones of its name; answers too whether all
/// calls are about different names.
fn sorted(items: &[Item]) -> (Vec<Call>, bool) {
    let mut calls: Vec<Call> = Vec::new();
    let mut last_call: HashMap<&LockName, usize> = HashMap::new();
    let mut independent = true;
    for (index, item) in items.iter().enumerate() {
        let script = item.script;
        let room = |call: &Call| call.script == script && call.items.len() < script.batch_limit();
        let earlier = last_call.get(&item.name).copied();
        let place = calls
            .iter()
            .rposition(room)
            .filter(|place| earlier.is_none_or(|earlier| earlier <= *place));
        let place = place.unwrap_or_else(|| {
            calls.push(Call {
                script,
                items: Vec::new(),
            });
            calls.len() - 1
        });
        independent &= earlier.is_none_or(|earlier| earlier == place);
        calls[place].items.push(index);
        last_call.insert(&item.name, place);
    }
    (calls, independent)
}

/// Sends calls by the hash of their scripts, and those again in full that the server does not know.
async fn send(
    link: &Link,
    live: &Live,
    items: &[Item],
    calls: &[Call],
    deadline: Moment,
) -> Vec<Result<Value, Failure>> {
    let wires: Vec<_> = calls.iter().map(|call| on_the_wire(items, call)).collect();
    let commands = wires
        .iter()
        .zip(calls)
        .map(|((keys, arguments), call)| call.script.by_hash(keys, arguments));
    let mut values = send_commands(link, live, commands.collect(), deadline).await;
    let unknown: Vec<_> = (0..calls.len())
        .filter(
            |index| matches!(&values[*index], Ok(Value::ServerError(e)) if e.code() == "NOSCRIPT"),
        )
        .collect();
    if !unknown.is_empty() {
        let commands = unknown.iter().map(|index| {
            let (keys, arguments) = &wires[*index];
            calls[*index].script.in_full(keys, arguments)
        });
        let again = send_commands(link, live, commands.collect(), deadline).await;
        for (index, value) in unknown.into_iter().zip(again) {
            values[index] = value;
        }
    }
    values
}

fn on_the_wire(items: &[Item], call: &Call) -> (Vec<String>, Vec<String>) {
    let (mut keys, mut arguments) = (Vec::new(), Vec::new());
    for item in call.items.iter().map(|index| &items[*index]) {
        keys.extend(item.keys.iter().cloned());
        arguments.push(item.nonce.clone());
        let owner = item.asked.owner;
        arguments.push(owner.map_or("-".to_owned(), |owner| owner.to_string()));
        arguments.extend(item.arguments.iter().cloned());
    }
    (keys, arguments)
}

async fn send_commands(
    link: &Link,
    live: &Live,
    mut commands: Vec<Cmd>,
    deadline: Moment,
) -> Vec<Result<Value, Failure>> {
    let count = commands.len();
    if count == 1 {
        let command = commands.remove(0);
        return vec![link.send(live, &command, deadline).await];
    }
    let mut pipeline = Pipeline::with_capacity(count);
    for command in commands {
        pipeline.add_command(command);
    }
    match link.send_all(live, &pipeline, deadline).await {
        Ok(values) if values.len() == count => values.into_iter().map(Ok).collect(),
        Ok(_) => vec![Err(miscounted()); count],
        Err(failure) => vec![Err(failure); count],
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

/// With an empty prefix, a lock must not take the place of what is kept beside another.
fn allowed(prefix: &str, name: &LockName) -> Result<(), Failure> {
    if format!("{prefix}{name}").starts_with(RESERVED) {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!(
                "with this prefix a lock name must not begin with `{RESERVED}`: tenure keeps its own keys there"
            ),
        ));
    }
    Ok(())
}

fn fence(action: &Action) -> Option<Fence> {
    match action {
        Action::Renew(request) => Some(request.fence),
        Action::Convert(request) => Some(request.fence),
        Action::Release(request) => Some(request.fence),
        Action::ForceRelease(request) => Some(request.fence),
        Action::Acquire(_) | Action::Cancel(_) | Action::Inspect => None,
    }
}

fn miscounted() -> Failure {
    Failure::protocol(
        "the server's answer to a script has the wrong shape: is this a Redis server?",
    )
}

fn unasked() -> Failure {
    Failure::new(ErrorKind::Unavailable, "Redis was not asked")
}
