#![doc = include_str!("docs.md")]

mod cache;
mod cluster;
mod connection;
mod decode;
mod diagnose;
mod encode;
mod errors;
mod guarantees;
mod initialize;
mod keys;
mod listening;
mod listing;
mod memory;
mod opening;
mod options;
mod relying;
mod replicas;
mod scripts;
mod sentinel;
mod step;
mod subscription;
mod watching;

use std::sync::{Arc, Weak};

use tenure_core::{
    Action, BoxFuture, Error, ErrorKind, Finding, Guarantees, Inbox, Listener, Listing, LockName,
    Recovering, Recovery, Reply, Request, Shard, Store, Ttl,
};

use crate::clock::{Clock, bounded};
use connection::{Link, Live};
use errors::Failure;
use options::Options;
use sentinel::{Configuration, Sentinels};
use step::Nonces;

pub use cache::RedisCache;
pub use cluster::ClusterStore;
pub(in crate::stores) use memory::initialize::{Examined, First};

pub use guarantees::{CLUSTER_GUARANTEES, GUARANTEES, SENTINEL_GUARANTEES};

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
        let deadline = store.link.deadline();
        let live = store.link.live(deadline).await;
        let live = live.map_err(|failure| failure.error())?;
        let greeted = memory::greet(&store.link, &live, deadline).await;
        store.unless_misconfigured(greeted)
    }

    /// The same without saying hello, so that nothing is written before the first request that does more than
    /// look.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_to_look(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let store = Self::connect_lazily(url, clock)?;
        let live = store.link.live(store.link.deadline()).await;
        live.map_err(|failure| failure.error())?;
        let looked = memory::outlooks(&store.link, &[None]).await;
        let looked = looked.and_then(|all| all.into_iter().try_for_each(|it| it.map(drop)));
        store.unless_misconfigured(looked)
    }

    /// Checks `url`, and connects when the first request is made.
    ///
    /// # Errors
    /// [`Configuration`](tenure_core::ErrorKind::Configuration) if the URL is wrong.
    pub fn connect_lazily(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::lazily(Options::parse(url)?, clock)
    }

    /// The same, for one server of several whose place another may take, as under Sentinel. Unless the URL says otherwise, `recovery=strict`: its first use
    /// waits `max_ttl` once. Each call looks whether the server was demoted and promoted meanwhile.
    ///
    /// # Errors
    /// [`Configuration`](tenure_core::ErrorKind::Configuration) if the URL is wrong.
    pub fn connect_as_member(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::lazily(Options::parse(url)?.for_a_member().for_replicas()?, clock)
    }

    /// For a node of a quorum: strict unless the URL says otherwise, and the server tells us of keys
    /// that change.
    pub(crate) fn watching(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let mut options = Options::parse(url)?.for_a_member();
        options.watching = true;
        Self::lazily(options, clock)
    }

    /// The longest lease that nobody else is given while it lasts, even if the server forgets it; `None`
    /// if none is protected (`recovery=off`).
    #[must_use]
    pub fn longest_protected_lease(&self) -> Option<Ttl> {
        let caution = self.link.options.caution;
        (caution.recovery != Recovery::Off).then_some(caution.max_ttl)
    }

    /// A replica, for example, may be looked at all the same; whoever wants more is told then.
    fn unless_misconfigured(self, greeted: Result<(), Failure>) -> Result<Self, Error> {
        match greeted {
            Err(failure) if failure.kind == ErrorKind::Configuration => Err(failure.error()),
            _ => Ok(self),
        }
    }

    fn lazily(options: Options, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let nonces = Nonces::new()?;
        let link = Link::new(options, clock);
        Ok(Self { link, nonces })
    }
}

impl RedisStore {
    /// Under Sentinel: decides a batch on the primary, and relies on the answers only as far as the
    /// sentinels allow.
    async fn apply_watched(
        &self,
        sentinels: &Arc<Sentinels>,
        batch: &[Request],
    ) -> Vec<Result<Reply, Error>> {
        let refused: Vec<_> = batch.iter().map(|it| sentinels.refusal(it)).collect();
        if refused.iter().all(Option::is_none) {
            return self.apply_vouched(sentinels, batch).await;
        }
        let allowed = batch.iter().zip(&refused).filter(|(_, why)| why.is_none());
        let allowed: Vec<Request> = allowed.map(|(request, _)| request.clone()).collect();
        let mut replies = self.apply_vouched(sentinels, &allowed).await.into_iter();
        let answer = |why: Option<Error>| why.map_or_else(|| replies.next(), |why| Some(Err(why)));
        refused.into_iter().filter_map(answer).collect()
    }

