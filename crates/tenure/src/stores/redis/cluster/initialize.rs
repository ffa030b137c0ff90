//! What `tenure doctor --init` does for a cluster: all slots of all nodes are opened, or none.

use std::sync::Arc;

use futures_util::future::join_all;
use tenure_core::{Error, ErrorKind, Recovery, Store as _};

use super::super::errors::Failure;
use super::super::memory::{initialize::evidence, sweep};
use super::ClusterStore;
use crate::clock::Clock;
use crate::initialize::{Assurance, Initialization, Initialized};

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
        if store.nodes.options.caution.recovery == Recovery::Off {
            return Err(Error::new(
                ErrorKind::Configuration,
                "with recovery=off nothing is recorded, and a node that forgot lets everybody in anyway",
            ));
        }
        let serving = store.nodes.serving();
        let against = join_all(serving.iter().map(|link| async {
            let failed = |failure: Failure| failure.at(&link.options.address).error();
            // Whoever says hello first writes down what speaks for something having been there.
            sweep::greet_node(link).await.map_err(failed)?;
            let survey = sweep::survey(link).await.map_err(failed)?;
            let survey = survey.ok_or_else(|| failed(hidden()))?;
            let why = survey.closed().find_map(|record| evidence(record.cause));
            Ok::<_, Error>((why.map(str::to_owned), survey.closed().count()))
        }));
        let mut against = against.await.into_iter().collect::<Result<Vec<_>, _>>()?;
        if let (Some(held), true) = (store.held().await?, against.iter().any(|(_, it)| *it > 0)) {
            for (why, closed) in &mut against {
                *why = why.take().or((*closed > 0).then(|| held.clone()));
            }
        }
        let refused = assurance == Assurance::New && against.iter().any(|(why, _)| why.is_some());
        let opening = serving
            .iter()
            .zip(against)
            .map(async |(link, (why, closed))| {
                let failed = |failure: Failure| failure.at(&link.options.address).error();
                let outcome = match (closed, why) {
                    (0, _) => Initialized::WasOpen,
                    (_, why) if refused => Initialized::Refused(why.unwrap_or_else(|| {
                        "another node of the cluster is not new, so none was opened".to_owned()
                    })),
                    _ => {
                        sweep::open_node(link).await.map_err(failed)?;
                        Initialized::Opened
                    }
                };
                let server = link.options.address.to_string();
                Ok(Initialization { server, outcome })
            });
        join_all(opening).await.into_iter().collect()
    }

    /// A lock that is held, in words.
    async fn held(&self) -> Result<Option<String>, Error> {
        let listing = self.list("").await?;
        let held = listing.locks.iter().find(|(_, it)| !it.holders.is_empty());
        Ok(held.map(|(name, _)| {
            format!(
                "the lock {:?} is held there, so it was in use before",
                name.as_str()
            )
        }))
    }
}

fn hidden() -> Failure {
    Failure::new(
        ErrorKind::Forbidden,
        "this user may not call INFO, so whose records these are cannot be said: allow +info",
    )
}
