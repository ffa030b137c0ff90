//! One caller rebuilds what a cache has lost; the others read what it wrote.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{Cached, Coalesce, Error, ErrorKind, Fence, Served, Source, Tenure};

use super::Place;

/// A cache for tests, and a loader that counts.
#[derive(Default)]
struct Pages {
    cached: Mutex<Option<(Cached<String>, Fence)>>,
    loads: AtomicUsize,
    /// So many loads fail first.
    failures: AtomicUsize,
    loading: Duration,
}

impl Pages {
    fn slow(loading: Duration) -> Arc<Self> {
        Arc::new(Self {
            loading,
            ..Self::default()
        })
    }

    fn age(&self, age: Duration) {
        self.cached.lock().unwrap().as_mut().unwrap().0.age = age;
    }

    fn forget(&self) {
        *self.cached.lock().unwrap() = None;
    }

    fn loads(&self) -> usize {
        self.loads.swap(0, Ordering::SeqCst)
    }

    async fn get(&self, tenure: &Tenure, page: &Coalesce) -> Result<Served<String, Error>, Error> {
        let read = || async {
            let cached = self.cached.lock().unwrap();
            Ok(cached.as_ref().map(|(cached, _)| cached.clone()))
        };
        let load = || async {
            let number = self.loads.fetch_add(1, Ordering::SeqCst);
            tenure.clock().sleep(self.loading).await;
            let left = |left: usize| left.checked_sub(1);
            let ordering = Ordering::SeqCst;
            if self.failures.fetch_update(ordering, ordering, left).is_ok() {
                return Err(Error::new(ErrorKind::Refused, "the source is down"));
            }
            Ok(format!("load {number}"))
        };
        let write = |value: String, fence: Fence| async move {
            let mut cached = self.cached.lock().unwrap();
            assert!(cached.as_ref().is_none_or(|(_, older)| *older < fence));
            *cached = Some((Cached::fresh(value), fence));
            Ok(())
        };
        page.get(read, load, write).await
    }
}

fn many(
    count: usize,
    pages: &Arc<Pages>,
    clients: &[&Tenure],
    page: impl Fn(&Tenure) -> Coalesce,
) -> Vec<tokio::task::JoinHandle<Result<Served<String, Error>, Error>>> {
    let task = |turn: usize| {
        let tenure = clients[turn % clients.len()].clone();
        let (pages, page) = (pages.clone(), page(&tenure));
        tokio::spawn(async move { pages.get(&tenure, &page).await })
    };
    (0..count).map(task).collect()
}

/// A crowd on two clients: at first one loads; then two loads fail; then the one who loads has died.
pub(super) async fn one_of_many_loads(place: &Place) {
    let (one, two) = place.two().await;
    let page = |tenure: &Tenure| tenure.coalesce("page/1").wait(Duration::from_secs(20));
    let pages = Pages::slow(Duration::from_millis(30));
    let (mut loaded, mut failed) = (0, 0);
    for task in many(40, &pages, &[&one, &two], page) {
        let served = task.await.unwrap().unwrap();
        assert_eq!(served.value, "load 0");
        loaded += usize::from(served.source == Source::Loaded);
    }
    assert_eq!((loaded, pages.loads()), (1, 1));

    pages.forget();
    pages.failures.store(2, Ordering::SeqCst);
    for task in many(40, &pages, &[&one, &two], page) {
        match task.await.unwrap() {
            Ok(served) => assert_eq!(served.value, "load 2"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Refused);
                failed += 1;
            }
        }
    }
    assert_eq!((failed, pages.loads()), (2, 3), "one at a time took over");

    pages.forget();
    let dead = one
        .lock("~coalesce:page/1")
        .reserved()
        .ttl(Duration::from_secs(2));
    let _ = dead.no_renew().acquire().await.unwrap().into_lease();
    for task in many(10, &pages, &[&one, &two], page) {
        task.await.unwrap().unwrap();
    }
    assert_eq!(pages.loads(), 1, "when the lease has ended, one takes over");
}

