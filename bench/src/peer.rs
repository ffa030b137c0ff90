//! Which lock each of tenure's peer names takes.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::stores::memory::MemoryStore;
use tenure::stores::redis::RedisStore;
use tenure::{Guard, Lock, Store, Tenure};

use crate::Fault;

/// The ttl wherever the scenario names none: what the other programs use.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// One of the names under which tenure is measured. The store comes with the URL; the name says what
/// is expected of it, so that a wrong pair is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerKind {
    scheme: &'static str,
    flavour: Flavour,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Mutex,
    Write,
    /// The only permit, so that the same exclusion is measured as with the others.
    Permit,
}

const KINDS: [(&str, PeerKind); 6] = [
    ("tenure", PeerKind::new("redis", Flavour::Mutex)),
    ("tenure-sqlite", PeerKind::new("sqlite", Flavour::Mutex)),
    ("tenure-memory", PeerKind::new("memory", Flavour::Mutex)),
    ("tenure-rw", PeerKind::new("redis", Flavour::Write)),
    ("tenure-sem", PeerKind::new("redis", Flavour::Permit)),
    ("tenure-redlock", PeerKind::new("redlock", Flavour::Mutex)),
];

impl PeerKind {
    const fn new(scheme: &'static str, flavour: Flavour) -> Self {
        Self { scheme, flavour }
    }

    /// Whether it takes the majority of several servers.
    pub(crate) fn is_quorum(self) -> bool {
        self.scheme == "redlock"
    }

    /// # Errors
    /// For a name that is not one of ours.
    pub(crate) fn read(name: &str) -> Result<Self, Fault> {
        let found = KINDS.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let known: Vec<_> = KINDS.iter().map(|(known, _)| *known).collect();
            format!(
                "there is no peer `{name}` (there are: {})",
                known.join(", ")
            )
            .into()
        })
    }

    /// # Errors
    /// If the URL is not of this peer's store, or the store cannot be reached.
    pub(crate) async fn connect(self, url: &str) -> Result<Peer, Fault> {
        let url = match self.scheme {
            // The contract names the servers one by one.
            "redlock" => format!("redlock://{}", url.replace("redis://", "")),
            _ => url.to_owned(),
        };
        self.check(&url)?;
        let url = known_to_be_new(&url);
        Ok(Peer {
            tenure: tenure::connect(&url).await?,
            flavour: self.flavour,
        })
    }

    /// The peer's store alone, without a client.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect), and for a store that is only measured through the client.
    pub(crate) async fn store(self, url: &str) -> Result<Arc<dyn Store>, Fault> {
        self.check(url)?;
        let clock = Arc::new(SystemClock::start()?);
        match self.scheme {
            "redis" => Ok(Arc::new(
                RedisStore::connect(&known_to_be_new(url), clock).await?,
            )),
            "memory" => Ok(Arc::new(MemoryStore::new(clock))),
            other => Err(format!("a store of {other}: is not measured alone").into()),
        }
    }

    fn check(self, url: &str) -> Result<(), Fault> {
        if url.starts_with(self.scheme) {
            Ok(())
        } else {
            Err(format!("this peer needs a URL of {}:", self.scheme).into())
        }
    }
}

/// The harness starts a server of its own: it cannot have forgotten anything.
fn known_to_be_new(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    if !url.starts_with("red") || url.contains("recovery=") {
        return url.to_owned();
    }
    format!("{url}{separator}recovery=open")
}

/// A connected client that takes one kind of lock.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    tenure: Tenure,
    flavour: Flavour,
}

impl Peer {
    /// Takes `name` if that can be done at once.
    pub(crate) async fn try_acquire(
        &self,
        name: &str,
        ttl: Duration,
    ) -> Result<Option<Guard>, tenure::Error> {
        Ok(match self.lock(name).ttl(ttl).try_acquire().await? {
            tenure::Attempt::Acquired(guard) => Some(guard),
            tenure::Attempt::Busy(_) => None,
        })
    }

    /// Takes `name`, waiting for it as long as it takes.
    pub(crate) async fn acquire(&self, name: &str, ttl: Duration) -> Result<Guard, tenure::Error> {
        self.lock(name).ttl(ttl).acquire().await
    }

    /// How many of the names with this prefix are held, by the store's own word.
    pub(crate) async fn held(&self, prefix: &str) -> Result<usize, tenure::Error> {
        let listing = self.tenure.list(prefix).await?;
        let held = |snapshot: &tenure::Snapshot| !snapshot.holders.is_empty();
        Ok(listing.locks.iter().filter(|(_, lock)| held(lock)).count())
    }

    /// Gives back everything that is held.
    pub(crate) async fn release_all(&self) -> Result<usize, tenure::Error> {
        self.tenure.release_all().await
    }

    /// Waits until dropped attempts have left the queue.
    pub(crate) async fn settle(&self) {
        self.tenure.settle().await;
    }

    fn lock(&self, name: &str) -> Lock {
        match self.flavour {
            Flavour::Mutex => self.tenure.lock(name),
            Flavour::Write => self.tenure.rwlock(name).write(),
            Flavour::Permit => self.tenure.semaphore(name, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_peer_is_refused_with_the_known_ones() {
        let error = PeerKind::read("tenur").unwrap_err().to_string();
        assert!(error.contains("`tenur`") && error.contains("tenure-sqlite"));
    }

    #[tokio::test]
    async fn a_peer_refuses_the_store_of_another() {
        let kind = PeerKind::read("tenure-sqlite").unwrap();
        assert!(kind.connect("memory:").await.is_err());
    }

    #[tokio::test]
    async fn the_servers_of_a_quorum_are_named_one_by_one() {
        let kind = PeerKind::read("tenure-redlock").unwrap();
        let error = kind.connect("redis://a,redis://b").await.unwrap_err();
        assert!(error.to_string().contains("too few servers (2)"), "{error}");
    }

    #[tokio::test]
    async fn a_held_name_is_counted_until_it_is_released() {
        let kind = PeerKind::read("tenure-memory").unwrap();
        let peer = kind.connect("memory:").await.unwrap();
        let guard = peer.acquire("bench:1", TTL).await.unwrap();
        assert_eq!(peer.held("bench:").await.unwrap(), 1);
        assert_eq!(peer.held("other:").await.unwrap(), 0);
        guard.release().await.unwrap();
        assert_eq!(peer.held("bench:").await.unwrap(), 0);
    }
}
