//! What is refused or warned of before anybody is asked.

use tenure::ErrorKind;
use tenure::stores::quorum::{Rule as Electing, Settings};
use tenure::test_util::Fault;

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_refused() {
    for (members, rule) in [
        (0, Electing::Majority),
        (2, Electing::Majority),
        (1, Electing::All),
    ] {
        let quorum = Quorum::with(members, Settings::new(rule));
        let error = quorum.try_store().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    }
    let quorum = Quorum::with(
        3,
        Settings {
            node_timeout: secs(1),
            ..Settings::new(Electing::Majority)
        },
    );
    let tenure = quorum.client().await;
    let error = tenure.lock("x").ttl(secs(1)).try_acquire().await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("2s"), "{error}");
    drop(acquired(
        tenure.lock("x").ttl(secs(2)).try_acquire().await.unwrap(),
    ));
}

#[tokio::test(start_paused = true)]
async fn an_even_number_is_allowed_with_a_warning() {
    let quorum = Quorum::of(4);
    let tenure = quorum.client().await;
    let findings = tenure.diagnose().await.unwrap();
    let even = findings
        .iter()
        .find(|finding| finding.subject == "even number");
    assert_eq!(even.unwrap().severity, tenure::Severity::Warning);
    drop(acquired(tenure.lock("x").try_acquire().await.unwrap()));
}

/// Whatever is accepted works: a round may take as long as a member is waited for.
#[tokio::test(start_paused = true)]
async fn a_hold_is_kept_by_members_that_take_their_time() {
    for (node_timeout, ttl) in [
        (millis(50), millis(250)),
        (millis(50), secs(30)),
        (secs(1), secs(5)),
        (secs(1), secs(30)),
    ] {
        let mut settings = Settings::new(Electing::Majority);
        settings.node_timeout = node_timeout;
        let quorum = Quorum::with(3, settings);
        let tenure = quorum.client().await;
        let guard = acquired(tenure.lock("x").ttl(ttl).try_acquire().await.unwrap());
        others_act().await;
        quorum.all([0, 1], Fault::Delay(node_timeout * 9 / 10));
        quorum.all([2], Fault::Hang);
        quorum.pass(ttl * 5).await;
        assert!(guard.is_valid(), "{node_timeout:?} {ttl:?}");
    }
    let mut settings = Settings::new(Electing::Majority);
    settings.node_timeout = millis(1_001);
    let error = Quorum::with(3, settings).try_store().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
}
