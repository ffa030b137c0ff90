//! What a primary granted while nobody confirmed it, and still has when it comes back: others have had the lock since.

use super::back::fakes;
use super::*;

#[tokio::test]
async fn a_waiter_gets_no_fence_from_before_others_held_the_lock_elsewhere() {
    let [first, second] = [RedisServer::start(), RedisServer::start()];
    let (fakes, url) = fakes(&first, [Some(1); 3]).await;
    let url = format!("{url}?recovery=open&max_ttl=1s");
    let waiter = peer(&url).await;
    let direct = peer(&format!("{}&max_ttl=1s", first.url())).await;
    let held = direct.take("lock", &bid()).await;
    let short = || peer::lasting(bid(), 1_000);
    let mine = waiter.waiting(&short());
    waiter.queue("lock", &mine).await;

    // Another takes its place. It does not know that, and hands the lock to the waiter: for half a minute.
    for fake in &fakes {
        fake.change(|says| (says.primary, says.epoch) = (second.port(), Some(2)));
    }
    assert_eq!(direct.release("lock", held).await, Outcome::Released);
    let stored = first.command(&["GET", "tenure:lock"]);
    assert!(stored.contains(&mine.owner.to_string()), "{stored}");

    let theirs = gets_it(&peer(&url).await, short()).await;
    fakes.iter().for_each(|fake| fake.switch(&first));
    let granted = gets_it(&waiter, mine).await;
    assert!(granted > theirs, "{granted} after {theirs}");
}

/// Asks until it is granted, and answers the fence.
async fn gets_it(peer: &Peer<RedisStore>, bid: Acquire) -> Fence {
    eventually_async("it is granted", async || {
        let reply = peer.try_ask("lock", Action::Acquire(bid.clone())).await;
        match reply.ok()?.outcome {
            Outcome::Granted(grant) => Some(grant.fence),
            _ => None,
        }
    })
    .await
}
