//! Locks on a service that Sentinel watches over.

mod anew;
mod back;
mod failover;
mod memory;
mod partition;
mod sentinels;
mod unheard;
mod votes;

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::core::{Acquire, Action, Finding, Outcome, Release, Renew, Reply, Severity};
use tenure::stores::redis::RedisStore;
use tenure::{Error, ErrorKind, Fence, Lease, Store as _, Ttl};

use crate::redis_store::store;
use crate::support::peer::{self, Peer, bid, reclaim, renewal};
use crate::support::redis_server::RedisServer;
use crate::support::sentinels::{
    FakeSentinel, Passwords, SERVICE, Says, Sentinel, WITH_TILT, Watched,
};
use crate::support::wait::{eventually, eventually_async, eventually_within};

async fn peer(url: &str) -> Peer<RedisStore> {
    Peer::new(store(url).await).await
}

async fn refusal(url: &str) -> Error {
    let clock = Arc::new(SystemClock::start().expect("a clock"));
    let refused = RedisStore::connect(url, clock).await;
    refused.err().unwrap_or_else(|| panic!("{url} is served"))
}

/// Asks until there is an answer.
async fn answered(peer: &Peer<RedisStore>, what: &str, action: Action) -> Reply {
    let asked = async || peer.try_ask("lock", action.clone()).await.ok();
    eventually_async(what, asked).await
}

fn lasting(lease: Lease, ttl: Duration) -> Action {
    Action::Renew(Renew {
        owner: lease.owner,
        fence: lease.fence,
        ttl: Ttl::new(ttl).expect("long enough"),
        detach: false,
        terms: None,
    })
}
