//! Listing: every name under a prefix that somebody holds or waits for.

use std::collections::BTreeSet;

use redis::Value;
use tenure_core::{
    Action, Error, Listing, LockName, Moment, Outcome, Request, Snapshot, Store, Timestamp,
};

use super::connection::Link;
use super::decode::FOREIGN;
use super::errors::{self, Failure};
use super::keys::Keys;
use super::options::RESERVED;

/// How many keys the server looks at in one go.
const SCANNED: usize = 1_000;

/// How many names are inspected in one go.
const INSPECTED: usize = 256;

/// Walks the whole keyspace, in steps that hold nobody up; each step may take as long as a call may.
pub(super) async fn list(store: &dyn Store, link: &Link, prefix: &str) -> Result<Listing, Error> {
    let failed = |failure: Failure| failure.error();
    let names = names(link, prefix).await.map_err(failed)?;
    match inspected(store, names, &link.options.keys).await? {
        Some(listing) => Ok(listing),
        None => nothing(link).await.map_err(failed),
    }
}

/// Those of these names that are worth showing; `None` if there are no names.
pub(super) async fn inspected(
    store: &dyn Store,
    names: BTreeSet<LockName>,
    keys: &Keys,
) -> Result<Option<Listing>, Error> {
    if names.is_empty() {
        return Ok(None);
    }
    let requests = names.into_iter().map(|name| Action::Inspect.on(name));
    let requests: Vec<_> = requests.collect();
    let mut listing = Listing {
        now: Timestamp::from_micros(0),
        locks: Vec::new(),
    };
    for requests in requests.chunks(INSPECTED) {
        let replies = store.apply(requests).await;
        for (Request { name, .. }, reply) in requests.iter().zip(replies) {
            let reply = reply?;
            listing.now = listing.now.max(reply.now);
            let Outcome::State(snapshot) = reply.outcome else {
                continue;
            };
            if worth_showing(keys, &snapshot) {
                listing.locks.push((name.clone(), snapshot));
            }
        }
    }
    Ok(Some(listing))
}

/// A lock that is held, as evidence that its store was in use.
pub(super) fn held(listing: &Listing) -> Option<String> {
    let mut locks = listing.locks.iter();
    let (name, _) = locks.find(|(_, lock)| !lock.holders.is_empty())?;
    Some(format!(
        "the lock {:?} is held there, so it was in use before",
        name.as_str()
    ))
}

/// The listing of a server without locks.
pub(super) async fn nothing(link: &Link) -> Result<Listing, Failure> {
    let now = time(link).await?;
    let locks = Vec::new();
    Ok(Listing { now, locks })
}

/// A key that tenure did not write is a lock only if it is where locks are and looks like one.
fn worth_showing(keys: &Keys, snapshot: &Snapshot) -> bool {
    let foreign = snapshot
        .holders
        .iter()
        .find(|holder| holder.owner.is_none());
    let is_lock = |who: &str| who.strip_prefix(FOREIGN) == Some("string") && keys.are_apart();
    snapshot.kind.is_some()
        && (!snapshot.waiters.is_empty()
            || foreign.is_none_or(|holder| is_lock(holder.party.who())))
}

/// Keys of locks, and names that only have waiters.
pub(super) async fn names(link: &Link, prefix: &str) -> Result<BTreeSet<LockName>, Failure> {
    let keys = &link.options.keys;
    let key_prefix = keys.key(prefix);
    let mut names = BTreeSet::new();
    let mut keep = |key: &str| {
        if key.starts_with(&key_prefix) && !key.starts_with(RESERVED) {
            names.extend(keys.name(key));
        }
    };
    for key in scan(link, &format!("{}*", escaped(&key_prefix))).await? {
        keep(&key);
    }
    let queue = format!("{RESERVED}{{{}*}}:queue", escaped(&key_prefix));
    for key in scan(link, &queue).await? {
        let lock = key
            .strip_prefix(&format!("{RESERVED}{{"))
            .and_then(|rest| rest.strip_suffix("}:queue"));
        lock.into_iter().for_each(&mut keep);
    }
    Ok(names)
}

async fn scan(link: &Link, pattern: &str) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let mut command = redis::cmd("SCAN");
        command.arg(&cursor).arg("MATCH").arg(pattern);
        command.arg("COUNT").arg(SCANNED);
        let (next, keys) = page(ask(link, &command, link.deadline()).await?)?;
        found.extend(keys);
        if next == "0" {
            return Ok(found);
        }
        cursor = next;
    }
}

/// Cursor and keys; a key that is not UTF-8 is nobody's lock name.
fn page(value: Value) -> Result<(String, Vec<String>), Failure> {
    let shape = || Failure::protocol("the server's answer to SCAN has the wrong shape");
    let text = |value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    };
    let Value::Array(parts) = value else {
        return Err(shape());
    };
    let Ok([cursor, Value::Array(keys)]) = <[Value; 2]>::try_from(parts) else {
        return Err(shape());
    };
    let keys = keys.into_iter().filter_map(text).collect();
    Ok((text(cursor).ok_or_else(shape)?, keys))
}

/// The server's clock.
pub(super) async fn time(link: &Link) -> Result<Timestamp, Failure> {
    let value = ask(link, &redis::cmd("TIME"), link.deadline()).await?;
    let parts: Result<(u64, u64), _> = redis::from_redis_value(value);
    let (seconds, micros) =
        parts.map_err(|_| Failure::protocol("the server's answer to TIME has the wrong shape"))?;
    Ok(Timestamp::from_micros(seconds * 1_000_000 + micros))
}

/// One command, with an error reply made a failure.
pub(super) async fn ask(
    link: &Link,
    command: &redis::Cmd,
    deadline: Moment,
) -> Result<Value, Failure> {
    let live = link.live(deadline).await?;
    match link.send(&live, command, deadline).await? {
        Value::ServerError(error) => Err(errors::from_server(&error).at(&link.options.address)),
        value => Ok(value),
    }
}

/// A text that matches only itself in SCAN MATCH.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '^') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
