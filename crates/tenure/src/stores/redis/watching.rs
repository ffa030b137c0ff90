//! What a member of a quorum does beyond what every store does: it says which server answered, and watches
//! keys. The server tells us once when one changes, whoever changes it, also when it expires (CLIENT
//! TRACKING): for a store without a queue, which has nobody to push a grant to.

use std::sync::Arc;

use redis::{Cmd, Pipeline, ProtocolVersion, Value};
use tenure_core::{Error, ErrorKind, LockName, Reply, Request};

use super::connection::{Link, Live};
use super::errors::Failure;
use super::subscription::Listeners;
use super::{RedisStore, memory, step};

impl RedisStore {
    /// Decides a batch, and says which start of which server did; `None` if it may not say.
    ///
    /// An answer of which that is not sure is none: a connection that was lost is replaced in silence, and
    /// may then lead to another server.
    pub(crate) async fn apply_as_one(
        &self,
        batch: &[Request],
    ) -> (Option<Arc<str>>, Vec<Result<Reply, Error>>) {
        let link = &self.link;
        let live = match link.live(link.deadline()).await {
            Ok(live) => live,
            Err(failure) => return (None, batch.iter().map(|_| Err(failure.error())).collect()),
        };
        let mut replies = step::apply(link, &self.nonces, batch).await;
        // No connection comes back once it was replaced: it has been in use all the time.
        if !link.is_current(&live) {
            for reply in replies.iter_mut().filter(|reply| reply.is_ok()) {
                *reply = Err(Failure::given_up(&live.address).error());
            }
        }
        (live.run, replies)
    }

    /// Which start of which server answers now; `None` if none does, or if it may not say.
    pub(crate) fn run(&self) -> Option<Arc<str>> {
        self.link.run()
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
        watched.await.map_err(|failure: Failure| failure.error())
    }
}

/// Asks the server who it is, and to tell this connection of keys that it watches.
pub(super) async fn begin(link: &Link, live: &mut Live) -> Result<(), Failure> {
    let mut commands = Pipeline::with_capacity(2);
    commands.add_command(words(&["INFO", "server"]));
    if live.protocol == ProtocolVersion::RESP3 {
        commands.add_command(words(&["CLIENT", "TRACKING", "ON", "OPTIN"]));
    }
    let values = link.send_all(live, &commands, link.deadline()).await?;
    let mut values = values.into_iter();
    live.run = match memory::facts(values.next().unwrap_or(Value::Nil)) {
        Ok(facts) => facts.get("run_id").map(|run| run.as_str().into()),
        Err(failure) if failure.kind == ErrorKind::Forbidden => None,
        Err(failure) => return Err(failure),
    };
    // Old servers do not know it and some users may not say it: then waiters ask now and then.
    live.watches = values.next() == Some(Value::Okay);
    Ok(())
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
