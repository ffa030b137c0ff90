//! A quorum of memory stores, with a clock that the test turns by hand. What applies to a store without
//! a queue and without permits.

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
