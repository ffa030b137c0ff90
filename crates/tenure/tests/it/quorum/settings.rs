//! What is refused or warned of before anybody is asked.

use tenure::ErrorKind;
use tenure::stores::quorum::{Rule as Electing, Settings};

use super::world::Quorum;
use crate::client_world::{acquired, secs};

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
