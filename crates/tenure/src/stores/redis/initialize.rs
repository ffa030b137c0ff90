//! What `tenure doctor --init` does for servers that each have one memory: one alone, or several that hold
//! locks together. How it is done is in [`memory::initialize`](super::memory::initialize).

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use tenure_core::Error;

use super::connection::Link;
use super::errors::Failure;
use super::memory::initialize::{self, Examined, First};
use super::{RedisStore, listing};
use crate::clock::Clock;
use crate::initialize::{Assurance, Initialization, Initialized};

impl RedisStore {
    /// Opens the server at `url`, which is known to be new, or the primary that its sentinels name; see
    /// [`initialize`](crate::initialize()).
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn initialize(
        url: &str,
        clock: Arc<dyn Clock>,
        assurance: Assurance,
    ) -> Result<Initialization, Error> {
        let store = Self::connect_lazily(url, clock)?;
        let server = store.link.options.address.to_string();
        let refusal = |examined: &[Examined], _| {
            let Examined { against, young, .. } = examined.first()?;
            against.as_ref().or(young.as_ref()).cloned()
        };
        let outcomes = Self::open_together(&[store], assurance, refusal).await?;
        let outcome = outcomes.into_iter().next().unwrap_or(Initialized::WasOpen);
        Ok(Initialization { server, outcome })
    }

    /// Opens all of these servers, or none, and says what became of each.
    ///
    /// # Errors
    /// If one of them cannot be asked.
    pub(in crate::stores) async fn open_together(
        stores: &[Self],
        assurance: Assurance,
        refusal: impl Fn(&[Examined], First) -> Option<String>,
    ) -> Result<Vec<Initialized>, Error> {
        let links: Vec<&Link> = stores.iter().map(|store| &*store.link).collect();
        let examine = || {
            let examined = stores.iter().map(Self::examine);
            try_join_all(examined).boxed()
        };
        Box::pin(initialize::open_together(
            &links, assurance, examine, refusal,
        ))
        .await
    }

    /// Looks whether the server is open, and what speaks against opening it.
    async fn examine(&self) -> Result<Examined, Error> {
        let failed = |failure: Failure| failure.at(&self.link.options.address).error();
        let examined = Box::pin(initialize::examine(&self.link, &[None])).await;
        let examined = examined.map_err(failed)?;
        if examined.is_open() {
            return Ok(examined);
        }
        let names = listing::names(&self.link, "").await.map_err(failed)?;
        let listed = listing::inspected(self, names, &self.link.options.keys).await?;
        let held = listed.and_then(|listing| listing::held(&listing));
        Ok(examined.unless(held))
    }
}
