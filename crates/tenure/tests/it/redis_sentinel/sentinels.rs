//! Sentinels that are dead, hung, wrong or protected.

use super::*;

#[tokio::test]
async fn one_dead_and_one_hung_sentinel_hold_nobody_up() {
    for hang in [false, true] {
        let mut watched = Watched::start_calm();
        if hang {
            watched.sentinels[0].stop();
        } else {
            watched.sentinels[0].kill();
        }
        let peer = peer(&watched.url()).await;
        let lease = peer.take("lock", &bid()).await;
        let renewed = peer.renew("lock", lease).await;
        assert!(matches!(renewed, Outcome::Renewed { .. }), "{renewed:?}");
        assert_eq!(peer.release("lock", lease).await, Outcome::Released);
        // Before it is killed.
        watched.sentinels[0].resume_if_stopped();
    }
}

#[tokio::test]
async fn a_sentinel_that_names_another_server_is_outvoted() {
    let stranger = RedisServer::start();
    let liar = Sentinel::start(&stranger);
    let watched = Watched::start_calm();
    let honest = &watched.sentinels;
    let url = format!(
        "redis+sentinel://{},{},{}/{SERVICE}?recovery=off",
        liar.address(),
        honest[0].address(),
        honest[1].address()
    );
    let peer = peer(&url).await;
    peer.take("lock", &bid()).await;
    assert_eq!(stranger.command(&["EXISTS", "tenure:lock"]), "0");
    assert_eq!(watched.servers[0].command(&["EXISTS", "tenure:lock"]), "1");
}

#[tokio::test]
async fn a_lonely_liar_is_not_believed() {
    let stranger = RedisServer::start();
    let liar = Sentinel::start(&stranger);
    let mut watched = Watched::start_calm();
    let hosts: Vec<_> = watched.sentinels.iter().map(Sentinel::address).collect();
    let url = format!(
        "redis+sentinel://{},{}/{SERVICE}?call_timeout=1s&recovery=off",
        liar.address(),
        hosts[..2].join(",")
    );
    watched.sentinels[0].kill();
    watched.sentinels[1].kill();
    let peer = peer(&url).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("nobody confirms the stranger");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn a_replica_that_is_named_by_mistake_is_passed_over() {
    let watched = Watched::start_calm();
    let wrong = FakeSentinel::start(Says::naming(&watched.servers[1])).await;
    let error = refusal(&format!("redis+sentinel://{}/{SERVICE}", wrong.address())).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("not a primary"), "{error}");

    let right = watched.sentinels[0].address();
    store(&format!(
        "redis+sentinel://{},{right}/{SERVICE}",
        wrong.address()
    ))
    .await;
}

#[tokio::test]
async fn when_no_sentinel_answers_that_is_said() {
    let server = RedisServer::start();
    let sentinel = FakeSentinel::start(Says::naming(&server)).await;
    let url = format!("redis+sentinel://{}/{SERVICE}", sentinel.address());
    drop(sentinel);
    let error = refusal(&url).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(
        error.to_string().contains("none of the 1 sentinels"),
        "{error}"
    );
}

/// What is wrong with what a sentinel says; the port is that of another server.
type Spoil = fn(&mut Says, u16);

/// What, why, and what to do about it.
#[tokio::test]
async fn why_a_primary_is_not_confirmed_is_said() {
    let other = RedisServer::start();
    let elsewhere = other.port();
    let cases: [(usize, Spoil, ErrorKind, &str); 5] = [
        (
            3,
            |says, _| says.forbids = Some("SENTINEL MASTER"),
            ErrorKind::Forbidden,
            "ACL SETUSER",
        ),
        (
            2,
            |says, _| says.forbids = Some("SENTINEL MASTER"),
            ErrorKind::Unavailable,
            "ACL SETUSER",
        ),
        (
            2,
            |says, _| says.unaware = true,
            ErrorKind::Unavailable,
            "SENTINEL MONITOR",
        ),
        (
            2,
            |says, port| says.primary = port,
            ErrorKind::Unavailable,
            "name another server: a failover",
        ),
        (
            2,
            |says, _| says.epoch = None,
            ErrorKind::Unavailable,
            "config-epoch",
        ),
    ];
    for (count, spoil, kind, advice) in cases {
        let server = RedisServer::start();
        let (fakes, url) = super::back::fakes(&server, [Some(1); 3]).await;
        let peer = peer(&format!("{url}?recovery=open")).await;
        peer.take("before", &bid()).await;
        for fake in &fakes[..count] {
            fake.change(|says| spoil(says, elsewhere));
        }
        let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
        let error = refused.expect_err("it is not confirmed");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(advice), "{error}");
    }
}

/// The others may be back in a moment.
#[tokio::test]
async fn one_sentinel_that_refuses_does_not_speak_for_those_that_are_away() {
    let server = RedisServer::start();
    let (mut fakes, url) = super::back::fakes(&server, [Some(1); 3]).await;
    fakes[0].change(|says| says.unaware = true);
    fakes.truncate(1);
    let error = refusal(&url).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("one of them says"), "{error}");
}

#[tokio::test]
async fn sentinels_and_servers_have_their_own_passwords() {
    let passwords = Passwords {
        sentinels: "sentinel-secret",
        servers: "server-secret",
    };
    let watched = Watched::start_protected(&passwords);
    let right = watched.url_with(":server-secret@", "?sentinel_pass=sentinel-secret");
    let peer = peer(&right).await;
    peer.take("lock", &bid()).await;

    for options in ["", "?sentinel_pass=wrong-guess"] {
        let error = refusal(&watched.url_with(":server-secret@", options)).await;
        assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
        assert!(error.to_string().contains("?sentinel_pass="), "{error}");
        assert!(!error.to_string().contains("wrong-guess"), "{error}");
    }
    let wrong = watched.url_with(":wrong-guess@", "?sentinel_pass=sentinel-secret");
    let error = refusal(&wrong).await;
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
    assert!(!error.to_string().contains("wrong-guess"), "{error}");
}

#[tokio::test]
async fn what_cannot_work_is_refused_with_advice() {
    let watched = Watched::start_calm();
    let unknown = watched.url().replace(SERVICE, "unheard-of");
    let error = refusal(&unknown).await;
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    assert!(error.to_string().contains("`unheard-of`"), "{error}");

    let peer = peer(&watched.url_with("", "?max_ttl=5s")).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("30 s are longer than 5 s");
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    assert!(error.to_string().contains("?max_ttl="), "{error}");
}
