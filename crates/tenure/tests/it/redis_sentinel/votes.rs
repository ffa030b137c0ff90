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
    assert!(error.to_string().contains("name all"), "{error}");
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

/// Somebody may come back with what one sentinel says, and must not take that for the beginning of a life.
#[tokio::test]
async fn the_life_of_a_primary_does_not_begin_until_a_majority_names_it() {
    let server = RedisServer::start();
    let mut fakes = Vec::new();
    for (id, primary) in [("one", server.port()), ("two", 1), ("three", 2)] {
        let says = Says {
            id: id.to_owned(),
            primary,
            ..Says::naming(&server)
        };
        fakes.push(FakeSentinel::start(says).await);
    }
    let url = |fakes: &[FakeSentinel]| {
        let hosts: Vec<_> = fakes.iter().map(FakeSentinel::address).collect();
        let hosts = hosts.join(",");
        format!("redis+sentinel://{hosts}/{SERVICE}?recovery=strict&max_ttl=1s")
    };
    let mut short = bid();
    short.ttl = Ttl::new(Duration::from_secs(1)).expect("long enough");
    let acquire = Action::Acquire(short);
    let record = || server.command(&["GET", "~tenure:{tenure:}:life"]);
    // Somebody else knows nothing of sentinels.
    let direct = format!("redis://{}?recovery=strict&max_ttl=1s", server.address());
    store(&direct).await;
    let unwitnessed = record();
    let peer = peer(&url(&fakes)).await;
    let refused = peer.try_ask("lock", acquire.clone()).await;
    let error = refused.expect_err("one of three names it");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("1 of the 2"), "{error}");
    assert_eq!(record(), unwitnessed, "it has not begun to wait");
    fakes[2].change(|says| says.primary = server.port());
    let recovering = answered(&peer, "a majority names it", acquire).await;
    assert!(
        matches!(recovering.outcome, Outcome::Busy(_)),
        "{recovering:?}"
    );
    let witnessed = record();
    assert_ne!(witnessed, unwitnessed, "it waits since now");
    store(&direct).await;
    assert_eq!(record(), witnessed, "it is good enough for all");
}

#[tokio::test]
async fn a_failover_that_cannot_succeed_holds_nobody_up_for_long() {
    let watched = Watched::start_hopeless();
    let peer = peer(&watched.url_with("", "?call_timeout=1s")).await;
    watched.servers[0].stop();
    let gave_up = || {
        // By a leader that finds nobody to promote, or because each of them has voted for itself.
        let given_up = |it: &Sentinel| it.log().contains("-failover-abort-");
        watched.sentinels.iter().any(given_up).then_some(())
    };
    eventually_within(WITH_TILT, "a failover was given up", gave_up);
    watched.servers[0].resume();
    let granted = answered(&peer, "the primary grants again", Action::Acquire(bid())).await;
    assert!(
        matches!(granted.outcome, Outcome::Granted(_)),
        "{granted:?}"
    );
}

/// It was promoted, forgot everything, and then nobody heard of it for long.
#[tokio::test]
async fn the_age_of_a_primary_is_no_excuse() {
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let fake = FakeSentinel::start(Says::naming(&old)).await;
    let url = format!(
        "redis+sentinel://{}/{SERVICE}?recovery=careful&max_ttl=1s",
        fake.address()
    );
    let mut short = bid();
    short.ttl = Ttl::new(Duration::from_secs(1)).expect("long enough");
    let acquire = Action::Acquire(short);
    eventually("it is older than any lease", || is_old(&new));
    fake.change(|says| says.primary = new.port());
    let peer = peer(&url).await;
    let reply = answered(&peer, "it is named", acquire).await;
    assert!(matches!(reply.outcome, Outcome::Busy(_)), "{reply:?}");
}

/// Nor for a person who says that it is new: a new server is not a new service.
#[tokio::test]
async fn a_primary_that_has_replaced_another_is_not_new() {
    let servers = [RedisServer::start(), RedisServer::start()];
    let cases = [(2, "have replaced the primary"), (0, "Opened")];
    for (server, (epoch, outcome)) in servers.iter().zip(cases) {
        eventually("it is older than any lease", || is_old(server));
        let says = Says {
            epoch: Some(epoch),
            ..Says::naming(server)
        };
        let fake = FakeSentinel::start(says).await;
        let url = format!("redis+sentinel://{}/{SERVICE}?max_ttl=1s", fake.address());
        let done = tenure::initialize(&url, tenure::Assurance::New).await;
        let done = format!("{:?}", done.expect("it serves"));
        assert!(done.contains(outcome), "epoch {epoch}: {done}");
    }
}

/// So old that a lease of a second which it may have forgotten has ended.
fn is_old(server: &RedisServer) -> Option<()> {
    let about = server.command(&["INFO", "server"]);
    let mut lines = about.lines();
    let age = lines.find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    age.filter(|age| age.trim().parse::<u32>().is_ok_and(|age| age > 3))
        .map(drop)
}
