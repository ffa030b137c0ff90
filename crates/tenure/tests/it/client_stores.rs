//! The client on the stores with a life of their own, in real time: what must not depend on the
//! store being fast, local and synchronous.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tenure::{Attempt, Loss, Tenure};

use crate::client_cancel::leaves_nothing_behind;
use crate::client_handover::takes_turns;

#[cfg(feature = "redis")]
mod redis {
    use super::*;
    use crate::support::redis_server::RedisServer;

    #[tokio::test]
    async fn dropping_at_every_poll_leaves_nothing_behind() {
        let server = RedisServer::start();
        for options in ["", "&protocol=resp2"] {
            let (one, two) = two(&format!("{}{options}", server.url())).await;
            leaves_nothing_behind(&one, &two).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_tasks_exclude_each_other() {
        let server = RedisServer::start();
        let (one, two) = two(&server.url()).await;
        exclude_each_other(&one, &two).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_clients_take_turns() {
        let server = RedisServer::start();
        let (one, two) = two(&server.url()).await;
        takes_turns(&one, &two).await;
    }

    #[tokio::test]
    async fn a_guard_does_what_it_says() {
        let server = RedisServer::start();
        let (one, two) = two(&server.url()).await;
        the_life_of_a_guard(&one, &two).await;
    }

    #[tokio::test]
    async fn a_thousand_waiting_tasks_ask_next_to_nothing() {
        let server = RedisServer::start();
        let (one, two) = two(&server.url()).await;
        let guard = one.lock("x").acquire().await.unwrap();
        let waiting: Vec<_> = (0..1_000)
            .map(|_| tokio::spawn(two.lock("x").run(async |_| ())))
            .collect();
        crate::support::wait::eventually_async("one of them waits", async || {
            let (_, snapshot) = one.inspect("x").await.unwrap();
            (!snapshot.waiters.is_empty()).then_some(())
        })
        .await;
        let before = commands(&server);
        one.clock().sleep(Duration::from_secs(2)).await;
        let asked = commands(&server) - before;
        assert!(asked <= 10, "{asked} commands in two seconds");
        let (_, snapshot) = one.inspect("x").await.unwrap();
        assert_eq!(snapshot.waiters.len(), 1);
        guard.release().await.unwrap();
        for task in waiting {
            task.await.unwrap().unwrap();
        }
    }

    /// How many scripts and other commands the server has run, but for those that look.
    fn commands(server: &RedisServer) -> u64 {
        let info = server.command(&["INFO", "stats"]);
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.expect("a count").trim().parse().expect("a number")
    }
}

#[cfg(feature = "redis")]
mod sentinel {
    use super::*;
    use crate::support::sentinels::Watched;

    #[tokio::test]
    async fn dropping_at_every_poll_leaves_nothing_behind() {
        let watched = Watched::start_calm();
        let (one, two) = two(&watched.url_with("", "?max_ttl=2m")).await;
        leaves_nothing_behind(&one, &two).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_tasks_exclude_each_other() {
        let watched = Watched::start_calm();
        let (one, two) = two(&watched.url()).await;
        exclude_each_other(&one, &two).await;
    }

    #[tokio::test]
    async fn a_guard_does_what_it_says() {
        let watched = Watched::start_calm();
        let (one, two) = two(&watched.url_with("", "?max_ttl=2m")).await;
        the_life_of_a_guard(&one, &two).await;
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use super::*;

    fn url(folder: &tempfile::TempDir) -> String {
        format!("sqlite:{}", folder.path().join("locks.db").display())
    }

    #[tokio::test]
    async fn dropping_at_every_poll_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = two(&url(&folder)).await;
        leaves_nothing_behind(&one, &two).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_tasks_exclude_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = two(&url(&folder)).await;
        exclude_each_other(&one, &two).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_clients_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = two(&url(&folder)).await;
        takes_turns(&one, &two).await;
    }

    #[tokio::test]
    async fn a_guard_does_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = two(&url(&folder)).await;
        the_life_of_a_guard(&one, &two).await;
    }
}

async fn two(url: &str) -> (Tenure, Tenure) {
    let one = tenure::connect(url).await.unwrap();
    (one, tenure::connect(url).await.unwrap())
}

async fn exclude_each_other(one: &Tenure, two: &Tenure) {
    let inside = Arc::new(AtomicUsize::new(0));
    let last_fence = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for number in 0..20 {
        let tenure = if number % 2 == 0 { one } else { two }.clone();
        let (inside, last_fence) = (inside.clone(), last_fence.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                let guard = tenure.lock("crowd").acquire().await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                let fence = guard.fence().as_u64();
                assert!(last_fence.swap(fence, Ordering::SeqCst) < fence);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// Taking, seeing, prolonging, leaving behind, forcing: once through everything.
async fn the_life_of_a_guard(one: &Tenure, two: &Tenure) {
    let guard = one.lock("life").label("first").acquire().await.unwrap();
    let Attempt::Busy(blocked) = two.lock("life").try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    let holder = &blocked.contention.holders[0];
    assert_eq!(holder.party.label(), "first");
    assert_eq!(holder.fence, Some(guard.fence()));
    guard.extend(Duration::from_secs(60)).await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(50));

    let reading = tokio::spawn(two.rwlock("life").read().acquire());
    guard.downgrade().await.unwrap();
    let reader = reading.await.unwrap().unwrap();
    reader.release().await.unwrap();

    two.force_release("life", guard.lease(), "because")
        .await
        .unwrap();
    guard.extend(Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(guard.lost().await, Loss::Forced(forced) if forced.reason == "because"));

    let guard = two.lock("life").acquire().await.unwrap();
    let lease = guard.leave_for(Duration::from_secs(60)).await.unwrap();
    let attempt = one.lock("life").try_acquire().await.unwrap();
    assert!(matches!(attempt, Attempt::Busy(_)));
    one.release_lease("life", lease).await.unwrap();

    let all = one.all(["life", "death"]).acquire().await.unwrap();
    drop(all);
    one.settle().await;
    let waited = two.lock("life").wait(Duration::ZERO).acquire().await;
    waited.unwrap().release().await.unwrap();
    assert_eq!(one.release_all().await.unwrap(), 0);
}
