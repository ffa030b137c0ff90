//! [`initialize`]: saying that a store's servers are new, so that nobody has to wait for them.

use std::sync::Arc;

use tenure_core::Error;

use crate::clock::{Clock, SystemClock};

/// What a person says about the servers of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assurance {
    /// They are new: nobody has ever held a lock there. Not believed where something speaks against it, nor of
    /// a server that was started less than `max_ttl` ago.
    New,
    /// Whatever happened, nobody holds a lock there now. **Unsafe** if that is wrong: two may then hold
    /// the same lock.
    NothingIsHeld,
}

/// What became of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initialization {
    /// Where it is.
    pub server: String,
    /// What became of it.
    pub outcome: Initialized,
}

/// What became of a server that was said to be new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initialized {
    /// It is open now.
    Opened,
    /// It was open before; nothing was done.
    WasOpen,
    /// Nothing was done, because it is not new: this speaks against it. It opens by itself once all that
    /// it may have forgotten has ended.
    Refused(String),
}

/// Opens a store whose servers are known to be new, for all clients and at once.
///
/// **A server that has lost everything looks like a new one.** What can be seen is checked (an earlier
/// record, a former replica, traces of a wipe, locks that are held, a start so recent that whoever
/// remembers may still come back), also while it is done; but if nobody is left who
/// remembers, only the person who says so is responsible. Whoever is not sure waits: the store opens by
/// itself after `max_ttl`, 30 s unless the URL says otherwise.
///
/// Only Redis servers have to be waited for. Of several that hold locks together, none is opened unless
/// all answer and are new, or were open before.
///
/// # Errors
/// As [`connect`](crate::connect()), for instance if a server cannot be reached.
pub async fn initialize(url: &str, assurance: Assurance) -> Result<Vec<Initialization>, Error> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start()?);
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    match scheme {
        "memory" | "sqlite" => Ok(vec![always_open(scheme)]),
        _ => of_redis(scheme, url, clock, assurance).await,
    }
}

/// A store that is never waited for.
fn always_open(scheme: &str) -> Initialization {
    Initialization {
        server: format!("a {scheme} store"),
        outcome: Initialized::WasOpen,
    }
}

#[cfg(feature = "redis")]
async fn of_redis(
    scheme: &str,
    url: &str,
    clock: Arc<dyn Clock>,
    assurance: Assurance,
) -> Result<Vec<Initialization>, Error> {
    use crate::stores::quorum::QuorumStore;
    use crate::stores::redis::{ClusterStore, RedisStore};

    // Each is a large future: not on the stack of whoever asks.
    match scheme {
        "redlock" | "redlocks" | "redis+all" | "rediss+all" => {
            Box::pin(QuorumStore::initialize_redis(url, clock, assurance)).await
        }
        "redis+cluster" | "rediss+cluster" => {
            Box::pin(ClusterStore::initialize(url, clock, assurance)).await
        }
        _ => {
            let initialized = Box::pin(RedisStore::initialize(url, clock, assurance)).await;
            Ok(vec![initialized?])
        }
    }
}

#[cfg(not(feature = "redis"))]
async fn of_redis(
    _scheme: &str,
    _url: &str,
    _clock: Arc<dyn Clock>,
    _assurance: Assurance,
) -> Result<Vec<Initialization>, Error> {
    Err(Error::new(
        tenure_core::ErrorKind::Unsupported,
        "this build has no redis store: build it with the feature \"redis\"",
    ))
}
