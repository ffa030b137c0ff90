//! What is built on locks, on every store.

mod coalesce;
#[cfg(feature = "redis")]
mod killed;
#[cfg(feature = "test-util")]
mod scripted;
mod sequence;
mod trial;
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
    pub(crate) fn memory(test: &str) -> Self {
        Self::new(format!("memory:{test}"), ())
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("locks.db").display());
        Self::new(url, folder)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn redis() -> Self {
        let server = RedisServer::start();
        Self::new(server.url(), server)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn sentinel() -> Self {
        let watched = Watched::start_calm();
        Self::new(watched.url(), watched)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn cluster() -> Self {
        let cluster = Cluster::shared();
        Self::new(cluster.url(), cluster)
    }

    /// Held by all of several servers, or by none.
    #[cfg(feature = "redis")]
    pub(crate) fn all_of_two() -> Self {
        let servers = [(); 2].map(|()| RedisServer::start());
        let addresses = servers.each_ref().map(RedisServer::address).join(",");
        let url = format!("redis+all://{addresses}?node_timeout=1s&recovery=open");
        Self::new(url, servers)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn redlock() -> Self {
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

    #[tokio::test]
    async fn by_all() {
        everything(&Place::all_of_two()).await;
    }

    async fn everything(place: &Place) {
        sequence::never_gives_a_number_twice(place).await;
        coalesce::one_of_many_loads(place).await;
        worker::no_two_have_the_same_number(place).await;
        worker::no_id_is_made_twice(place).await;
    }
}

/// Otherwise somebody's lock would stand for a run, a number or a load of somebody else.
#[tokio::test]
async fn nobody_can_take_a_lock_with_the_name_of_a_record() {
    let tenure = tenure::connect("memory:reserved").await.unwrap();
    let hour = std::time::Duration::from_secs(3_600);
    for name in ["~", "~x", "~once:job", "~worker:ids:0", "~sequence:x"] {
        let refusals = [
            tenure.lock(name).try_acquire().await.unwrap_err(),
            tenure.rwlock(name).read().acquire().await.unwrap_err(),
            tenure.semaphore(name, 2).acquire().await.unwrap_err(),
            tenure.owner().lock(name).acquire().await.unwrap_err(),
            tenure.all(["fine", name]).acquire().await.unwrap_err(),
            tenure.election(name).campaign().await.unwrap_err(),
            tenure.once_per(name, hour).begin().await.unwrap_err(),
        ];
        for refused in refusals {
            assert_eq!(refused.kind(), tenure::ErrorKind::InvalidInput, "{name}");
            assert!(refused.to_string().contains('~'), "{refused}");
        }
    }
    assert!(tenure.list("").await.unwrap().locks.is_empty());
}

/// Whatever names people choose, the records of different things have different names.
#[tokio::test]
async fn records_of_different_things_never_share_a_name() {
    let tenure = tenure::connect("memory:collisions").await.unwrap();
    let hour = std::time::Duration::from_secs(3_600);
    let names = ["a", "a:0", "a:0:0", ":", "once:a", "worker:a:0", "~a"];
    let mut kept = Vec::new();
    for name in names {
        kept.push(tenure.worker_number(name, 1).acquire().await.unwrap());
        let _ = tenure.sequence(name).next().await.unwrap();
        if name != "~a" {
            let tenure::Turn::Yours(run) = tenure.once_per(name, hour).begin().await.unwrap()
            else {
                panic!("{name} counts for another name");
            };
            run.succeeded().await.unwrap();
        }
    }
    assert_eq!(
        kept.len(),
        names.len(),
        "one of each, although each pool has one number"
    );
}
