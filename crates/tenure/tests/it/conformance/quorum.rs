//! A quorum of memory stores, with a clock that the test turns by hand, and quorums of real Redis
//! servers. What applies to a store without a queue and without permits.

use std::sync::Arc;
use std::time::Duration;

use tenure::core::{BoxFuture, Error, Store};
use tenure::stores::memory::MemoryStore;
use tenure::stores::quorum::{QuorumStore, Rule, Settings};
use tenure_conformance::{Subject, cases, check_each};

use super::memory::HandClock;

#[tokio::test]
async fn a_majority_of_five_conforms() {
    let subject = || Quorum::new(5, Rule::Majority);
    check_each(subject).await.assert_all_passed();
}

#[tokio::test]
async fn two_that_must_agree_conform() {
    let subject = || Quorum::new(2, Rule::All);
    check_each(subject).await.assert_all_passed();
}

#[tokio::test]
async fn most_of_the_suite_applies() {
    let store = Quorum::new(3, Rule::Majority).open().await.unwrap();
    let guarantees = store.guarantees();
    let applying = cases().iter().filter(|case| case.applies_to(&guarantees));
    assert!(applying.count() > 40);
}

struct Quorum {
    clock: Arc<HandClock>,
    stores: Vec<Arc<MemoryStore>>,
    rule: Rule,
}

impl Quorum {
    fn new(members: usize, rule: Rule) -> Self {
        let clock = Arc::new(HandClock::new());
        let store = |_| Arc::new(MemoryStore::new(clock.clone()));
        let stores = (0..members).map(store).collect();
        Self {
            clock,
            stores,
            rule,
        }
    }
}

impl Subject for Quorum {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, Error>> {
        Box::pin(async {
            let stores = self.stores.iter().enumerate();
            let labelled = stores.map(|(index, store)| {
                let store: Arc<dyn Store> = store.clone();
                (format!("store {index}"), store)
            });
            let settings = Settings::new(self.rule);
            let quorum = QuorumStore::connect(labelled.collect(), settings, self.clock.clone());
            Ok(Arc::new(quorum.await?) as Arc<dyn Store>)
        })
    }

    fn pass_time(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.clock.turn(duration);
        Box::pin(async {})
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }

    fn time_tolerance(&self) -> Duration {
        Duration::ZERO
    }

    fn sees_listeners(&self) -> bool {
        true
    }
}

/// On real servers, each client with connections and a clock of its own.
#[cfg(feature = "redis")]
mod redis {
    use std::sync::Arc;
    use std::time::Duration;

    use tenure::clock::SystemClock;
    use tenure::core::{BoxFuture, Error, Store};
    use tenure::stores::quorum::QuorumStore;
    use tenure_conformance::{Subject, check};

    use crate::support::redis_server::RedisServer;
    use crate::support::wait::{breath, real_time};

    #[tokio::test]
    async fn a_majority_of_three_servers_conforms() {
        let servers = Servers::start("redlock", 3);
        check(&servers).await.assert_all_passed();
    }

    #[tokio::test]
    async fn two_servers_that_must_agree_conform() {
        let servers = Servers::start("redis+all", 2);
        check(&servers).await.assert_all_passed();
    }

    struct Servers {
        url: String,
        _running: Vec<RedisServer>,
    }

    impl Servers {
        fn start(scheme: &str, count: usize) -> Self {
            let running: Vec<_> = (0..count).map(|_| RedisServer::start()).collect();
            let addresses: Vec<_> = running.iter().map(RedisServer::address).collect();
            let options = "recovery=open&node_timeout=1s&call_timeout=30s";
            Self {
                url: format!("{scheme}://{}?{options}", addresses.join(",")),
                _running: running,
            }
        }
    }

    impl Subject for Servers {
        fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, Error>> {
            Box::pin(async {
                let clock = Arc::new(SystemClock::start().expect("a clock"));
                let quorum = QuorumStore::connect_redis(&self.url, clock).await?;
                Ok(Arc::new(quorum) as Arc<dyn Store>)
            })
        }

        fn pass_time(&self, duration: Duration) -> BoxFuture<'_, ()> {
            Box::pin(real_time(duration))
        }

        fn pause(&self) -> BoxFuture<'_, ()> {
            Box::pin(breath())
        }

        /// Every client has a clock of its own, set when it connects by those of the servers: how far
        /// off depends on how busy the machine is then.
        fn time_tolerance(&self) -> Duration {
            Duration::from_secs(1)
        }

        /// A lease is at least twice as long as the time-out, which is long for busy machines.
        fn pace(&self) -> u32 {
            20
        }

        fn sees_listeners(&self) -> bool {
            true
        }
    }
}
