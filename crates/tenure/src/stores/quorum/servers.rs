//! Redis servers as members of a quorum.

use std::sync::Arc;

use tenure_core::{BoxFuture, Error, LockName, Request};

use super::QuorumStore;
use super::member::{Identified, Identity, Member, Server};
use super::options::Options;
use crate::clock::Clock;
use crate::stores::redis::RedisStore;

impl QuorumStore {
    /// Connects to the Redis servers at `url`; the [module](super) lists what a URL can say.
    ///
    /// # Errors
    /// [`Configuration`](tenure_core::ErrorKind::Configuration) if the URL is wrong, if there are too
    /// few servers or if two are the same one, even under different addresses; otherwise whatever keeps
    /// a majority from serving us. No error shows the password.
    pub async fn connect_redis(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let Options { servers, settings } = Options::parse(url)?;
        let mut members = Vec::with_capacity(servers.len());
        for (label, url) in servers {
            let server = Arc::new(RedisStore::watching(&url, clock.clone())?);
            members.push(Member::new(
                label,
                server.clone(),
                Some(server),
                clock.clone(),
            ));
        }
        Self::of(members, settings, clock).await
    }
}

impl Server for RedisStore {
    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Identified> {
        Box::pin(self.apply_as_one(batch))
    }

    fn identity(&self) -> Option<Identity> {
        self.run()
    }

    fn watch<'a>(&'a self, name: &'a LockName) -> BoxFuture<'a, Result<Option<bool>, Error>> {
        Box::pin(self.watch_name(name))
    }
}