    async fn apply_vouched(
        &self,
        sentinels: &Arc<Sentinels>,
        batch: &[Request],
    ) -> Vec<Result<Reply, Error>> {
        let deadline = self.link.deadline();
        let live = match self.link.live(deadline).await {
            Ok(live) => live,
            Err(failure) => return batch.iter().map(|_| Err(failure.error())).collect(),
        };
        let looks = |request: &Request| matches!(request.action, Action::Inspect);
        if batch.iter().all(looks) {
            // Nobody relies on that, and it needs no hello.
            return step::apply(&self.link, &self.nonces, batch).await;
        }
        if let Err(failure) = memory::greet(&self.link, &live, deadline).await {
            if failure.fatal {
                self.link.discard(&live);
            }
            let failure = failure.at(&self.link.options.address);
            return batch.iter().map(|_| Err(failure.error())).collect();
        }
        let relied_on = Configuration {
            primary: live.address.clone(),
            epoch: self.link.memory.epoch(None),
        };
        let began = self.link.clock.now();
        let refreshing = async {
            if sentinels.is_due(batch, &relied_on) {
                let refreshing = refresh(&self.link, sentinels, &live, &relied_on);
                let patience = relying::patience(batch);
                let _ = bounded(&*self.link.clock, patience, refreshing).await;
            }
        };
        let applying = step::apply(&self.link, &self.nonces, batch);
        let (mut replies, ()) = tokio::join!(applying, refreshing);
        if !self.link.is_current(&live) || self.link.memory.epoch(None) != relied_on.epoch {
            // Who has answered is not sure, or in which life: what was granted has to be asked for again.
            relying::distrust(&mut replies, &Failure::given_up(&live.address));
            return replies;
        }
        let vouching = sentinels.vouch(&relied_on, began, deadline, &mut replies);
        if vouching.await.is_some_and(|failure| failure.fatal) {
            self.link.discard(&live);
        }
        replies
    }
}

/// Renews the last confirmation, in the background: whoever renews a lease may not have as much time as sentinels take
/// that do not answer, and the last one still counts.
fn refresh(
    link: &Link,
    sentinels: &Arc<Sentinels>,
    live: &Live,
    relied_on: &Configuration,
) -> tokio::task::JoinHandle<()> {
    let (link, sentinels) = (link.me.clone(), sentinels.clone());
    let (generation, relied_on) = (live.generation(), relied_on.clone());
    tokio::spawn(async move {
        let failure = sentinels.refresh(&relied_on).await;
        if let Some(link) = link
            .upgrade()
            .filter(|_| failure.is_some_and(|it| it.fatal))
        {
            link.discard_generation(generation);
        }
    })
}

impl Store for RedisStore {
    fn guarantees(&self) -> Guarantees {
        if self.link.sentinels.is_some() {
            SENTINEL_GUARANTEES
        } else {
            GUARANTEES
        }
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        match &self.link.sentinels {
            None => Box::pin(step::apply(&self.link, &self.nonces, batch)),
            Some(sentinels) => Box::pin(self.apply_watched(sentinels, batch)),
        }
    }

    fn shard(&self, _name: &LockName) -> Shard {
        Shard::WHOLE
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        Box::pin(listing::list(self, &self.link, prefix))
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

    fn recovering<'a>(
        &'a self,
        _name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        Box::pin(async {
            let recovering = memory::recovering(&self.link, &[None]).await;
            recovering.map_err(|failure| failure.error())
        })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        Box::pin(async {
            let mut findings = diagnose::diagnose(&self.link).await?;
            if let (Some(sentinels), Some(live)) = (&self.link.sentinels, self.link.current()) {
                let deadline = self.link.deadline();
                findings.extend(sentinels.findings(&live.address, deadline).await);
            }
            Ok(findings)
        })
    }
}
