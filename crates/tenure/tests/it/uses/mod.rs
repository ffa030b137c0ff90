//! What is built on locks, on every store.

mod coalesce;
mod sequence;
mod worker;

#[cfg(feature = "redis")]
use crate::support::{cluster::Cluster, redis_server::RedisServer, sentinels::Watched};

/// Where locks live, for as long as a test needs it.
pub(crate) struct Place {
    pub(crate) url: String,
    /// Whatever must not be dropped before the test has ended.
    _alive: Box<dyn std::any::Any>,
}

impl Place {
    fn new(url: String, alive: impl std::any::Any) -> Self {
        Self {
            url,
            _alive: Box::new(alive),
        }
    }

    /// Of this test alone.
    fn memory(test: &str) -> Self {
        Self::new(format!("memory:{test}"), ())
    }

    #[cfg(feature = "sqlite")]
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("locks.db").display());
        Self::new(url, folder)
    }

    #[cfg(feature = "redis")]
    fn redis() -> Self {
        let server = RedisServer::start();
        Self::new(server.url(), server)
    }

    #[cfg(feature = "redis")]
    fn sentinel() -> Self {
        let watched = Watched::start_calm();
        Self::new(watched.url(), watched)
    }

    #[cfg(feature = "redis")]
    fn cluster() -> Self {
        let cluster = Cluster::shared();
        Self::new(cluster.url(), cluster)
    }

    #[cfg(feature = "redis")]
    fn redlock() -> Self {
        let servers = [(); 3].map(|()| RedisServer::start());
        let addresses = servers.each_ref().map(RedisServer::address).join(",");
        let url = format!("redlock://{addresses}?node_timeout=1s&recovery=open");
        Self::new(url, servers)
    }

    /// Two clients, as good as two processes.
    pub(crate) async fn two(&self) -> (tenure::Tenure, tenure::Tenure) {
        let one = tenure::connect(&self.url).await.unwrap();
        (one, tenure::connect(&self.url).await.unwrap())
    }
}

mod memory {
    use super::*;

    #[tokio::test]
    async fn a_sequence_never_gives_a_number_twice() {
        sequence::never_gives_a_number_twice(&Place::memory("sequence")).await;
    }

    #[tokio::test]
    async fn of_many_who_miss_a_value_one_loads_it() {
        coalesce::one_of_many_loads(&Place::memory("one_of_many_loads")).await;
    }

    #[tokio::test]
    async fn no_two_have_the_same_worker_number() {
        worker::no_two_have_the_same_number(&Place::memory("no_two_have_the_same_number")).await;
    }

    #[tokio::test]
    async fn no_id_is_made_twice() {
        worker::no_id_is_made_twice(&Place::memory("no_id_is_made_twice")).await;
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use super::*;

    #[tokio::test]
    async fn a_sequence_never_gives_a_number_twice() {
        sequence::never_gives_a_number_twice(&Place::sqlite()).await;
    }

    #[tokio::test]
    async fn of_many_who_miss_a_value_one_loads_it() {
        coalesce::one_of_many_loads(&Place::sqlite()).await;
    }

    #[tokio::test]
    async fn no_two_have_the_same_worker_number() {
        worker::no_two_have_the_same_number(&Place::sqlite()).await;
    }

    #[tokio::test]
    async fn no_id_is_made_twice() {
        worker::no_id_is_made_twice(&Place::sqlite()).await;
    }
}

#[cfg(feature = "redis")]
mod redis {
    use super::*;

    #[tokio::test]
    async fn a_sequence_never_gives_a_number_twice() {
        sequence::never_gives_a_number_twice(&Place::redis()).await;
    }

    #[tokio::test]
    async fn of_many_who_miss_a_value_one_loads_it() {
        coalesce::one_of_many_loads(&Place::redis()).await;
    }

    #[tokio::test]
    async fn no_two_have_the_same_worker_number() {
        worker::no_two_have_the_same_number(&Place::redis()).await;
    }

    #[tokio::test]
    async fn no_id_is_made_twice() {
        worker::no_id_is_made_twice(&Place::redis()).await;
    }
}

/// Where starting the servers takes longer than the test: everything at once.
#[cfg(feature = "redis")]
mod several_servers {
    use super::*;

    #[tokio::test]
    async fn under_sentinel() {
        everything(&Place::sentinel()).await;
    }

    #[tokio::test]
    async fn on_a_cluster() {
        everything(&Place::cluster()).await;
    }

    #[tokio::test]
    async fn by_a_majority() {
        everything(&Place::redlock()).await;
    }

    async fn everything(place: &Place) {
        sequence::never_gives_a_number_twice(place).await;
        coalesce::one_of_many_loads(place).await;
        worker::no_two_have_the_same_number(place).await;
        worker::no_id_is_made_twice(place).await;
    }
}
