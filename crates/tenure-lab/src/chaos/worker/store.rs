//! Opens the store itself, so that something can be put between it and the client.

use std::sync::Arc;

use tenure::stores::quorum::QuorumStore;
use tenure::stores::redis::{ClusterStore, RedisStore};
use tenure::stores::sqlite::{Options, SqliteStore};
use tenure::{Clock, Error, ErrorKind, Store};

/// The store at `url`.
pub(super) async fn open(url: &str, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    let clock = clock.clone();
    let scheme = url.split(':').next().unwrap_or_default();
    Ok(match scheme {
        "sqlite" => Arc::new(SqliteStore::connect(Options::parse(url)?).await?),
        "redis" | "rediss" | "redis+unix" | "unix" | "redis+sentinel" | "rediss+sentinel" => {
            Arc::new(RedisStore::connect(url, clock).await?)
        }
        "redis+cluster" | "rediss+cluster" => Arc::new(ClusterStore::connect(url, clock).await?),
        "redlock" | "redlocks" | "redis+all" | "rediss+all" => {
            Arc::new(QuorumStore::connect_redis(url, clock).await?)
        }
        _ => {
            let what = format!("{scheme:?} is no store that several processes can use");
            return Err(Error::new(ErrorKind::Configuration, what));
        }
    })
}
