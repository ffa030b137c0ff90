#![doc = include_str!("docs.md")]

mod connection;
mod decode;
mod diagnose;
mod encode;
mod errors;
mod guarantees;
mod listing;
mod options;
mod replicas;
mod scripts;
mod step;
mod subscription;

use std::sync::{Arc, Weak};

use tenure_core::{
    BoxFuture, Error, Finding, Guarantees, Inbox, Listener, Listing, Reply, Request, Store,
};

use crate::clock::Clock;
use connection::Link;
use options::Options;
use step::Nonces;

pub use guarantees::GUARANTEES;

/// Locks on one Redis server. See the [module](self) for what it promises and what breaks it.
#[derive(Debug)]
pub struct RedisStore {
    link: Arc<Link>,
    nonces: Nonces,
}

impl RedisStore {
    /// Connects to the server at `url`; the [module](self) lists what a URL can say.
    ///
    /// `clock` bounds how long a call may take; leases end by the server's clock.
    ///
    /// # Errors
    /// [`Configuration`](tenure_core::ErrorKind::Configuration) if the URL is wrong, otherwise
    /// whatever keeps the server from serving us. No error shows the password.
    pub async fn connect(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let store = Self::connect_lazily(url, clock)?;
        let connected = store.link.live(store.link.deadline()).await;
        connected.map_err(|failure| failure.error())?;
        Ok(store)
    }

    /// Checks `url`, and connects when the first request is made.
    ///
    /// # Errors
    /// [`Configuration`](tenure_core::ErrorKind::Configuration) if the URL is wrong.
    pub fn connect_lazily(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let options = Options::parse(url)?;
        let nonces = Nonces::new()?;
        let link = Link::new(options, clock);
        Ok(Self { link, nonces })
    }
}

impl Store for RedisStore {
    fn guarantees(&self) -> Guarantees {
        GUARANTEES
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(step::apply(&self.link, &self.nonces, batch))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        Box::pin(listing::list(&self.link, &self.nonces, prefix))
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let listening = self.link.listen(inbox, listener).await;
            listening.map_err(|failure| failure.error())
        })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        Box::pin(diagnose::diagnose(&self.link))
    }
}
