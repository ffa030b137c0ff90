//! Servers of a quorum that are known to be new: all of them, or none.

use std::sync::Arc;

use futures_util::future::join_all;
use tenure_core::Error;

use super::QuorumStore;
use super::options::Options;
use crate::clock::Clock;
use crate::initialize::{Assurance, Initialization, Initialized};
use crate::stores::redis::{Examined, RedisStore};

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
        let examined = join_all(servers.iter().map(|(_, store)| store.examine())).await;
        let examined = examined.into_iter().collect::<Result<Vec<_>, _>>()?;
        let against = match assurance {
            Assurance::New => against(&servers, &examined),
            Assurance::NothingIsHeld => None,
        };
        let mut done = Vec::with_capacity(servers.len());
        for ((label, store), examined) in servers.iter().zip(examined) {
            let outcome = match (examined, &against) {
                (Examined::Open, _) => Initialized::WasOpen,
                (Examined::Closed { against: Some(own) }, Some(_)) => Initialized::Refused(own),
                (Examined::Closed { .. }, Some(why)) => Initialized::Refused(why.clone()),
                (Examined::Closed { .. }, None) => store.open_as_new().await?,
            };
            done.push(Initialization {
                server: label.clone(),
                outcome,
            });
        }
        Ok(done)
    }
}

/// What speaks against opening any of them.
fn against(servers: &[(String, RedisStore)], examined: &[Examined]) -> Option<String> {
    let with_labels = || servers.iter().map(|(label, _)| label).zip(examined);
    let not_new = with_labels().find_map(|(label, examined)| match examined {
        Examined::Closed { against: Some(_) } => {
            Some(format!("{label} is not new, and they hold locks together"))
        }
        _ => None,
    });
    let in_use = with_labels().find_map(|(label, examined)| match examined {
        Examined::Open => Some(format!(
            "{label} is in use already, and locks that they hold together may be forgotten here"
        )),
        Examined::Closed { .. } => None,
    });
    not_new.or(in_use)
}
