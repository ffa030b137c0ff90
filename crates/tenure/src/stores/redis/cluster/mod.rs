//! [`ClusterStore`]: locks on the nodes of a Redis Cluster, each on the node that has its slot.
//!
//! There is one connection to each primary, as to a single server (`Link`). `route` sends requests to
//! the right one, `nodes` knows which that is, `layout` is how it finds out.

mod address;
mod agreement;
mod confirm;
mod diagnose;
mod initialize;
mod layout;
mod nodes;
mod redirect;
mod route;
mod slots;
mod view;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tenure_core::{
    BoxFuture, Error, Finding, Guarantees, Inbox, Listener, Listing, LockName, Recovering,
    Recovery, Reply, Request, Shard, Store, Ttl,
};

use super::errors::Failure;
use super::guarantees::CLUSTER_GUARANTEES;
use super::listing;
use super::step::Nonces;
use crate::clock::Clock;

pub(super) use nodes::Nodes;
pub(super) use redirect::Redirect;
pub(super) use slots::{Slots, slot, tag};
pub(super) use view::incarnation;

/// How often we look whether all nodes are there that we listen to.
const LOOK: Duration = Duration::from_secs(2);

/// After so many looks it is asked who has what, without a reason: it costs each node some work.
const LOOKS: u32 = 15;

/// How often it is asked at most, with a reason.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Shards that differ by this share a lane of the client.
const LANES: usize = 16;

/// Where those wait whose slot nobody serves right now: a lane that few clusters have a node for.
const APART: Shard = Shard::new(LANES - 1);

/// Locks on a Redis Cluster. See the [module](super) for what it promises and what breaks it.
#[derive(Debug)]
pub struct ClusterStore {
    nodes: Arc<Nodes>,
    nonces: Nonces,
}

impl ClusterStore {
    /// Connects to the cluster that the nodes at `url` belong to; the [module](super) lists what a URL
    /// can say.
    ///
    /// # Errors
    /// [`Configuration`](tenure_core::ErrorKind::Configuration) if the URL is wrong, otherwise whatever
    /// keeps all of these nodes from serving us. No error shows the password.
    pub async fn connect(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let (options, seeds) = address::parse(url)?;
        let nodes = Nodes::new(options, seeds, clock);
        nodes.refresh().await.map_err(|failure| failure.error())?;
        tokio::spawn(watch(Arc::downgrade(&nodes)));
        let nonces = Nonces::new()?;
        Ok(Self { nodes, nonces })
    }

    /// The longest lease that nobody else is given while it lasts, even if a node forgets it; `None` if none
    /// is protected (`recovery=off`).
    #[must_use]
    pub fn longest_protected_lease(&self) -> Option<Ttl> {
        let caution = self.nodes.options.caution;
        (caution.recovery != Recovery::Off).then_some(caution.max_ttl)
    }

    async fn list_all(&self, prefix: &str) -> Result<Listing, Error> {
        let failed = |failure: Failure| failure.error();
        let serving = self.nodes.serving();
        let scanning = serving.iter().map(|link| listing::names(link, prefix));
        let mut names = BTreeSet::new();
        for found in join_all(scanning).await {
            names.extend(found.map_err(failed)?);
        }
        let known = listing::inspected(self, names, &self.nodes.keys).await?;
        match (known, serving.first()) {
            (Some(listing), _) => Ok(listing),
            (None, Some(link)) => listing::nothing(link).await.map_err(failed),
            (None, None) => Err(Failure::protocol("the cluster has no nodes").error()),
        }
    }
}

impl Store for ClusterStore {
    fn guarantees(&self) -> Guarantees {
        CLUSTER_GUARANTEES
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(route::apply(&self.nodes, &self.nonces, batch))
    }

    fn shard(&self, name: &LockName) -> Shard {
        let slot = self.nodes.keys.slot(name).unwrap_or(0);
        match self.nodes.slots.owner(slot) {
            None => APART,
            // Whoever has to wait until it has arrived holds up nobody else on that node.
            Some(owner) if self.nodes.slots.is_moving(slot) => {
                Shard::new(APART.number() + LANES * (owner + 1))
            }
            Some(owner) => Shard::new(owner),
        }
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        Box::pin(self.list_all(prefix))
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let listening = self.nodes.listen(inbox, &listener).await;
            listening.map_err(|failure| failure.error())
        })
    }

    fn recovering<'a>(
        &'a self,
        name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        Box::pin(diagnose::recovering(&self.nodes, name))
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        Box::pin(diagnose::diagnose(&self.nodes))
    }
}

/// Keeps up with what nodes there are; ends with the store.
async fn watch(nodes: Weak<Nodes>) {
    let mut looks = 0;
    loop {
        let Some(strong) = nodes.upgrade() else {
            return;
        };
        let (clock, outdated) = (strong.clock.clone(), strong.outdated.clone());
        drop(strong);
        let told = tokio::select! {
            () = outdated.notified() => true,
            () = clock.sleep(LOOK) => false,
        };
        let Some(strong) = nodes.upgrade() else {
            return;
        };
        looks += 1;
        if told || looks >= LOOKS || strong.misses_somebody() {
            looks = 0;
            // Its failure is told to whoever asks something; here it is only tried again.
            let _ = strong.refresh().await;
            drop(strong);
            clock.sleep(LOOK_AGAIN).await;
        }
    }
}
