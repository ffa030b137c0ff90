//! What `tenure doctor --init` does for a cluster: all slots of all nodes are opened, or none.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use tenure_core::{Error, Store as _};

use super::super::connection::Link;
use super::super::listing;
use super::super::memory::initialize::{self, Examined, First, open_together};
use super::super::memory::sweep;
use super::ClusterStore;
use super::view::{View, view};
use crate::clock::Clock;
use crate::initialize::{Assurance, Initialization};

/// A slot without a record may have been another node's a moment ago, with locks that are still held.
const IN_USE: &str = "other slots of this cluster are open, so it has been in use and is not new: whoever held a lock \
    of the slots that wait may hold it still. Wait until they open by themselves";

impl ClusterStore {
    /// Opens the cluster that the nodes at `url` belong to, which is known to be new; see
    /// [`initialize`](crate::initialize()).
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and if a node that has slots cannot be asked.
    pub async fn initialize(
        url: &str,
        clock: Arc<dyn Clock>,
        assurance: Assurance,
    ) -> Result<Vec<Initialization>, Error> {
        let store = Self::connect(url, clock).await?;
        let serving = store.nodes.serving();
        let links: Vec<&Link> = serving.iter().map(|link| &**link).collect();
        let examine = || examine(&store, &serving).boxed();
        let refusal = |examined: &[Examined], First(first)| {
            let refused = examined.iter().any(|it| it.against.is_some());
            let other = || "another node of the cluster is not new, so none was opened".to_owned();
            let young = || examined.iter().find_map(|it| it.young.clone());
            let used = first && examined.iter().any(|it| it.is_in_use);
            let waits = examined.iter().any(|it| !it.is_open());
            let used = || (used && waits).then(|| IN_USE.to_owned());
            refused.then(other).or_else(used).or_else(young)
        };
        let outcomes = open_together(&links, assurance, examine, refusal).await?;
        let servers = serving.iter().map(|link| link.options.address.to_string());
        let done = servers.zip(outcomes);
        Ok(done
            .map(|(server, outcome)| Initialization { server, outcome })
            .collect())
    }
}

/// Looks at all nodes, and for locks that are held anywhere.
async fn examine(store: &ClusterStore, nodes: &[Arc<Link>]) -> Result<Vec<Examined>, Error> {
    let examined = try_join_all(nodes.iter().map(|link| examine_node(link))).await?;
    if examined.iter().all(Examined::is_open) {
        return Ok(examined);
    }
    let held = listing::held(&store.list("").await?);
    let against = held.or(gone(nodes).await?);
    let examined = examined.into_iter().map(|it| it.unless(against.clone()));
    Ok(examined.collect())
}

/// That a node is not there which may have had slots, and locks in them, that others have now.
async fn gone(nodes: &[Arc<Link>]) -> Result<Option<String>, Error> {
    let views = nodes.iter().map(async |link| {
        let view = view(link).await;
        view.map_err(|failure| failure.at(&link.options.address).error())
    });
    let views = try_join_all(views).await?;
    let gone = views.iter().find_map(View::gone);
    Ok(gone.map(|address| {
        format!(
            "the primary at {address} has no slots and cannot be reached: others may have been given its slots, and whoever \
             held a lock there may hold it still. If it never had any, start it, or let every node forget it \
             (CLUSTER FORGET)"
        )
    }))
}

async fn examine_node(link: &Link) -> Result<Examined, Error> {
    let examined = initialize::examine(link, &sweep::parts_of(link)).await;
    examined.map_err(|failure| failure.at(&link.options.address).error())
}
