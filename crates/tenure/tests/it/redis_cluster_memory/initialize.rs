//! A cluster that is new, or is said to be.

use super::*;

#[tokio::test]
async fn a_new_cluster_makes_its_first_user_wait_once_for_all_slots_of_a_node() {
    let cluster = Cluster::start();
    let url = url(&cluster, "strict", SHORT) + "&call_timeout=20s";
    let tenure = tenure::connect(&url).await.expect("it serves");
    let first = cluster.name_at(0, "first");
    let acquiring = tenure.lock(&first).ttl(SHORT).acquire();
    let (guard, waited) = elapsed(acquiring).await;
    drop(guard.expect("it opens by itself"));
    assert!(waited > SHORT / 2, "{waited:?}");
    // That of the first slot, which nobody has asked for.
    let record = || cluster.nodes[0].command(&["GET", "~tenure:{265b}:life:tenure:"]);
    // It is done in the background, on this thread.
    let swept = async || record().starts_with("v1 ").then_some(());
    eventually_async("all slots wait at the same time", swept).await;
    let other = cluster.name_at(0, "other");
    let open = async || try_take(&tenure, &other).await.expect("it serves");
    drop(eventually_async("it opens, too", open).await);
}

#[tokio::test]
async fn a_cluster_that_is_said_to_be_new_is_open_at_once_and_doctor_tells() {
    let cluster = Cluster::start();
    let url = url(&cluster, "strict", TTL);
    let recovery = async || {
        let store: ClusterStore = store(&url).await.expect("it serves");
        let findings = store.diagnose().await.expect("it serves");
        let about = |subject: &str| subject.ends_with(": recovery");
        let mut about = findings.into_iter().filter(|it| about(&it.subject));
        about.next().expect("a word about each node")
    };
    let before = recovery().await;
    assert_eq!(before.severity, Severity::Warning);
    assert!(before.detail.contains("--init"), "{}", before.detail);
    let refused = tenure::initialize(&url, Assurance::New).await;
    for node in refused.expect("it serves") {
        let why = format!("{:?}", node.outcome);
        assert!(why.contains("may still come back"), "{why}");
    }
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    let opened = opened.expect("it serves");
    assert_eq!(opened.len(), 3);
    assert!(opened.iter().all(|it| it.outcome == Initialized::Opened));
    let after = recovery().await;
    assert_eq!(after.severity, Severity::Fine, "{}", after.detail);
    let tenure = tenure::connect(&url).await.expect("it serves");
    for node in 0..3 {
        let name = cluster.name_at(node, "at once");
        let taken = try_take(&tenure, &name).await.expect("it serves");
        taken.expect("nobody waits").release().await.expect("ours");
    }
    let again = tenure::initialize(&url, Assurance::New).await;
    let was_open = |it: &tenure::Initialization| it.outcome == Initialized::WasOpen;
    assert!(again.expect("it serves").iter().all(was_open));
    // And not once it has forgotten.
    cluster.nodes[2].command(&["FLUSHALL"]);
    let refused = tenure::initialize(&url, Assurance::New).await;
    let refused = refused.expect("it serves");
    let is_refused = |it: &tenure::Initialization| matches!(it.outcome, Initialized::Refused(_));
    assert_eq!(refused.iter().filter(|it| is_refused(it)).count(), 1);
    let wiped = cluster.name_at(2, "wiped");
    let taken = try_take(&tenure, &wiped).await.expect("it serves");
    assert!(taken.is_none(), "it waits");
    // Nor by whoever does not know what the others protect.
    let other = self::url(&cluster, "strict", SHORT);
    for assurance in [Assurance::New, Assurance::NothingIsHeld] {
        let error = tenure::initialize(&other, assurance).await;
        let error = error.expect_err("they disagree");
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    }
}

#[tokio::test]
async fn a_cluster_that_lacks_a_primary_without_slots_is_not_said_to_be_new() {
    let mut cluster = Cluster::start();
    let url = url(&cluster, "strict", SHORT);
    cluster.nodes[0].kill();
    cluster.give_slots_away();
    let gone = format!("the primary at {} ", cluster.nodes[0].address());
    // Not before the others agree on who has the slots, and have noticed.
    let initialize = async || {
        let refused = tenure::initialize(&url, Assurance::New).await.ok()?;
        let outcome = |it: &tenure::Initialization| format!("{:?}", it.outcome);
        let outcomes: Vec<_> = refused.iter().map(outcome).collect();
        assert!(!outcomes.iter().any(|it| it == "Opened"), "{outcomes:?}");
        outcomes.iter().any(|it| it.contains(&gone)).then_some(())
    };
    eventually_async("it is refused for this reason", initialize).await;
}

/// Nothing shows that somebody else had them: whoever gave them away has to wait, or to be sure.
#[tokio::test]
async fn slots_of_a_dead_node_are_not_said_to_be_new_while_others_are_in_use() {
    let mut cluster = Cluster::start();
    let url = url(&cluster, "strict", SHORT);
    let opened = tenure::initialize(&url, Assurance::NothingIsHeld).await;
    opened.expect("it serves");
    let old = || {
        let about = cluster.nodes[1].command(&["INFO", "server"]);
        let age = about
            .lines()
            .find_map(|it| it.strip_prefix("uptime_in_seconds:"));
        let age = age.and_then(|age| age.trim().parse::<u64>().ok());
        age.filter(|age| *age > SHORT.as_secs() + 3)
    };
    eventually("the node's age speaks for it", old);
    let dead = cluster.id(0);
    cluster.nodes[0].kill();
    cluster.give_slots_away();
    for node in &cluster.nodes[1..] {
        assert_eq!(node.command(&["CLUSTER", "FORGET", &dead]), "OK");
    }
    // Not before the others agree on who has the slots.
    let initialize = async || tenure::initialize(&url, Assurance::New).await.ok();
    let refused = eventually_async("it serves", initialize).await;
    let outcome = |it: &tenure::Initialization| format!("{:?}", it.outcome);
    let outcomes: Vec<_> = refused.iter().map(outcome).collect();
    assert!(
        outcomes.iter().any(|it| it.contains("has been in use")),
        "{outcomes:?}"
    );
    assert!(!outcomes.iter().any(|it| it == "Opened"), "{outcomes:?}");
}
