//! A server that recovers again and again may never open, and whoever waits for it is told; one that is
//! known to be new is opened by a person.

use std::time::Duration;

use tenure::{Assurance, Attempt, Finding, Initialized, Severity};

use crate::redis_store::store;
use crate::support::redis_server::RedisServer;
use crate::support::sentinels::Watched;
use crate::support::wait::eventually_async;

/// Long enough for three restarts within three times as long, also on a busy machine.
const OPTIONS: &str = "max_ttl=20s&call_timeout=20s";
const TTL: Duration = Duration::from_secs(20);

fn url(server: &RedisServer) -> String {
    format!("redis://{}?{OPTIONS}", server.address())
}

/// Whether a newcomer, who knows nothing of before, is told that the server recovers, and how often.
async fn restless(server: &RedisServer) -> bool {
    let blocked = eventually_async("the server answers", async || {
        let tenure = tenure::connect(&url(server)).await.ok()?;
        match tenure.lock("x").ttl(TTL).try_acquire().await.ok()? {
            Attempt::Acquired(_) => panic!("it has just restarted"),
            Attempt::Busy(blocked) => Some(blocked),
        }
    })
    .await;
    assert!(blocked.recovering().is_some(), "{blocked:?}");
    blocked.contention.restless
}

async fn recovery(server: &RedisServer) -> Finding {
    let findings = tenure::Store::diagnose(&store(&url(server)).await).await;
    let findings = findings.expect("it can be looked at").into_iter();
    let mut recovery = findings.filter(|finding| finding.subject == "recovery");
    recovery.next().expect("something about recovery")
}

#[tokio::test]
async fn whoever_waits_for_a_server_that_restarts_again_and_again_is_told() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes"]);
    assert!(!restless(&server).await, "once is no sign of anything");
    assert_eq!(recovery(&server).await.severity, Severity::Warning);
    server.restart();
    assert!(!restless(&server).await, "nor is twice");
    server.restart();
    assert!(restless(&server).await, "but three times is");
    let found = recovery(&server).await;
    assert_eq!(found.severity, Severity::Danger, "{found:?}");
    assert!(found.detail.contains("3 times within"), "{found:?}");

    let tenure = tenure::connect(&url(&server)).await.expect("served");
    let waiting = tenure.lock("x").ttl(TTL).wait(Duration::from_millis(50));
    let error = waiting.acquire().await.expect_err("it recovers");
    assert!(error.to_string().contains("again and again"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stays_remembers_for_a_server_that_restarts_empty() {
    let mut server = RedisServer::start();
    let stays = tenure::connect(&url(&server)).await.expect("served");
    for _ in 0..2 {
        assert!(!restless(&server).await);
        server.restart();
        let _ = eventually_async("whoever knew it says hello first", async || {
            stays.lock("y").ttl(TTL).try_acquire().await.ok()
        })
        .await;
    }
    assert!(restless(&server).await, "newcomers are told");
}

#[tokio::test]
async fn a_primary_that_is_known_to_be_new_is_opened_for_all_and_a_promoted_one_is_not() {
    let mut watched = Watched::start();
    let url = watched.url_with("", "?recovery=strict");
    let init = async || {
        let opened = tenure::initialize(&url, Assurance::New).await.ok()?;
        opened.into_iter().next().map(|it| it.outcome)
    };
    let sure = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    assert_eq!(sure.expect("it answers")[0].outcome, Initialized::Opened);
    assert_eq!(init().await, Some(Initialized::WasOpen));
    let tenure = tenure::connect(&url).await.expect("served");
    let taken = tenure.lock("x").try_acquire().await.expect("an answer");
    assert!(matches!(taken, Attempt::Acquired(_)), "{taken:?}");

    watched.fail_over();
    let outcome = eventually_async("the new primary answers", init).await;
    let Initialized::Refused(why) = outcome else {
        panic!("it was a replica: {outcome:?}");
    };
    assert!(why.contains("was a replica"), "{why}");
    let sure = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    let sure = sure.expect("it answers");
    assert_eq!(sure[0].outcome, Initialized::Opened);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_somebody_knew_is_not_taken_for_new_though_a_newcomer_came_first() {
    let mut server = RedisServer::start();
    let open = format!("redis://{}?{OPTIONS}&recovery=open", server.address());
    let stays = tenure::connect(&open).await.expect("served");
    drop(stays.lock("y").ttl(TTL).try_acquire().await.expect("new"));
    server.kill();
    server.restart();
    restless(&server).await;
    eventually_async("whoever knew it comes, too", async || {
        stays.lock("y").ttl(TTL).try_acquire().await.ok().map(drop)
    })
    .await;
    let opened = tenure::initialize(&url(&server), Assurance::New).await;
    let outcome = &opened.expect("it answers")[0].outcome;
    assert!(matches!(outcome, Initialized::Refused(_)), "{outcome:?}");
}

#[tokio::test]
async fn who_may_not_look_is_kept_out_with_all_others() {
    let server = RedisServer::start();
    assert!(!restless(&server).await, "it recovers");
    let allowed = ["on", ">pw", "~*", "&*", "+@all", "-info"];
    let words = [&["ACL", "SETUSER", "blind"][..], &allowed].concat();
    assert_eq!(server.command(&words), "OK");
    let url = format!("redis://blind:pw@{}?{OPTIONS}", server.address());
    let blind = tenure::connect(&url).await.expect("served");
    let asked = blind.lock("x").ttl(TTL).try_acquire().await;
    let attempt = asked.expect("an answer");
    assert!(matches!(attempt, Attempt::Busy(_)), "{attempt:?}");
}

#[tokio::test]
async fn a_backlog_that_is_dropped_too_soon_is_named() {
    for (kept, named) in [("5", true), ("0", false), ("21", false)] {
        let server = RedisServer::start_with(&["--repl-backlog-ttl", kept]);
        let findings = tenure::Store::diagnose(&store(&url(&server)).await).await;
        let findings = findings.expect("it can be looked at");
        let found = findings.iter().any(|it| it.subject == "backlog");
        assert_eq!(found, named, "{kept}: {findings:?}");
    }
}

#[tokio::test]
async fn who_may_not_look_is_kept_out_also_if_it_came_before_anybody_wrote() {
    let server = RedisServer::start();
    let allowed = ["on", ">pw", "~*", "&*", "+@all", "-info"];
    let words = [&["ACL", "SETUSER", "blind"][..], &allowed].concat();
    assert_eq!(server.command(&words), "OK");
    let blind = format!("redis://blind:pw@{}?{OPTIONS}", server.address());
    let blind = tenure::connect(&blind).await.expect("served");
    drop(
        blind
            .lock("y")
            .ttl(TTL)
            .try_acquire()
            .await
            .expect("served"),
    );
    let open = format!("redis://{}?{OPTIONS}&recovery=open", server.address());
    let holder = tenure::connect(&open).await.expect("served");
    let Attempt::Acquired(guard) = holder.lock("x").ttl(TTL).try_acquire().await.expect("new")
    else {
        panic!("free");
    };
    server.command(&["FLUSHALL"]);
    restless(&server).await; // Somebody has noticed, and is kept out.
    let attempt = blind
        .lock("x")
        .ttl(TTL)
        .try_acquire()
        .await
        .expect("an answer");
    guard.ensure().expect("the first holder is valid");
    assert!(
        matches!(attempt, Attempt::Busy(_)),
        "two valid holders: {attempt:?}"
    );
}
