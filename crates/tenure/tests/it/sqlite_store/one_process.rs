//! What two stores on one file do in one process.

use std::time::Duration;

use tenure::core::{
    Action, ForceRelease, Mode, Outcome, Party, Removed, Severity, Store, Timestamp, Ttl,
};
use tenure::stores::sqlite::{GUARANTEES, SqliteStore};

use super::support::{Client, Scratch, granted, owner};
use crate::support::wait::eventually_async;

#[tokio::test]
async fn two_stores_on_one_file_exclude_each_other() {
    let scratch = Scratch::new();
    let (one, two) = (
        Client::new(scratch.file()).await,
        Client::new(scratch.file()).await,
    );
    let (first, second) = (owner(), owner());
    let grant = one.take("a", first).await;
    let Outcome::Busy(contention) = two.acquire("a", second).await else {
        panic!("busy expected");
    };
    assert_eq!(contention.holders[0].owner, Some(first));
    assert_eq!(contention.holders[0].fence, Some(grant.fence));
    two.take("another name", second).await;
    assert_eq!(
        one.release("a", first, grant.fence).await,
        Outcome::Released
    );
    assert!(two.take("a", second).await.fence > grant.fence);
}

#[tokio::test]
async fn a_release_pushes_the_grant_to_the_next_waiter() {
    let scratch = Scratch::new();
    let (one, two) = (
        Client::new(scratch.file()).await,
        Client::new(scratch.file()).await,
    );
    let (first, second) = (owner(), owner());
    let grant = one.take("a", first).await;
    let queued = two.queue("a", second).await;
    assert!(
        matches!(queued, Outcome::Queued { ahead: 0, .. }),
        "{queued:?}"
    );
    one.release("a", first, grant.fence).await;
    let pushed = two.pushed(second);
    assert_eq!(pushed.name.as_str(), "a");
    assert!(pushed.fence > grant.fence);
    assert_eq!(
        pushed.expiry.since(pushed.now),
        Duration::from_secs(30),
        "half of alive_for"
    );
    let renewed = two.renew("a", second, pushed.fence).await;
    assert!(matches!(renewed, Outcome::Renewed { .. }), "{renewed:?}");
}

#[tokio::test]
async fn a_waiter_that_gives_up_leaves_no_trace() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let (first, second) = (owner(), owner());
    let grant = client.take("a", first).await;
    client.queue("a", second).await;
    assert_eq!(
        client.cancel("a", second).await,
        Outcome::Cancelled(Removed::Waiter)
    );
    client.release("a", first, grant.fence).await;
    assert_eq!(client.store.list("").await.unwrap().locks, []);
}

#[tokio::test]
async fn readers_share_and_permits_are_counted() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let with = |mode| {
        let mut acquire = client.attempt(owner());
        acquire.mode = mode;
        Action::Acquire(acquire)
    };
    granted(client.ask("doc", with(Mode::Shared)).await);
    granted(client.ask("doc", with(Mode::Shared)).await);
    assert!(matches!(
        client.ask("doc", with(Mode::Exclusive)).await,
        Outcome::Busy(_)
    ));
    let permits = |count| Mode::permits(count, 3).unwrap();
    granted(client.ask("gpu", with(permits(2))).await);
    assert!(matches!(
        client.ask("gpu", with(permits(2))).await,
        Outcome::Busy(_)
    ));
    granted(client.ask("gpu", with(permits(1))).await);
    let conflict = client.ask("gpu", with(Mode::Exclusive)).await;
    assert!(matches!(conflict, Outcome::Conflict { .. }), "{conflict:?}");
}

#[tokio::test]
async fn the_queue_is_served_in_order_of_arrival() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let owners: Vec<_> = (0..20).map(|_| owner()).collect();
    let mut fence = client.take("a", owners[0]).await.fence;
    for waiter in &owners[1..] {
        client.queue("a", *waiter).await;
    }
    for pair in owners.windows(2) {
        client.release("a", pair[0], fence).await;
        fence = client.pushed(pair[1]).fence;
    }
}

#[tokio::test]
async fn requests_of_a_batch_are_answered_in_order_each_on_its_own() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let who = owner();
    let name = |text| tenure::core::LockName::new(text).unwrap();
    let batch = [
        Action::Acquire(client.attempt(who)).on(name("a")),
        Action::Acquire(client.attempt(owner())).on(name("a")),
        Action::Acquire(client.attempt(who)).on(name("b")),
        Action::Inspect.on(name("a")),
    ];
    let replies = client.store.apply(&batch).await;
    let outcomes: Vec<_> = replies
        .into_iter()
        .map(|reply| reply.unwrap().outcome)
        .collect();
    assert!(matches!(
        outcomes[..],
        [
            Outcome::Granted(_),
            Outcome::Busy(_),
            Outcome::Granted(_),
            Outcome::State(_)
        ]
    ));
}

