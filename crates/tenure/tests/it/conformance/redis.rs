//! The Redis store, on a real server.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::core::{BoxFuture, Error, Retry, Store};
use tenure::stores::redis::{ClusterStore, RedisStore};
use tenure_conformance::{Subject, check};

use crate::support::cluster::Cluster;
use crate::support::redis_server::RedisServer;
use crate::support::sentinels::Watched;
use crate::support::wait::{breath, real_time};

#[tokio::test]
async fn redis_conforms() {
    let server = RedisServer::start();
    let url = format!("{}&{PATIENT}", server.url());
    check(&Redis { url }).await.assert_all_passed();
}

/// Servers and proxies that speak RESP2 only: pushes come on a connection of their own.
#[tokio::test]
async fn redis_conforms_over_resp2() {
    let server = RedisServer::start();
    let url = format!("{}&{PATIENT}&protocol=resp2", server.url());
    check(&Redis { url }).await.assert_all_passed();
}

/// The primary that three sentinels name; every grant waits for a majority of them.
#[tokio::test]
async fn redis_conforms_under_sentinel() {
    let watched = Watched::start_calm();
    let url = watched.url_with("", &format!("?{PATIENT}&max_ttl=60m"));
    check(&Redis { url }).await.assert_all_passed();
}

/// Three primaries; each lock is on one of them.
#[tokio::test]
async fn redis_conforms_on_a_cluster() {
    let cluster = Cluster::shared();
    let url = format!(
        "{}&{PATIENT}&max_ttl=60m&prefix=conformance:",
        cluster.url()
    );
    check(&Redis { url }).await.assert_all_passed();
}

/// A machine that is busy with other tests may keep a call waiting for longer than usual.
const PATIENT: &str = "call_timeout=30s";

struct Redis {
    url: String,
}

impl Redis {
    async fn connect(&self) -> Result<Arc<dyn Store>, Error> {
        let clock = Arc::new(SystemClock::start().expect("a clock"));
        if self.url.starts_with("redis+cluster:") {
            let store = ClusterStore::connect(&self.url, clock).await?;
            return Ok(Arc::new(store) as Arc<dyn Store>);
        }
        let store = RedisStore::connect(&self.url, clock).await?;
        Ok(Arc::new(store) as Arc<dyn Store>)
    }
}

impl Subject for Redis {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, Error>> {
        Box::pin(async {
            // Sentinels that take longer than a second to answer are no fault of the store: on a busy machine they do.
            for _ in 0..20 {
                match self.connect().await {
                    Err(error) if error.retry() == Retry::Later => breath().await,
                    opened => return opened,
                }
            }
            self.connect().await
        })
    }

    fn pass_time(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(real_time(duration))
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(breath())
    }

    /// Keys expire by the millisecond, but the exact expiry is in the value and decides.
    fn time_tolerance(&self) -> Duration {
        Duration::ZERO
    }

    fn sees_listeners(&self) -> bool {
        true
    }
}
