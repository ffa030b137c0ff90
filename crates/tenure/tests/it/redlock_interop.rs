//! On the same servers and keys, tenure and the real Redlock of others exclude each other, both ways.

use std::time::Duration;

use tenure::{Attempt, Tenure};

use crate::client_world::{acquired, secs};
use crate::redlock::Servers;
use crate::support::theirs::Theirs;
use crate::support::wait::eventually_async;

#[tokio::test]
async fn redis_py() {
    exclude_each_other(3, |servers| Theirs::python_redlock(&servers.0)).await;
}

#[tokio::test]
async fn redsync() {
    exclude_each_other(3, |servers| Theirs::redsync(&servers.0)).await;
    exclude_each_other(5, |servers| Theirs::redsync(&servers.0)).await;
}

#[tokio::test]
async fn node_redlock() {
    exclude_each_other(3, |servers| Theirs::node_redlock(&servers.0)).await;
    exclude_each_other(5, |servers| Theirs::node_redlock(&servers.0)).await;
}

async fn exclude_each_other(servers: usize, start: impl Fn(&Servers) -> Theirs) {
    let servers = Servers::start(servers);
    let mut theirs = start(&servers);
    let url = format!("{}&prefix=", servers.url("redlock"));
    let tenure = tenure::connect(&url).await.unwrap();
    they_keep_us_out(&servers, &mut theirs, &tenure).await;
    we_keep_them_out(&servers, &mut theirs, &tenure).await;
    what_expires_is_free(&servers, &mut theirs, &tenure).await;
}

async fn they_keep_us_out(servers: &Servers, theirs: &mut Theirs, tenure: &Tenure) {
    assert_eq!(theirs.say("try job 60"), "acquired");
    let Attempt::Busy(blocked) = tenure.lock("job").try_acquire().await.unwrap() else {
        panic!("we got a lock that they hold");
    };
    assert!(blocked.contention.is_foreign());
    let reader = tenure.rwlock("job").read().try_acquire().await.unwrap();
    assert!(matches!(reader, Attempt::Busy(_)));
    let waiting = tokio::spawn(tenure.lock("job").acquire());
    assert_eq!(theirs.say("release job"), "released");
    let guard = waiting.await.unwrap().unwrap();
    guard.release().await.unwrap();
    nothing_is_left(servers).await;
}

async fn we_keep_them_out(servers: &Servers, theirs: &mut Theirs, tenure: &Tenure) {
    let guard = acquired(tenure.lock("job").try_acquire().await.unwrap());
    assert_eq!(theirs.say("try job 60"), "busy");
    guard.ensure().unwrap();
    guard.release().await.unwrap();
    nothing_is_left(servers).await;

    let reader = tenure.rwlock("job").read().try_acquire().await.unwrap();
    let reader = acquired(reader);
    assert_eq!(theirs.say("try job 60"), "busy");
    theirs.tell("wait job 60");
    reader.ensure().unwrap();
    reader.release().await.unwrap();
    assert_eq!(theirs.hear(), "acquired", "whoever waited");
    assert_eq!(theirs.say("release job"), "released");
    nothing_is_left(servers).await;
}

async fn what_expires_is_free(servers: &Servers, theirs: &mut Theirs, tenure: &Tenure) {
    assert_eq!(theirs.say("try job 2"), "acquired");
    let guard = tenure.lock("job").wait(secs(20)).acquire().await.unwrap();
    // Their belief has ended, and their late release does not touch our lock.
    assert_eq!(theirs.say("release job"), "lost");
    guard.ensure().unwrap();
    assert_eq!(theirs.say("try job 60"), "busy");
    guard.release().await.unwrap();
    nothing_is_left(servers).await;

    let brief = tenure.lock("job").ttl(secs(2)).no_renew();
    let guard = acquired(brief.try_acquire().await.unwrap());
    assert_eq!(theirs.say("wait job 60"), "acquired");
    assert!(!guard.is_valid(), "we were told before anybody else had it");
    drop(guard);
    tenure.settle().await;
    assert_eq!(
        theirs.say("release job"),
        "released",
        "ours touches nothing"
    );
}

async fn nothing_is_left(servers: &Servers) {
    let all = 0..servers.0.len();
    let free = async || (servers.votes(all.clone(), "job") == 0).then_some(());
    eventually_async("no vote is left", free).await;
}

/// The plain protocol of them all: SET NX PX and compare-and-delete.
#[tokio::test]
async fn a_foreign_majority_keeps_us_out_and_a_foreign_minority_does_not() {
    let servers = Servers::start(5);
    let url = format!("{}&prefix=", servers.url("redlock"));
    let tenure = tenure::connect(&url).await.unwrap();
    let set = |index: usize, key: &str| {
        let server = &servers.0[index];
        server.command(&["SET", key, "theirs", "NX", "PX", "60000"])
    };
    for index in 0..2 {
        assert_eq!(set(index, "job"), "OK");
    }
    let guard = acquired(tenure.lock("job").try_acquire().await.unwrap());
    for index in 2..5 {
        assert_eq!(set(index, "job"), "(nil)", "we hold the others");
    }
    guard.release().await.unwrap();
    assert_eq!(servers.votes(0..2, "job"), 2, "theirs are untouched");

    for index in 0..3 {
        set(index, "job");
    }
    let busy = tenure.lock("job").try_acquire().await.unwrap();
    assert!(matches!(busy, Attempt::Busy(_)));
    let back = async || (servers.votes(3..5, "job") == 0).then_some(());
    eventually_async("what we got is given back", back).await;
    let holds: Duration = blocked_for(&busy);
    assert!(holds <= secs(61), "{holds:?}");
}

fn blocked_for(attempt: &Attempt) -> Duration {
    match attempt {
        Attempt::Busy(blocked) => blocked.expires_in(&blocked.contention.holders[0]).unwrap(),
        Attempt::Acquired(_) => panic!("not busy"),
    }
}
