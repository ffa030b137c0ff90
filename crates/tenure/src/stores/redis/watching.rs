//! Watching a key: the server tells us once when it changes, whoever changes it, also when it expires
//! (CLIENT TRACKING). For a store without a queue, which has nobody to push a grant to.

use redis::{Cmd, Pipeline, ProtocolVersion, Value};
use tenure_core::{Error, ErrorKind, LockName};

use super::RedisStore;
use super::connection::{Link, Live};
use super::diagnose;
use super::subscription::Listeners;

impl RedisStore {
    /// What tells this server from every other for as long as it runs; `None` if it may not say.
    pub(crate) async fn run_id(&self) -> Result<Option<String>, Error> {
        match diagnose::facts(&self.link, &["INFO", "server"]).await {
            Ok(facts) => Ok(facts.get("run_id").cloned()),
            Err(failure) if failure.kind == ErrorKind::Forbidden => Ok(None),
            Err(failure) => Err(failure.error()),
        }
    }

    /// Has the server tell us once when the key of `name` changes. Answers whether there is none now;
    /// `None` if it will not tell us.
    pub(crate) async fn watch_name(&self, name: &LockName) -> Result<Option<bool>, Error> {
        let link = &self.link;
        let deadline = link.deadline();
        let watched = async {
            let live = link.live(deadline).await?;
            if !live.watches {
                return Ok(None);
            }
            let mut commands = Pipeline::with_capacity(2);
            commands.add_command(words(&["CLIENT", "CACHING", "YES"]));
            let mut look = redis::cmd("EXISTS");
            look.arg(format!("{}{name}", link.options.prefix));
            commands.add_command(look);
            let values = link.send_all(&live, &commands, deadline).await?;
            Ok(match values.as_slice() {
                [Value::Okay, Value::Int(count)] => Some(*count == 0),
                _ => None,
            })
        };
        watched
            .await
            .map_err(|failure: super::errors::Failure| failure.error())
    }
}

/// Asks the server to tell this connection of keys that it watches; whether it will.
pub(super) async fn begin(link: &Link, live: &Live) -> bool {
    if !link.options.watching || live.protocol != ProtocolVersion::RESP3 {
        return false;
    }
    let command = words(&["CLIENT", "TRACKING", "ON", "OPTIN"]);
    // Old servers do not know it and some users may not say it: then waiters ask now and then.
    let answer = link.send(live, &command, link.deadline()).await;
    matches!(answer, Ok(Value::Okay))
}

/// What the server says about keys that were watched.
pub(super) fn told(listeners: &Listeners, data: &[Value]) {
    let [Value::Array(keys)] = data else {
        // All at once: FLUSHALL.
        return listeners.missed();
    };
    for key in keys {
        if let Value::BulkString(key) = key {
            listeners.maybe_free(key);
        }
    }
}

fn words(words: &[&str]) -> Cmd {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command
}
