//! Who confirms a primary, and who counts.

use super::*;

#[tokio::test]
async fn without_a_majority_nothing_is_granted_and_holds_end() {
    let mut watched = Watched::start_calm();
    let url = watched.url_with("", "?max_ttl=2s&call_timeout=1s");
    let peer = peer(&url).await;
    let ttl = Duration::from_secs(2);
    let mut short = bid();
    short.ttl = Ttl::new(ttl).expect("long enough");
    let lease = peer.take("lock", &short).await;
    watched.sentinels[0].kill();
    watched.sentinels[1].kill();

    let mut next = bid();
    next.ttl = short.ttl;
    let refused = peer.try_ask("other", Action::Acquire(next)).await;
    let error = refused.expect_err("one of three is no majority");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("1 of the 2"), "{error}");
    // The primary itself goes on renewing: what counts ends all the same.
    let mut last = ttl;
    let ended = async || match peer.try_ask("lock", lasting(lease, ttl)).await {
        Ok(Reply { now, outcome }) => {
            let Outcome::Renewed { expiry } = outcome else {
                panic!("the primary knows the hold: {outcome:?}");
            };
            let left = expiry.since(now);
            assert!(
                left <= last + Duration::from_millis(50),
                "{left:?} {last:?}"
            );
            last = left;
            None
        }
        Err(error) => Some(error),
    };
    let error = eventually_async("the hold cannot be relied upon any more", ended).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(last < ttl, "{last:?}");
}

#[tokio::test]
async fn a_vote_for_a_failover_counts_until_that_is_surely_over() {
    let server = RedisServer::start();
    let mut fakes = Vec::new();
    for id in ["one", "two", "three"] {
        let says = Says {
            id: id.to_owned(),
            vote_epoch: 7,
            config_epoch: 6,
            failover_timeout: Duration::from_millis(300),
            ..Says::naming(&server)
        };
        fakes.push(FakeSentinel::start(says).await);
    }
    let hosts: Vec<_> = fakes.iter().map(FakeSentinel::address).collect();
    let peer = peer(&format!(
        "redis+sentinel://{}/{SERVICE}?recovery=off",
        hosts.join(",")
    ))
    .await;
    let bid = Action::Acquire(bid());
    let error = peer.try_ask("lock", bid.clone()).await.expect_err("voted");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(
        error.to_string().contains("voted for a failover"),
        "{error}"
    );
    let granted = answered(&peer, "the failover was given up", bid).await;
    assert!(
        matches!(granted.outcome, Outcome::Granted(_)),
        "{granted:?}"
    );
}

#[tokio::test]
async fn a_sentinel_with_two_addresses_has_one_vote() {
    let server = RedisServer::start();
    let says = Says::naming(&server);
    let one = FakeSentinel::start(says.clone()).await;
    let same = FakeSentinel::start(says).await;
    let (one, same) = (one.address(), same.address());
    let peer = peer(&format!(
        "redis+sentinel://{one},{same}/{SERVICE}?recovery=off"
    ))
    .await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("one is not two");
    assert!(error.to_string().contains("1 of the 2"), "{error}");
}

#[tokio::test]
async fn a_url_that_names_few_of_the_sentinels_has_no_majority() {
    let watched = Watched::start_calm();
    let one = watched.sentinels[0].address();
    let peer = peer(&format!("redis+sentinel://{one}/{SERVICE}?recovery=off")).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("one of three");
    assert!(error.to_string().contains("1 of the 2"), "{error}");
    let findings = peer.store.diagnose().await.expect("it can be looked at");
    let said = |severity| {
        let of_sentinels = |finding: &&Finding| finding.subject == "sentinels";
        let mut found = findings.iter().filter(of_sentinels);
        found.any(|finding| finding.severity == severity)
    };
    assert!(
        said(Severity::Danger) && said(Severity::Warning),
        "{findings:?}"
    );
}

/// Three sentinels of which all have voted for `leader`, in a failover that would be waited for for long.
async fn voters(server: &RedisServer, leader: &str) -> Vec<FakeSentinel> {
    let mut fakes = Vec::new();
    for id in ["one", "two", "three"] {
        let says = Says {
            id: id.to_owned(),
            vote_epoch: 7,
            config_epoch: 6,
            leader: leader.to_owned(),
            fails_over: id == leader,
            ..Says::naming(server)
        };
        fakes.push(FakeSentinel::start(says).await);
    }
    fakes
}

fn url_of(fakes: &[FakeSentinel]) -> String {
    let hosts: Vec<_> = fakes.iter().map(FakeSentinel::address).collect();
    format!(
        "redis+sentinel://{}/{SERVICE}?recovery=off",
        hosts.join(",")
    )
}

#[tokio::test]
async fn a_vote_counts_until_whom_it_was_for_has_given_up() {
    let server = RedisServer::start();
    let fakes = voters(&server, "two").await;
    let peer = peer(&url_of(&fakes)).await;
    let bid = Action::Acquire(bid());
    let error = peer.try_ask("lock", bid.clone()).await.expect_err("voted");
    assert!(
        error.to_string().contains("voted for a failover"),
        "{error}"
    );
    fakes[1].change(|says| says.fails_over = false);
    let granted = peer.try_ask("lock", bid).await.expect("it is over");
    assert!(
        matches!(granted.outcome, Outcome::Granted(_)),
        "{granted:?}"
    );
}

#[tokio::test]
async fn whoever_is_not_there_to_say_so_has_not_given_up() {
    let server = RedisServer::start();
    let peer = peer(&url_of(&voters(&server, "four").await)).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("four may be at it");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn a_failover_that_cannot_succeed_holds_nobody_up_for_long() {
    let watched = Watched::start_hopeless();
    let peer = peer(&watched.url_with("", "?call_timeout=1s")).await;
    watched.servers[0].stop();
    let gave_up = || {
        let given_up = |it: &Sentinel| it.log().contains("-failover-abort-no-good-slave");
        watched.sentinels.iter().any(given_up).then_some(())
    };
    eventually("a failover was given up", gave_up);
    watched.servers[0].resume();
    let granted = answered(&peer, "the primary grants again", Action::Acquire(bid())).await;
    assert!(
        matches!(granted.outcome, Outcome::Granted(_)),
        "{granted:?}"
    );
}
