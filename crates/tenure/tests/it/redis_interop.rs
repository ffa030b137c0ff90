//! On the same Redis keys, tenure and redis-py's `Lock` exclude each other, both ways.
//!
//! The same on several servers: `redlock_interop`.

use std::time::Duration;

use tenure::{Attempt, Tenure};

use crate::support::redis_server::RedisServer;
use crate::support::theirs::Theirs;
use crate::support::wait::eventually_async;

#[tokio::test]
async fn their_lock_keeps_us_out_and_their_release_lets_our_waiter_in() {
    let (server, tenure) = ours().await;
    let mut theirs = Theirs::python_lock(&server);
    assert_eq!(theirs.say("try job 60"), "acquired");

    let Attempt::Busy(blocked) = tenure.lock("job").try_acquire().await.unwrap() else {
        panic!("we got a lock that redis-py holds");
    };
    assert!(blocked.contention.is_foreign());
    let holder = &blocked.contention.holders[0];
    assert!(blocked.expires_in(holder).unwrap() <= Duration::from_secs(60));

    let waiting = tokio::spawn(tenure.lock("job").acquire());
    waits(&tenure, "job").await;
    assert_eq!(theirs.say("release job"), "released");
    let guard = waiting.await.unwrap().unwrap();
    assert_eq!(theirs.say("try job 60"), "busy");
    guard.release().await.unwrap();
    assert_eq!(theirs.say("try job 60"), "acquired");
}

#[tokio::test]
async fn our_waiter_gets_in_when_their_lock_expires() {
    let (server, tenure) = ours().await;
    let mut theirs = Theirs::python_lock(&server);
    assert_eq!(theirs.say("try job 0.7"), "acquired");
    let guard = tenure
        .lock("job")
        .wait(Duration::from_secs(15))
        .acquire()
        .await
        .unwrap();
    // Their belief has ended, and their late release does not touch our lock.
    assert_eq!(theirs.say("release job"), "LockNotOwnedError");
    guard.ensure().unwrap();
    assert_eq!(theirs.say("try job 60"), "busy");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn our_lock_keeps_their_waiter_out_until_we_release() {
    let (server, tenure) = ours().await;
    let mut theirs = Theirs::python_lock(&server);
    let guard = tenure.lock("job").acquire().await.unwrap();
    assert_eq!(theirs.say("try job 60"), "busy");
    theirs.tell("wait job 60");
    guard.ensure().unwrap();
    guard.release().await.unwrap();
    assert_eq!(theirs.hear(), "acquired");
}

#[tokio::test]
async fn readers_and_permits_keep_them_out_too() {
    let (server, tenure) = ours().await;
    let mut theirs = Theirs::python_lock(&server);
    let reader = tenure.rwlock("doc").read().acquire().await.unwrap();
    let permit = tenure.semaphore("gpu", 4).acquire().await.unwrap();
    assert_eq!(theirs.say("try doc 60"), "busy");
    assert_eq!(theirs.say("try gpu 60"), "busy");
    reader.release().await.unwrap();
    permit.release().await.unwrap();
    assert_eq!(theirs.say("try doc 60"), "acquired");
    assert_eq!(theirs.say("try gpu 60"), "acquired");
}

#[tokio::test]
async fn a_foreign_key_without_expiry_is_held_for_ever_and_said_to_be_foreign() {
    let (server, tenure) = ours().await;
    let mut theirs = Theirs::python_lock(&server);
    assert_eq!(theirs.say("try job none"), "acquired");
    let Attempt::Busy(blocked) = tenure.lock("job").try_acquire().await.unwrap() else {
        panic!("we got a lock that redis-py holds");
    };
    assert!(blocked.contention.is_foreign());
    assert_eq!(blocked.contention.holders[0].expiry, None);
    let error = tenure
        .lock("job")
        .wait(Duration::from_secs(1))
        .acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), tenure::ErrorKind::Busy);
    assert_eq!(theirs.say("release job"), "released");
}

#[tokio::test]
async fn a_foreign_key_of_another_type_is_held_by_something_foreign() {
    let (server, tenure) = ours().await;
    server.command(&["RPUSH", "job", "not a lock"]);
    let Attempt::Busy(blocked) = tenure.lock("job").try_acquire().await.unwrap() else {
        panic!("we got a lock whose key is a list");
    };
    assert!(blocked.contention.is_foreign());
    let waiting = tokio::spawn(tenure.lock("job").acquire());
    waits(&tenure, "job").await;
    server.command(&["DEL", "job"]);
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_foreign_value_that_is_not_text_is_respected() {
    let (server, tenure) = ours().await;
    // As rslock writes it: raw bytes. (The escape is Lua's.)
    server.command(&[
        "EVAL",
        r"return redis.call('SET', 'job', '\255\0\200', 'PX', 600)",
        "0",
    ]);
    assert!(matches!(
        tenure.lock("job").try_acquire().await.unwrap(),
        Attempt::Busy(_)
    ));
    tenure
        .lock("job")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

async fn ours() -> (RedisServer, Tenure) {
    let server = RedisServer::start();
    let tenure = tenure::connect(&format!("{}&prefix=", server.url()))
        .await
        .unwrap();
    (server, tenure)
}

async fn waits(tenure: &Tenure, name: &str) {
    eventually_async("our waiter is in the queue", async || {
        let (_, snapshot) = tenure.inspect(name).await.ok()?;
        (!snapshot.waiters.is_empty()).then_some(())
    })
    .await;
}