#[tokio::test]
async fn a_bad_key_is_refused() {
    let tenure = tenure::connect("memory:").await.unwrap();
    let page = tenure.coalesce("");
    let refused = Pages::default().get(&tenure, &page).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[cfg(feature = "test-util")]
mod in_virtual_time {
    use tenure::test_util::{Fault, Rule};

    use super::*;
    use crate::client_world::{World, millis, others_act, secs};

    fn page(tenure: &Tenure) -> Coalesce {
        let page = tenure.coalesce("page/1");
        page.fresh_for(secs(100)).stale_for(secs(50))
    }

    async fn warm(world: &World, loading: Duration) -> Arc<Pages> {
        let pages = Pages::slow(loading);
        let served = pages.get(&world.tenure, &page(&world.tenure)).await;
        assert_eq!(served.unwrap().source, Source::Loaded);
        world.tenure.settle().await;
        assert_eq!(pages.loads(), 1);
        pages
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_fresh_asks_no_lock() {
        let world = World::new().await;
        let pages = warm(&world, millis(10)).await;
        let before = world.store.calls().len();
        pages.age(secs(89));
        for _ in 0..20 {
            let served = pages.get(&world.tenure, &page(&world.tenure)).await;
            assert_eq!(served.unwrap().source, Source::Cache);
        }
        assert_eq!(world.store.calls().len(), before);
    }

    #[tokio::test(start_paused = true)]
    async fn the_old_value_is_served_while_one_loads() {
        let world = World::new().await;
        let pages = warm(&world, secs(5)).await;
        pages.age(secs(120));
        let other = world.other_client().await;
        let slow = many(1, &pages, &[&other], page);
        others_act().await;
        let began = world.now();
        for _ in 0..5 {
            let served = pages.get(&world.tenure, &page(&world.tenure)).await;
            let served = served.unwrap();
            assert_eq!(served.source, Source::Stale { age: secs(120) });
            assert!(served.failed.is_none());
        }
        assert!(world.now().since(began) < millis(100), "nobody waits");
        for task in slow {
            assert_eq!(task.await.unwrap().unwrap().source, Source::Loaded);
        }
        assert_eq!(pages.loads(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refresh_that_fails_serves_the_old_value_and_says_so() {
        let world = World::new().await;
        let pages = warm(&world, millis(10)).await;
        pages.age(secs(120));
        pages.failures.store(1, Ordering::SeqCst);
        let served = pages
            .get(&world.tenure, &page(&world.tenure))
            .await
            .unwrap();
        assert_eq!(served.source, Source::Stale { age: secs(120) });
        assert_eq!(served.failed.unwrap().kind(), ErrorKind::Refused);
        world.tenure.settle().await;
        world.script(Rule::on_everything().does(Fault::Fail));
        let served = pages
            .get(&world.tenure, &page(&world.tenure))
            .await
            .unwrap();
        assert_eq!(served.failed.unwrap().kind(), ErrorKind::Unavailable);
        pages.age(secs(150));
        let error = pages.get(&world.tenure, &page(&world.tenure)).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable, "too old");
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_loaded_anew_before_it_is_missed_and_not_by_all_at_once() {
        let world = World::new().await;
        let pages = warm(&world, millis(10)).await;
        let mut early = 0;
        for _ in 0..100 {
            pages.age(secs(95));
            let served = pages
                .get(&world.tenure, &page(&world.tenure))
                .await
                .unwrap();
            early += usize::from(served.source == Source::Loaded);
            world.tenure.settle().await;
        }
        assert!((10..90).contains(&early), "{early} of 100 half way through");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_runs_out_is_busy_and_nothing_is_loaded() {
        let world = World::new().await;
        let held = world.tenure.lock("~coalesce:page/1").reserved();
        let _held = held.acquire().await;
        let pages = Pages::slow(millis(10));
        let began = world.now();
        let page = page(&world.tenure).wait(secs(3));
        let error = pages.get(&world.tenure, &page).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        let waited = world.now().since(began);
        assert!(waited >= secs(3) && waited < millis(3_010), "{waited:?}");
        assert_eq!(pages.loads(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_loses_the_lease_while_loading_reads_what_its_successor_wrote() {
        let world = World::new().await;
        let pages = Pages::slow(secs(60));
        let page = |tenure: &Tenure| tenure.coalesce("page/1").wait(secs(200));
        let first = many(1, &pages, &[&world.tenure], page);
        others_act().await;
        world
            .store
            .forget(&"~coalesce:page/1".parse().unwrap())
            .await
            .unwrap();
        let other = world.other_client().await;
        let second = many(1, &pages, &[&other], page);
        let first = first.into_iter().next().unwrap().await.unwrap().unwrap();
        let second = second.into_iter().next().unwrap().await.unwrap().unwrap();
        assert_eq!(second.source, Source::Loaded);
        assert_eq!((first.source, first.value), (Source::Cache, second.value));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loader_that_is_dropped_leaves_the_lock_to_the_next() {
        let world = World::new().await;
        let pages = Pages::slow(secs(5));
        let first = many(1, &pages, &[&world.tenure], page).pop().unwrap();
        others_act().await;
        let other = world.other_client().await;
        let next = many(3, &pages, &[&other], page);
        others_act().await;
        first.abort();
        let began = world.now();
        for task in next {
            task.await.unwrap().unwrap();
        }
        assert!(
            world.now().since(began) < secs(6),
            "not only when the lease ends"
        );
        assert_eq!(pages.loads(), 2);
        world.tenure.settle().await;
        other.settle().await;
        assert!(world.is_idle("~coalesce:page/1").await);
    }
}

#[cfg(feature = "redis")]
mod on_redis {
    use tenure::stores::redis::RedisCache;

    use super::*;
    use crate::support::redis_server::RedisServer;
    use crate::support::wait::{eventually_async, real_time};

    fn second(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[tokio::test]
    async fn a_cache_tells_ages_forgets_and_refuses_who_comes_too_late() {
        let mut server = RedisServer::start();
        let tenure = tenure::connect("memory:").await.unwrap();
        let cache = RedisCache::new(&server.url(), tenure.clock().clone()).unwrap();
        assert_eq!(cache.read("page").await.unwrap(), None);
        let (older, newer) = (
            Fence::from_u64(1_700_000_000_000_001),
            Fence::from_u64(1_700_000_000_000_002),
        );
        cache
            .write("page", b"new\0", second(60), newer)
            .await
            .unwrap();
        real_time(Duration::from_millis(50)).await;
        let found = cache.read("page").await.unwrap().unwrap();
        assert_eq!(found.value, b"new\0");
        assert!(
            found.age >= Duration::from_millis(40) && found.age < second(30),
            "{found:?}"
        );
        let late = cache.write("page", b"old", second(60), older).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(cache.read("page").await.unwrap().unwrap().value, b"new\0");
        cache
            .write("brief", b"x", Duration::from_millis(20), newer)
            .await
            .unwrap();
        real_time(Duration::from_millis(60)).await;
        assert_eq!(cache.read("brief").await.unwrap(), None);
        // It comes back by itself.
        server.restart();
        let reads = async || cache.read("page").await.ok();
        let found = eventually_async("it answers again", reads).await;
        assert_eq!(found, None, "it is a cache");
    }

    #[tokio::test]
    async fn a_server_that_forgets_while_one_loads_lets_nobody_load_beside_it() {
        let mut server = RedisServer::start();
        let url = format!("redis://{}?max_ttl=3s&recovery=open", server.address());
        let one = tenure::connect(&url).await.unwrap();
        let two = tenure::connect(&url).await.unwrap();
        let pages = Pages::slow(second(2));
        let page = |tenure: &Tenure| tenure.coalesce("page").ttl(second(3)).wait(second(20));
        let loading = many(1, &pages, &[&one], page);
        eventually_async("one loads", async || {
            (pages.loads.load(Ordering::SeqCst) == 1).then_some(())
        })
        .await;
        server.kill();
        server.restart();
        for task in many(10, &pages, &[&two], page).into_iter().chain(loading) {
            task.await.unwrap().unwrap();
        }
        assert_eq!(pages.loads(), 1);
    }

    #[tokio::test]
    async fn many_get_through_it_what_one_loads() {
        let server = RedisServer::start();
        let tenure = tenure::connect(&server.url()).await.unwrap();
        let cache = RedisCache::new(&server.url(), tenure.clock().clone()).unwrap();
        let loads = Arc::new(AtomicUsize::new(0));
        let tasks = (0..30).map(|_| {
            let (tenure, cache, loads) = (tenure.clone(), cache.clone(), loads.clone());
            tokio::spawn(async move {
                let page = tenure.coalesce("page").fresh_for(second(60));
                let load = || async {
                    loads.fetch_add(1, Ordering::SeqCst);
                    real_time(Duration::from_millis(50)).await;
                    Ok::<_, Error>(b"page".to_vec())
                };
                page.through(&cache, load).await.unwrap().value
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            assert_eq!(task.await.unwrap(), b"page");
        }
        assert_eq!(loads.load(Ordering::SeqCst), 1);
        let page = tenure.coalesce("page");
        let endless = page.through(&cache, || async { Ok::<_, Error>(vec![]) });
        assert_eq!(endless.await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
