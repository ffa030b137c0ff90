//! The memory store, with a clock that the test turns by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure::clock::Clock;
use tenure::core::{BoxFuture, Error, Moment, Store};
use tenure::stores::memory::MemoryStore;
use tenure_conformance::{Subject, check_each};

#[tokio::test]
async fn memory_conforms() {
    check_each(Memory::new).await.assert_all_passed();
}

struct Memory {
    clock: Arc<HandClock>,
    store: Arc<MemoryStore>,
}

impl Memory {
    fn new() -> Self {
        let clock = Arc::new(HandClock::new());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self { clock, store }
    }
}

impl Subject for Memory {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, Error>> {
        let store: Arc<dyn Store> = self.store.clone();
        Box::pin(async { Ok(store) })
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

/// Stands still until it is turned.
#[derive(Debug)]
pub(super) struct HandClock(AtomicU64);

impl HandClock {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(1_000_000_000_000))
    }

    pub(super) fn turn(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).expect("cases pass seconds at most");
        self.0.fetch_add(nanos, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, _moment: Moment) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
