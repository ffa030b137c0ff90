//! Elections and once-per-period runs on every store, in real time.

use std::time::Duration;

use tenure::{Ending, ErrorKind, Once, Tenure, Turn};

use crate::support::wait::{PATIENCE, elapsed, eventually_async};
use crate::uses::Place;

const HOUR: Duration = Duration::from_secs(3600);

async fn on(place: &Place) {
    let (one, two) = place.two().await;
    takes_over(&one, &two).await;
    counts_successes(&one, &two).await;
    counts_starts(&one, &two).await;
}

/// A standby leads once the leader has resigned, with a higher fence, and who watches sees it.
async fn takes_over(one: &Tenure, two: &Tenure) {
    let first = one.election("uses/e").campaign().await.unwrap();
    let standby = {
        let two = two.clone();
        tokio::spawn(async move { two.election("uses/e").label("second").campaign().await })
    };
    let mut changes = one
        .election("uses/e")
        .observe()
        .every(Duration::from_millis(20));
    assert_eq!(
        changes.next().await.unwrap().unwrap().fence(),
        Some(first.fence())
    );
    assert!(first.is_leader() && !standby.is_finished());
    let fence = first.fence();
    first.resign().await.unwrap();
    let (second, took) = elapsed(async { standby.await.unwrap().unwrap() }).await;
    assert!(took < PATIENCE, "{took:?}: not when the lease has ended");
    assert!(second.is_leader() && second.fence() > fence);
    // Between the two terms there may be a moment without a leader.
    let leader = loop {
        if let Some(leader) = changes.next().await.unwrap() {
            break leader;
        }
    };
    assert_eq!(leader.party.label(), "second");
    second.resign().await.unwrap();
}

async fn counts_successes(one: &Tenure, two: &Tenure) {
    let (here, there) = (
        one.once_per("uses/job", HOUR).sliding().who("ann"),
        two.once_per("uses/job", HOUR).sliding(),
    );
    let Once::Ran { result, recorded } = here.run(async |_| Err::<(), _>("no")).await.unwrap()
    else {
        panic!("nobody ran it before");
    };
    assert_eq!(result, Err("no"));
    recorded.unwrap();
    let Turn::Yours(run) = here.begin().await.unwrap() else {
        panic!("a failure was counted");
    };
    run.succeeded().await.unwrap();
    let Turn::Counted(before) = there.begin().await.unwrap() else {
        panic!("run twice");
    };
    assert_eq!(
        (before.by.who(), &before.ending),
        ("ann", &Ending::Succeeded)
    );
    assert!(before.counts_for() > HOUR / 2, "{before:?}");
    let (record, lease) = (there.record_name(), before.lease.unwrap());
    two.force_release(&record, lease, "again").await.unwrap();
    assert_eq!(here.counted().await.unwrap(), None);
}

async fn counts_starts(one: &Tenure, two: &Tenure) {
    let (here, there) = (
        one.once_per("uses/start", HOUR).sliding().count_starts(),
        two.once_per("uses/start", HOUR).sliding().count_starts(),
    );
    let Turn::Yours(run) = here.begin().await.unwrap() else {
        panic!("nobody ran it before");
    };
    let before = there.counted().await.unwrap().expect("it has started");
    assert_eq!(before.ending, Ending::Unknown);
    run.failed("exit code 3").await.unwrap();
    let Turn::Counted(before) = there.begin().await.unwrap() else {
        panic!("run twice");
    };
    assert_eq!(before.ending, Ending::Failed("exit code 3".to_owned()));
    assert!(before.counts_for() > HOUR / 2, "{before:?}");
    let (_, record) = two.inspect(&there.record_name()).await.unwrap();
    assert_eq!(record.holders.len(), 1, "the start gave way to the end");
}

#[tokio::test]
async fn in_memory() {
    on(&Place::memory("uses")).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn in_sqlite() {
    on(&Place::sqlite()).await;
}

#[cfg(feature = "redis")]
mod redis {
    use super::*;
    use crate::support::redis_server::RedisServer;

    #[tokio::test]
    async fn on_one_server() {
        on(&Place::redis()).await;
    }

    /// A record lasts longer than any lease that is protected, and strictness is about those.
    #[tokio::test]
    async fn on_a_server_that_is_strict() {
        on(&strict(Place::redis()).await).await;
    }

    #[tokio::test]
    async fn with_sentinels() {
        on(&Place::sentinel()).await;
    }

    #[tokio::test]
    async fn on_a_cluster() {
        on(&Place::cluster()).await;
    }

    #[tokio::test]
    async fn on_a_majority_of_servers() {
        on(&strict(Place::redlock()).await).await;
    }

    #[tokio::test]
    async fn on_all_of_two_servers() {
        on(&Place::all_of_two()).await;
    }

    /// The same place, after somebody has told it that it is new.
    async fn strict(mut place: Place) -> Place {
        let tenure = tenure::connect(&place.url).await.unwrap();
        let guard = tenure.lock("any").acquire().await.unwrap();
        guard.release().await.unwrap();
        place.url = place.url.replace("recovery=open", "recovery=strict");
        place
    }

    /// Is counted.
    async fn run_it(tenure: &Tenure) {
        let once = tenure.once_per("job", HOUR).sliding();
        let ran = once.run(async |_| Ok::<_, String>(())).await.unwrap();
        assert!(
            matches!(
                ran,
                Once::Ran {
                    recorded: Ok(()),
                    ..
                }
            ),
            "{ran:?}"
        );
    }

    /// No process is left that could take the record back: this is what is not promised.
    #[tokio::test]
    async fn a_server_that_restarts_empty_has_forgotten_what_was_counted() {
        let mut server = RedisServer::start();
        let tenure = tenure::connect(&server.url()).await.unwrap();
        run_it(&tenure).await;
        server.kill();
        server.restart();
        let fresh = tenure::connect(&server.url()).await.unwrap();
        assert_eq!(fresh.once_per("job", HOUR).counted().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_leader_leads_on_when_the_server_restarts_empty_and_nobody_else_does() {
        let mut server = RedisServer::start();
        let tenure = tenure::connect(&server.url()).await.unwrap();
        let election = tenure.election("e").ttl(Duration::from_secs(10));
        let term = election.campaign().await.unwrap();
        server.kill();
        server.restart();
        // Not one that says that the server is new.
        let careful = server.url().replace("recovery=open", "recovery=careful");
        let other = tenure::connect(&careful).await.unwrap();
        eventually_async("the server knows it again", async || {
            let leader = other.election("e").leader().await.ok().flatten()?;
            (leader.fence() == Some(term.fence())).then_some(())
        })
        .await;
        assert!(term.is_leader());
        let rival = other.election("e").wait(Duration::from_millis(100));
        assert_eq!(rival.campaign().await.unwrap_err().kind(), ErrorKind::Busy);
    }

    #[tokio::test]
    async fn a_record_outlives_a_restart_of_a_server_that_persists() {
        let mut server =
            RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
        let url = format!("{}&replicas=none", server.url());
        let tenure = tenure::connect(&url).await.unwrap();
        run_it(&tenure).await;
        server.kill();
        server.restart();
        let fresh = tenure::connect(&url).await.unwrap();
        let turn = fresh.once_per("job", HOUR).begin().await.unwrap();
        assert!(matches!(turn, Turn::Counted(_)), "{turn:?}");
    }
}
