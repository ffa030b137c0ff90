//! What `tenure doctor --init` does: a person says that a server is new, so that nobody has to wait.
//! Where something speaks against that, it is said, and nothing is done.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Cause, Error, ErrorKind, Phase, Recovery, Store};

use super::super::RedisStore;
use super::super::connection::Link;
use super::super::errors::Failure;
use super::super::listing;
use super::look::{Look, look};
use super::meet::{TRIES, greeting, interference, new_life, settle};
use super::record::Beginning;
use super::{Part, greet};
use crate::clock::Clock;
use crate::initialize::{Assurance, Initialization, Initialized};

/// Whether a server is open, and what speaks against its being new if it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stores) enum Examined {
    Open,
    Closed { against: Option<String> },
}

impl RedisStore {
    /// Opens the server at `url`, which is known to be new, or the primary that its sentinels name; see
    /// [`initialize`](crate::initialize()).
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn initialize(
        url: &str,
        clock: Arc<dyn Clock>,
        assurance: Assurance,
    ) -> Result<Initialization, Error> {
        let store = Self::connect_lazily(url, clock)?;
        let server = store.link.options.address.to_string();
        let outcome = match (store.examine().await?, assurance) {
            (Examined::Open, _) => Initialized::WasOpen,
            (Examined::Closed { against: Some(why) }, Assurance::New) => Initialized::Refused(why),
            (Examined::Closed { .. }, _) => store.open_as_new().await?,
        };
        Ok(Initialization { server, outcome })
    }

    /// Looks whether the server is open, and what speaks against opening it.
    pub(in crate::stores) async fn examine(&self) -> Result<Examined, Error> {
        examine(&self.link, self).await
    }

    /// Opens the server, whatever speaks against it.
    pub(in crate::stores) async fn open_as_new(&self) -> Result<Initialized, Error> {
        open(&self.link).await
    }
}

/// Looks at one server; `store` is whom to ask about the locks that are there.
///
/// # Errors
/// Whatever keeps us from looking.
pub(in super::super) async fn examine(link: &Link, store: &dyn Store) -> Result<Examined, Error> {
    let failed = |failure: Failure| failure.at(&link.options.address).error();
    // Whoever says hello first writes down what speaks for something having been there.
    let look = greeted(link).await.map_err(failed)?;
    if is_open(&look) {
        return Ok(Examined::Open);
    }
    let cause = look.record.as_ref().map(|record| record.cause);
    if let Some(why) = cause.and_then(evidence) {
        return Ok(Examined::Closed {
            against: Some(why.to_owned()),
        });
    }
    let names = listing::names(link, "").await.map_err(failed)?;
    let listed = listing::inspected(store, names, &link.options.keys).await?;
    let locks = listed.map_or_else(Vec::new, |listing| listing.locks);
    let held = locks.iter().find(|(_, lock)| !lock.holders.is_empty());
    let against = held.map(|(name, _)| {
        format!(
            "the lock {:?} is held there, so it was in use before",
            name.as_str()
        )
    });
    Ok(Examined::Closed { against })
}

/// Writes the record that opens a server.
///
/// # Errors
/// Whatever keeps us from it.
pub(in super::super) async fn open(link: &Link) -> Result<Initialized, Error> {
    let failed = |failure: Failure| failure.at(&link.options.address).error();
    for _ in 0..TRIES {
        let look = greeted(link).await.map_err(failed)?;
        if is_open(&look) {
            return Ok(Initialized::WasOpen);
        }
        let deadline = link.deadline();
        let live = link.live(deadline).await.map_err(failed)?;
        let beginning = vouched(link, None, &look).map_err(failed)?;
        let begins = [(None, look, beginning)];
        let settling = settle(link, &live, &begins, deadline);
        if settling.await.map_err(failed)? > 0 {
            return Ok(Initialized::Opened);
        }
    }
    Err(failed(interference()))
}

/// The life of a part that a person says to be new.
pub(super) fn vouched(link: &Link, part: Part, look: &Look) -> Result<Beginning, Failure> {
    let greeting = greeting(link, part);
    Ok(Beginning {
        life: new_life()?,
        wait: Duration::ZERO,
        cause: Cause::Vouched,
        max_ttl: greeting.max_ttl,
        durable: look.seen.keeps_everything(&greeting),
        earlier: Vec::new(),
    })
}

async fn greeted(link: &Link) -> Result<Look, Failure> {
    if link.options.caution.recovery == Recovery::Off {
        return Err(Failure::new(
            ErrorKind::Configuration,
            "with recovery=off nothing is recorded, and a server that forgot lets everybody in anyway",
        ));
    }
    let deadline = link.deadline();
    let live = link.live(deadline).await?;
    greet(link, &live, deadline).await?;
    let looks = look(link, &live, &[None], deadline).await?;
    let look = looks.and_then(|mut looks| looks.pop());
    look.unwrap_or_else(|| {
        let key = link.options.keys.record(None);
        Err(Failure::new(
            ErrorKind::Forbidden,
            format!(
                "this user may not call INFO, so whose record {key} is cannot be said: allow +info"
            ),
        ))
    })
}

fn is_open(look: &Look) -> bool {
    let record = look.record.as_ref();
    record.is_some_and(|record| record.is_of(&look.seen) && record.phase(look.now) == Phase::Open)
}

/// What speaks against a server's being new, in words.
pub(in super::super) fn evidence(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::Unknown | Cause::Vouched => None,
        Cause::Restarted => {
            Some("it has restarted since it was last used, and may have forgotten locks")
        }
        Cause::TookOver => Some(
            "it was a replica, and the server whose place it took may have granted locks that never reached it",
        ),
        Cause::Wiped => Some(
            "data was wiped there (FLUSHALL, FLUSHDB, SWAPDB or evicted keys), and locks may have been among it",
        ),
        Cause::Missed => {
            Some("a client that had used it before found its record gone, so it has lost its data")
        }
    }
}
