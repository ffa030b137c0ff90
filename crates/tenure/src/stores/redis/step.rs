//! Carrying out a batch: requests are sorted into calls of one script each, sent at once, and every
//! reply is checked to belong to its request.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::{Cmd, Pipeline, Value};
use tenure_core::{
    Action, Ballot, Error, ErrorKind, Fence, LockName, Moment, Outcome, Recovery, Reply, Request,
};

use super::connection::{Link, Live};
use super::decode::{self, Answer, Asked};
use super::encode::{self, FROM_THE_HEAD, Texts};
use super::errors::{self, Failure};
use super::keys::Keys;
use super::memory::{self, Caution, Known};
use super::options::RESERVED;
use super::replicas;
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

    fn next(&self) -> Nonce {
        Nonce(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The number of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonce(u64);

impl Nonce {
    /// What the reply echoes, read back.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        u64::from_str_radix(word, 16).ok().map(Self)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// Decides a batch. Never takes longer than a call may.
pub(super) async fn apply(
    link: &Link,
    nonces: &Nonces,
    batch: &[Request],
) -> Vec<Result<Reply, Error>> {
    let failed = |failure: Failure| failure.at(&link.options.address).error();
    let results = decide(link, nonces, batch.iter(), link.deadline()).await;
    let results = results.into_iter().map(|result| result.map_err(failed));
    results.collect()
}

/// The same with failures that say more.
pub(super) async fn decide<'a>(
    link: &Link,
    nonces: &Nonces,
    batch: impl ExactSizeIterator<Item = &'a Request>,
    deadline: Moment,
) -> Vec<Result<Reply, Failure>> {
    let mut results: Vec<Option<Result<Reply, Failure>>> = Vec::with_capacity(batch.len());
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
        for (item, answer) in items.iter().zip(answers) {
            match answer {
                Ok(Answer { reply, more }) => {
                    if let Some(reply) = reply {
                        results[item.index] = Some(Ok(reply));
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

/// One request on its way to one script.
struct Item<'a> {
    /// Of the request, in the batch.
    index: usize,
    request: &'a Request,
    keys: &'a Keys,
    /// In a cluster.
    slot: Option<u16>,
    script: ScriptName,
    nonce: Nonce,
    asked: Asked,
    /// Where to go on in the queue, if this is not the first call for the request; its outcome is
    /// then known already.
    cursor: Option<String>,
}

impl<'a> Item<'a> {
    fn first(index: usize, request: &'a Request, nonces: &Nonces, keys: &'a Keys) -> Self {
        Self {
            index,
            request,
            keys,
            slot: keys.slot(&request.name),
            script: encode::script(&request.action),
            nonce: nonces.next(),
            asked: Asked {
                owner: encode::owner(&request.action),
                fence: fence(&request.action),
            },
            cursor: None,
        }
    }

    /// The rest of a step that had looked at enough waiters. An acquire asks again, because its
    /// outcome may change; for all others it is enough that somebody is let in.
    fn going_on(&self, cursor: String, nonces: &Nonces) -> Self {
        let nobody = Asked {
            owner: None,
            fence: None,
        };
        let (script, asked) = match self.script {
            ScriptName::Acquire => (ScriptName::Acquire, self.asked),
            _ => (ScriptName::Admit, nobody),
        };
        Self {
            index: self.index,
            request: self.request,
            keys: self.keys,
            slot: self.slot,
            script,
            nonce: nonces.next(),
            asked,
            cursor: Some(cursor),
        }
    }

    fn goes_on(&self) -> bool {
        self.cursor.is_some()
    }

    fn name(&self) -> &LockName {
        &self.request.name
    }

    /// Adds its KEYS and ARGV to those of its call.
    fn write(&self, prefix: &str, keys: &mut Texts, arguments: &mut Texts) {
        self.keys.write(self.name(), keys);
        match self.asked.owner {
            Some(owner) => arguments.push(format_args!("{} {owner}", self.nonce)),
            None => arguments.push(format_args!("{} -", self.nonce)),
        }
        let cursor = self.cursor.as_deref().unwrap_or(FROM_THE_HEAD);
        match self.script {
            ScriptName::Admit => arguments.push(cursor),
            _ => encode::arguments(prefix, self.request, cursor, arguments),
        }
    }
}

/// Requests that travel in one call, as indices of items.
struct Call {
    script: ScriptName,
    slot: Option<u16>,
    items: Vec<usize>,
}

async fn run(link: &Link, items: &[Item<'_>], deadline: Moment) -> Vec<Result<Answer, Failure>> {
    let live = match link.live(deadline).await {
        Ok(live) => live,
        Err(failure) => return items.iter().map(|_| Err(failure.clone())).collect(),
    };
    let (calls, independent) = sorted(items);
    let mut answers: Vec<_> = items.iter().map(|_| None).collect();
    // Calls that share a name must not overtake each other, not even when one of them has to be
    // repeated because the server forgot its script.
    let at_once = if independent { calls.len().max(1) } else { 1 };
    for calls in calls.chunks(at_once) {
        let values = send(link, &live, items, calls, deadline).await;
        for (call, value) in calls.iter().zip(values) {
            let read = value.and_then(|value| texts(value, call.items.len()));
            for (position, index) in call.items.iter().enumerate() {
                let item = &items[*index];
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
    note_restlessness(link, &live, &mut answers);
    replicas::confirm(link, &live, &mut answers, deadline).await;
    if answers
        .iter()
        .any(|answer| answer.as_ref().is_err_and(|failure| failure.fatal))
    {
        link.discard(&live);
    }
    answers
}

/// Whoever is kept waiting by a server that recovers again and again is told so.
fn note_restlessness(link: &Link, live: &Live, answers: &mut [Result<Answer, Failure>]) {
    let replies = answers.iter_mut().flatten();
    for reply in replies.filter_map(|answer| answer.reply.as_mut()) {
        let (Outcome::Busy(contention) | Outcome::Queued { contention, .. }) = &mut reply.outcome
        else {
            continue;
        };
        if contention.recovering.is_some() {
            let known = link.memory.known(live);
            contention.restless = known.is_some_and(|known| known.is_restless(reply.now));
        }
    }
}

/// Sorts items into calls, each request after all earlier ones of its name; answers too whether all
/// calls are about different names.
fn sorted(items: &[Item<'_>]) -> (Vec<Call>, bool) {
    if let [item] = items {
        let call = Call {
            script: item.script,
            slot: item.slot,
            items: vec![0],
        };
        return (vec![call], true);
    }
    let mut calls: Vec<Call> = Vec::new();
    let mut last_call: HashMap<&LockName, usize> = HashMap::new();
    let mut independent = true;
    for (index, item) in items.iter().enumerate() {
        let script = item.script;
        let slot = item.slot;
        let alike = |call: &Call| call.script == script && call.slot == slot;
        let room = |call: &Call| alike(call) && call.items.len() < script.batch_limit();
        let earlier = last_call.get(item.name()).copied();
        let place = calls
            .iter()
            .rposition(room)
            .filter(|place| earlier.is_none_or(|earlier| earlier <= *place));
        let place = place.unwrap_or_else(|| {
            calls.push(Call {
                script,
                slot,
                items: Vec::new(),
            });
            calls.len() - 1
        });
        independent &= earlier.is_none_or(|earlier| earlier == place);
        calls[place].items.push(index);
        last_call.insert(item.name(), place);
    }
    (calls, independent)
}

/// Sends calls by the hash of their scripts, and those again in full that the server does not know.
///
/// A server that does not know a script may have just started, and one that has begun another life
/// has carried out nothing: either way hello comes first, and then those calls go out again.
async fn send(
    link: &Link,
    live: &Live,
    items: &[Item<'_>],
    calls: &[Call],
    deadline: Moment,
) -> Vec<Result<Value, Failure>> {
    let mut values: Vec<Result<Value, Failure>> = vec![Err(forgetful()); calls.len()];
    let mut pending: Vec<usize> = (0..calls.len()).collect();
    let mut in_full = vec![false; calls.len()];
    let mut outdated = None;
    for _ in 0..ROUNDS {
        let known = match greeted(link, live, calls, outdated.as_ref(), deadline).await {
            Ok(known) => known,
            Err(failure) => {
                for index in pending {
                    values[index] = Err(failure.clone());
                }
                break;
            }
        };
        let argument = known.as_ref().map_or("", |known| &known.argument);
        let commands = pending.iter().map(|index| {
            let call = &calls[*index];
            let (keys, arguments) = on_the_wire(&link.options.prefix, argument, items, call);
            match in_full[*index] {
                false => call.script.by_hash(&keys, &arguments),
                true => call.script.in_full(&keys, &arguments),
            }
        });
        let answers = send_commands(link, live, commands.collect(), deadline).await;
        let mut again = Vec::new();
        for (index, value) in pending.into_iter().zip(answers) {
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
        (pending, outdated) = (again, known);
    }
    values
}

/// What prelude.lua says when it carries out nothing because the server has begun another life.
const OTHER_LIFE: &[u8] = b"other life";

/// How often calls are sent until they are carried out: by hash, in full, and some more in case the
/// server forgets meanwhile.
const ROUNDS: usize = 6;

/// What is known of the server; `None` if the calls only look, which needs no hello.
async fn greeted(
    link: &Link,
    live: &Live,
    calls: &[Call],
    outdated: Option<&Known>,
    deadline: Moment,
) -> Result<Option<Known>, Failure> {
    if calls.iter().all(|call| call.script == ScriptName::Inspect) {
        return Ok(None);
    }
    memory::greet(link, live, outdated, deadline)
        .await
        .map(Some)
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
    let mut key = prefix.chars().chain(name.as_str().chars());
    if RESERVED.chars().all(|c| key.next() == Some(c)) {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!(
                "with this prefix a lock name must not begin with `{RESERVED}`: tenure keeps its own keys there"
            ),
        ));
    }
    Ok(())
}

/// Whoever is strict asks for no lease that a server could give away after it forgot it. What is left
/// behind nobody relies upon.
fn protected(caution: &Caution, action: &Action) -> Result<(), Failure> {
    let ttl = match action {
        Action::Acquire(request) => request.ttl,
        Action::Renew(request) if !request.detach => request.ttl,
        Action::Vote(request) => request.ttl,
        _ => return Ok(()),
    };
    if caution.recovery != Recovery::Strict || ttl <= caution.max_ttl {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        format!(
            "recovery=strict protects leases of up to {:?}, and a ttl of {ttl:?} was asked for: set \
             ?max_ttl= everywhere to more than that, or ask for less",
            caution.max_ttl
        ),
    ))
}

fn fence(action: &Action) -> Option<Fence> {
    match action {
        Action::Renew(request) => Some(request.fence),
        Action::Convert(request) => Some(request.fence),
        Action::Release(request) => Some(request.fence),
        Action::ForceRelease(request) => Some(request.fence),
        Action::Vote(request) => Some(match request.ballot {
            Ballot::New { proposal } => proposal,
            Ballot::Raise { to } => to,
            Ballot::Held { fence } => fence,
        }),
        Action::Acquire(_) | Action::Cancel(_) | Action::Inspect => None,
    }
}

fn miscounted() -> Failure {
    Failure::protocol(
        "the server's answer to a script has the wrong shape: is this a Redis server?",
    )
}

fn forgetful() -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        "Redis forgets faster than it can be asked: do several servers answer at this address?",
    )
}

fn unasked() -> Failure {
    Failure::new(ErrorKind::Unavailable, "Redis was not asked")
}
