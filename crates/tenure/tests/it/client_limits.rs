//! Arguments at and beyond their limits: an error or the right thing, never a panic.

use std::time::Duration;

use tenure::{ErrorKind, Tenure, Ttl};

#[tokio::test]
async fn bad_names_are_refused_with_a_reason() {
    let tenure = tenure::connect("memory:").await.unwrap();
    let long = "x".repeat(513);
    for name in ["", "two\nlines", " front", "back ", "\u{7}", &long] {
        for error in every_way(&tenure, name).await {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name:?}: {error}");
        }
    }
    for name in ["x", "ümläut 名前 🔒", "{tag}:x", &"x".repeat(512)] {
        let guard = tenure.lock(name).acquire().await.unwrap();
        assert_eq!(guard.name().as_str(), name);
        guard.release().await.unwrap();
    }
}

async fn every_way(tenure: &Tenure, name: &str) -> Vec<tenure::Error> {
    vec![
        tenure.lock(name).acquire().await.unwrap_err(),
        tenure.lock(name).try_acquire().await.unwrap_err(),
        tenure.owner().lock(name).acquire().await.unwrap_err(),
        tenure.rwlock(name).read().acquire().await.unwrap_err(),
        tenure.semaphore(name, 2).acquire().await.unwrap_err(),
        tenure.all([name]).acquire().await.unwrap_err(),
        tenure.inspect(name).await.unwrap_err(),
    ]
}

#[tokio::test]
async fn a_ttl_out_of_range_is_refused() {
    let tenure = tenure::connect("memory:").await.unwrap();
    let out_of_range = [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_millis(1),
        Duration::from_millis(99),
        Ttl::MAX.duration() + Duration::from_millis(1),
        Duration::from_secs(u64::MAX),
        Duration::MAX,
    ];
    for ttl in out_of_range {
        let error = tenure.lock("x").ttl(ttl).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{ttl:?}");
        assert!(error.to_string().contains("100 ms"), "{error}");
        let error = tenure.all(["x"]).ttl(ttl).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{ttl:?}");
    }
    assert!(tenure.list("").await.unwrap().locks.is_empty());
    for ttl in [Ttl::MIN, Ttl::MAX] {
        let guard = tenure
            .lock("x")
            .ttl(ttl.duration())
            .acquire()
            .await
            .unwrap();
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn waits_and_limits_without_end_do_not_overflow() {
    let tenure = tenure::connect("memory:").await.unwrap();
    for endless in [Duration::from_secs(u64::MAX), Duration::MAX] {
        let lock = tenure.lock("x").wait(endless).hold_at_most(endless);
        let first = lock.clone().acquire().await.unwrap();
        let second = tokio::spawn(lock.acquire());
        let third = tokio::spawn(tenure.owner().lock("x").wait(endless).acquire());
        tokio::task::yield_now().await;
        first.release().await.unwrap();
        second.await.unwrap().unwrap().release().await.unwrap();
        third.await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn permits_must_be_some_of_all() {
    let tenure = tenure::connect("memory:").await.unwrap();
    let wrong = [
        tenure.semaphore("s", 0),
        tenure.semaphore("s", 2).permits(0),
        tenure.semaphore("s", 2).permits(3),
        tenure.lock("s").permits(1),
    ];
    for lock in wrong {
        let error = lock.acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    let all = tenure.semaphore("s", u32::MAX).permits(u32::MAX);
    all.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_limit_of_zero_is_over_at_once() {
    let tenure = tenure::connect("memory:").await.unwrap();
    let guard = tenure
        .lock("x")
        .hold_at_most(Duration::ZERO)
        .acquire()
        .await
        .unwrap();
    assert!(!guard.is_valid());
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    tenure.settle().await;
    tenure
        .lock("x")
        .try_acquire()
        .await
        .unwrap()
        .into_guard()
        .unwrap()
        .ensure()
        .unwrap();
}
