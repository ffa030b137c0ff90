//! A network that is divided: the old primary lives on, and does not know that it was replaced.

use std::time::Duration;

use tenure::{Assurance, Attempt, ErrorKind, Guard, Tenure};

use crate::support::sentinels::{Network, Node};
use crate::support::wait::eventually_async;

/// Longer than it takes until the sentinels have promoted another, also on a busy machine.
const TTL: Duration = Duration::from_secs(12);

/// A service that is known to be new, somebody who holds "lock", and somebody else.
async fn begin() -> (Network, Tenure, Guard, Tenure) {
    let network = Network::start().await;
    let options = format!("recovery=strict&call_timeout=1s&max_ttl={}s", TTL.as_secs());
    let [one, other] = [network.url(0, &options), network.url(1, &options)];
    // Nobody is cut off yet: only then calls must not last long.
    let patient = one.replace("call_timeout=1s", "call_timeout=20s");
    let opened = tenure::initialize(&patient, Assurance::NothingIsHeld).await;
    opened.expect("a new service");
    let connected = async |url: &str| {
        let connecting = async || tenure::connect(url).await.ok();
        eventually_async("served", connecting).await
    };
    let (holder, newcomer) = (connected(&one).await, connected(&other).await);
    let guard = holder.lock("lock").ttl(TTL).acquire().await.expect("free");
    eventually_async("the replica has it", async || {
        let there = network.servers[1].command(&["EXISTS", "tenure:lock"]);
        (there == "1").then_some(())
    })
    .await;
    (network, holder, guard, newcomer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_cut_off_with_the_old_primary_has_lost_before_anybody_else_gets_in() {
    let (network, holder, guard, newcomer) = begin().await;
    let owner = guard.lease().owner.to_string();
    network.divide(&[Node::Server(0), Node::Sentinel(0), Node::Client(0)]);
    network.named(1, &[1, 2]).await;
    // The old primary lives on, and serves whoever still reaches it; so does the new one.
    assert_eq!(
        network.servers[0].command(&["SET", "naive", "a", "NX"]),
        "OK"
    );
    assert_eq!(
        network.servers[1].command(&["SET", "naive", "b", "NX"]),
        "OK"
    );
    let value = network.servers[0].command(&["GET", "tenure:lock"]);
    assert!(value.contains(&owner), "it goes on renewing: {value}");
    let refused = holder.lock("other").ttl(TTL).try_acquire().await;
    let error = refused.expect_err("one sentinel is no majority");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");

    let waiting = newcomer.lock("lock").ttl(TTL).wait(TTL * 4);
    let next = waiting.acquire().await.expect("the old hold ends");
    guard.ensure().expect_err("two hold the same lock");
    assert!(next.fence() > guard.fence());
    // Together again, all agree.
    network.heal();
    network.named(1, &[0, 1, 2]).await;
    let busy = eventually_async("the other side is served again", async || {
        holder.lock("lock").ttl(TTL).try_acquire().await.ok()
    })
    .await;
    assert!(matches!(busy, Attempt::Busy(_)), "{busy:?}");
    next.ensure().expect("nobody has taken it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_with_the_majority_notices_nothing_and_nobody_else_is_served() {
    let (network, holder, guard, newcomer) = begin().await;
    network.divide(&[Node::Server(1), Node::Sentinel(2), Node::Client(1)]);
    let before = guard.valid_until();
    eventually_async("the hold is renewed", async || {
        (guard.valid_until() > before).then_some(())
    })
    .await;
    let taken = holder.lock("other").ttl(TTL).try_acquire().await;
    let taken = taken.expect("two of three confirm");
    assert!(matches!(taken, Attempt::Acquired(_)), "{taken:?}");
    let asked = newcomer.lock("third").ttl(TTL).try_acquire().await;
    let error = asked.expect_err("one of three is no majority");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    guard.release().await.expect("it was never lost");
}