#[tokio::test]
async fn a_lease_ends_by_itself() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let mut short = client.attempt(owner());
    short.ttl = Ttl::MIN;
    granted(client.ask("a", Action::Acquire(short)).await);
    let next = owner();
    eventually_async("the lease has ended", async || {
        matches!(client.acquire("a", next).await, Outcome::Granted(_)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn everything_about_a_hold_survives_the_file() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let (first, second) = (owner(), owner());
    let mut acquire = client.waiting(first);
    acquire.party = Party::new("me@there", "a label", "there", 42);
    let grant = granted(client.ask("ключ", Action::Acquire(acquire)).await);
    let mut waiter = client.waiting(second);
    waiter.party = Party::new("you@there", "", "there", 43);
    client.ask("ключ", Action::Acquire(waiter)).await;
    let listing = client.store.list("кл").await.unwrap();
    let (name, snapshot) = &listing.locks[0];
    assert_eq!(name.as_str(), "ключ");
    let last = grant.fence.last_of_grant(Mode::Exclusive);
    assert_eq!(snapshot.last_fence, last);
    assert_eq!(
        snapshot.holders[0].party,
        Party::new("me@there", "a label", "there", 42)
    );
    assert_eq!(snapshot.holders[0].expiry, Some(grant.expiry));
    assert_eq!(snapshot.waiters[0].owner, second);
    assert_eq!(snapshot.waiters[0].party.pid(), 43);
    assert_eq!(client.store.list("other").await.unwrap().locks, []);
}

#[tokio::test]
async fn a_forced_release_tells_the_old_holder_by_whom_and_why() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let who = owner();
    let grant = client.take("a", who).await;
    let force = Action::ForceRelease(ForceRelease {
        owner: who,
        fence: grant.fence,
        by: Party::new("admin@here", "", "here", 1),
        reason: "stuck".to_owned(),
    });
    assert_eq!(client.ask("a", force).await, Outcome::Released);
    let Outcome::NotHeld {
        forced: Some(forced),
    } = client.renew("a", who, grant.fence).await
    else {
        panic!("the forced release is remembered");
    };
    assert_eq!(
        (forced.by.who(), forced.reason.as_str()),
        ("admin@here", "stuck")
    );
}

#[tokio::test]
async fn a_hold_ends_with_its_client_and_the_next_gets_in() {
    let scratch = Scratch::new();
    let (one, two) = (
        Client::new(scratch.file()).await,
        Client::new(scratch.file()).await,
    );
    one.take("a", owner()).await;
    let mut detached = one.attempt(owner());
    detached.anchor = None;
    granted(one.ask("detached", Action::Acquire(detached)).await);
    let next = owner();
    two.queue("a", next).await;
    drop(one);
    two.pushed(next);
    assert!(matches!(
        two.acquire("detached", owner()).await,
        Outcome::Busy(_)
    ));
}

#[tokio::test]
async fn a_waiter_whose_client_is_gone_is_passed_over() {
    let scratch = Scratch::new();
    let (one, two) = (
        Client::new(scratch.file()).await,
        Client::new(scratch.file()).await,
    );
    let first = owner();
    let fence = one.take("a", first).await.fence;
    two.queue("a", owner()).await;
    let next = owner();
    one.queue("a", next).await;
    drop(two);
    one.release("a", first, fence).await;
    one.pushed(next);
}

#[tokio::test]
async fn a_request_that_is_late_takes_nothing() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let now = client.reply("a", Action::Inspect).await.unwrap().now;
    let mut late = client.attempt(owner());
    late.not_after = Some(Timestamp::from_micros(now.as_micros() - 1));
    assert_eq!(
        client.ask("a", Action::Acquire(late)).await,
        Outcome::TooLate
    );
}

#[test]
fn opens_without_a_runtime() {
    let scratch = Scratch::new();
    let store = SqliteStore::open(scratch.file()).unwrap();
    assert_eq!(store.guarantees().store, GUARANTEES.store);
}

#[tokio::test]
async fn a_diagnosis_names_what_matters() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    client.take("a", owner()).await;
    let findings = client.store.diagnose().await.unwrap();
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity < Severity::Danger),
        "{findings:?}"
    );
    let detail = |subject: &str| {
        let finding = findings.iter().find(|finding| finding.subject == subject);
        finding
            .unwrap_or_else(|| panic!("{subject}: {findings:?}"))
            .detail
            .clone()
    };
    assert!(detail("file").contains("locks.db"));
    assert!(detail("SQLite").contains("journal mode wal"));
    assert!(detail("in use").starts_with("holds: 1, waiters: 0"));
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(detail("boot").contains(boot_id.trim()));
}
