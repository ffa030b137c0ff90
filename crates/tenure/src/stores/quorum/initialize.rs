//! Servers of a quorum that are known to be new: all of them, or none.

use std::sync::Arc;

use tenure_core::Error;

use super::QuorumStore;
use super::options::Options;
use crate::clock::Clock;
use crate::initialize::{Assurance, Initialization};
use crate::stores::redis::{Examined, First, RedisStore};

impl QuorumStore {
    /// Opens the servers at `url`, which are known to be new; see [`initialize`](crate::initialize()).
    ///
    /// One that is not open beside others that are is not new: votes that it gave may be forgotten, and
    /// together with those of the others make two holders.
    ///
    /// # Errors
    /// If one of them cannot be asked, and then nothing is done.
    pub async fn initialize_redis(
        url: &str,
        clock: Arc<dyn Clock>,
        assurance: Assurance,
    ) -> Result<Vec<Initialization>, Error> {
        let servers = Options::parse(url)?.servers.into_iter();
        let servers = servers.map(|(label, url)| {
            let store = RedisStore::watching(&url, clock.clone())?;
            Ok::<_, Error>((label, store))
        });
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let (labels, stores): (Vec<String>, Vec<RedisStore>) = servers.into_iter().unzip();
        let refusal = |examined: &[Examined], first| against(&labels, examined, first);
        let outcomes = RedisStore::open_together(&stores, assurance, refusal).await?;
        let done = labels.iter().cloned().zip(outcomes);
        Ok(done
            .map(|(server, outcome)| Initialization { server, outcome })
            .collect())
    }
}

/// What speaks against opening any of them.
fn against(labels: &[String], examined: &[Examined], first: First) -> Option<String> {
    let with_labels = || labels.iter().zip(examined);
    if examined.iter().all(Examined::is_open) {
        return None;
    }
    let not_new = with_labels().find(|(_, examined)| examined.against.is_some());
    let not_new =
        not_new.map(|(label, _)| format!("{label} is not new, and they hold locks together"));
    let in_use = with_labels().find(|(_, examined)| examined.is_open() && first.0);
    let in_use = in_use.map(|(label, _)| {
        format!(
            "{label} is in use already, and locks that they hold together may be forgotten here"
        )
    });
    let young = || {
        let young = |(label, it): (&String, &Examined)| {
            let why = it.young.as_ref()?;
            Some(format!("{label} is young: {why}"))
        };
        with_labels().find_map(young)
    };
    not_new.or(in_use).or_else(young)
}
