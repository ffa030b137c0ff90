//! Sending calls until the server has carried them out, and hello before that.

use redis::{Cmd, Pipeline, Value};
use tenure_core::{ErrorKind, Moment};

use super::super::connection::{Link, Live};
use super::super::encode::Texts;
use super::super::errors::Failure;
use super::super::memory::{self, Known, Part};
use super::super::scripts::ScriptName;
use super::item::{Call, Item};
use super::miscounted;

/// Sends calls by the hash of their scripts, and those again in full that the server does not know.
///
/// A server that does not know a script may have just started, and one that has begun another life
/// has carried out nothing: either way hello comes first, and then those calls go out again. With each answer comes what was
/// known of the life that has given it.
pub(super) async fn send(
    link: &Link,
    live: &Live,
    items: &[Item<'_>],
    calls: &[Call],
    deadline: Moment,
) -> Vec<(Result<Value, Failure>, Option<Known>)> {
    let mut values: Vec<Result<Value, Failure>> = vec![Err(forgetful()); calls.len()];
    let mut pending: Vec<usize> = (0..calls.len()).collect();
    let mut in_full = vec![false; calls.len()];
    // To which life each was sent last, which is outdated if that has refused it.
    let mut outdated: Vec<Option<Known>> = vec![None; calls.len()];
    for _ in 0..ROUNDS {
        let parts = pending
            .iter()
            .map(|index| (calls[*index].slot, outdated[*index].as_ref()));
        let greeted = greeted(link, live, calls, &parts.collect::<Vec<_>>(), deadline).await;
        let mut commands = Vec::with_capacity(pending.len());
        let mut sent = Vec::with_capacity(pending.len());
        for (index, known) in pending.into_iter().zip(greeted) {
            let known = match known {
                Ok(known) => known,
                Err(failure) => {
                    values[index] = Err(failure);
                    continue;
                }
            };
            let call = &calls[index];
            let argument = known.as_ref().map_or("", |known| &known.argument);
            let (keys, arguments) = on_the_wire(&link.options.prefix, argument, items, call);
            commands.push(match in_full[index] {
                false => call.script.by_hash(&keys, &arguments),
                true => call.script.in_full(&keys, &arguments),
            });
            outdated[index] = known;
            sent.push(index);
        }
        if commands.is_empty() {
            break;
        }
        let answers = send_commands(link, live, commands, deadline).await;
        let mut again = Vec::new();
        for (index, value) in sent.into_iter().zip(answers) {
            let unknown = matches!(&value, Ok(Value::ServerError(e)) if e.code() == "NOSCRIPT");
            let refused = matches!(&value, Ok(Value::BulkString(text)) if text == OTHER_LIFE);
            in_full[index] |= unknown;
            if unknown || refused {
                again.push(index);
            } else {
                values[index] = value;
            }
        }
        if again.is_empty() {
            break;
        }
        pending = again;
    }
    values.into_iter().zip(outdated).collect()
}

/// What prelude.lua says when it carries out nothing because the server has begun another life.
const OTHER_LIFE: &[u8] = b"other life";

/// How often calls are sent until they are carried out: by hash, in full, and some more in case the
/// server forgets meanwhile.
const ROUNDS: usize = 6;

/// What is known of the server, for each of these calls; `None` if all only look, which needs no hello.
async fn greeted(
    link: &Link,
    live: &Live,
    calls: &[Call],
    parts: &[(Part, Option<&Known>)],
    deadline: Moment,
) -> Vec<Result<Option<Known>, Failure>> {
    if calls.iter().all(|call| call.script == ScriptName::Inspect) {
        return parts.iter().map(|_| Ok(None)).collect();
    }
    let greeted = memory::greet_all(link, live, parts, deadline).await;
    greeted.into_iter().map(|known| known.map(Some)).collect()
}

fn on_the_wire(prefix: &str, life: &str, items: &[Item<'_>], call: &Call) -> (Texts, Texts) {
    let (mut keys, mut arguments) = (Texts::default(), Texts::default());
    arguments.push(life);
    for index in &call.items {
        items[*index].write(prefix, &mut keys, &mut arguments);
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

fn forgetful() -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        "Redis forgets faster than it can be asked: do several servers answer at this address?",
    )
}
