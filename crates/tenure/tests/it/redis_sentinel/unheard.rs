//! A failover of which those never hear who made it possible: the sentinels that voted are cut off from the one
//! that was elected, together with the primary that it has replaced.

use std::time::Duration;

use tenure::{Attempt, ErrorKind, Tenure};

use crate::redis_store::store;
use crate::support::sentinels::{Network, Node, SERVICE, WITH_TILT};
use crate::support::wait::{elapsed, eventually_async, eventually_within};

/// Longer than it takes the sentinels to agree once they meet again, also on a busy machine.
const TTL: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_primary_that_most_have_not_heard_of_does_not_begin_to_wait() {
    let network = Network::start().await;
    // Longer than those who are cut off are asked in vain, and shorter than the client waits (a third of the ttl).
    let options = format!(
        "recovery=strict&call_timeout=1500ms&max_ttl={}s",
        TTL.as_secs()
    );
    let [one, other] = [network.url(0, &options), network.url(1, &options)];
    store(&network.url(0, &options.replace("strict", "open"))).await;
    let old = tenure::connect(&one).await.expect("served");
    let new = tenure::connect(&other).await.expect("served");

    // The primary hangs until somebody is elected; then the network is divided, and it goes on.
    network.servers[0].stop();
    let leader = tokio::task::block_in_place(|| elected(&network));
    let side = u8::try_from(leader).expect("of three");
    network.divide(&[Node::Server(1), Node::Sentinel(side), Node::Client(1)]);
    network.servers[0].resume();
    network.named(1, &[leader]).await;
    let voters: Vec<usize> = (0..3).filter(|it| *it != leader).collect();
    network.named(0, &voters).await;

    // Somebody looks at the new primary by its own address, as one does when a network is in pieces.
    let direct = options.replace("call_timeout=1500ms&", "");
    store(&format!(
        "redis://{}?{direct}",
        network.servers[1].address()
    ))
    .await;
    // Whoever is with the new primary gets there, and asks for as long as it would have had to wait.
    eventually_async("the new primary is asked", async || {
        let refused = new.lock("lock").ttl(TTL).try_acquire().await.err()?;
        refused.to_string().contains("1 of the 2").then_some(())
    })
    .await;
    let mut waited = Duration::ZERO;
    while waited < TTL + Duration::from_secs(1) {
        let (refused, took) = elapsed(ask(&new)).await;
        assert_eq!(refused, Some(ErrorKind::Unavailable));
        waited += took;
    }
    let guard = eventually_async("the old primary grants", async || {
        match old.lock("lock").ttl(TTL).try_acquire().await {
            Ok(Attempt::Acquired(guard)) => Some(guard),
            _ => None,
        }
    })
    .await;
    network.heal();
    let owner = guard.lease().owner.to_string();
    eventually_async("the holder has taken it to the new primary", async || {
        assert_ne!(ask(&new).await, None, "two holders");
        guard.ensure().expect("it is renewed");
        let value = network.servers[1].command(&["GET", "tenure:lock"]);
        value.contains(&owner).then_some(())
    })
    .await;
}

/// Why it did not get the lock; `None` if it did.
async fn ask(tenure: &Tenure) -> Option<ErrorKind> {
    match tenure.lock("lock").ttl(TTL).try_acquire().await {
        Ok(Attempt::Acquired(_)) => None,
        Ok(Attempt::Busy(_)) => Some(ErrorKind::Refused),
        Err(error) => Some(error.kind()),
    }
}

/// Waits until a majority of the sentinels has voted, for whom, and until that one knows. It tells nobody before it has
/// promoted the replica.
fn elected(network: &Network) -> usize {
    let ask = |number: usize, words: &[&str]| network.sentinels[number].command(words);
    let id = |number| ask(number, &["SENTINEL", "MYID"]).trim().to_owned();
    let address = ask(0, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]);
    let address: Vec<_> = address.lines().collect();
    let about = ["SENTINEL", "IS-MASTER-DOWN-BY-ADDR", address[0], address[1]];
    // Epoch 0: it tells the last vote and casts none.
    let about = [&about[..], &["0", "test"]].concat();
    let ids: Vec<String> = (0..3).map(id).collect();
    let leader = eventually_within(WITH_TILT, "somebody is elected", || {
        let vote = |number| ask(number, &about).lines().nth(1).map(str::to_owned);
        let votes: Vec<_> = (0..3).filter_map(vote).collect();
        let won = |id: &String| votes.iter().filter(|it| *it == id).count() >= 2;
        ids.iter().position(won)
    });
    eventually_within(WITH_TILT, "the elected has heard of a vote", || {
        let others = ask(leader, &["SENTINEL", "SENTINELS", SERVICE]);
        let lines: Vec<_> = others.lines().map(str::trim).collect();
        let heard = ["voted-leader", &*ids[leader]];
        lines.windows(2).any(|pair| pair == heard).then_some(())
    });
    leader
}
