//! Listing shows every name that somebody holds or waits for, and no other.

use tenure_core::LockName;

use super::{Case, stories};
use crate::peer::{Peer, World, bid, permits, shared};

pub(crate) const CASES: &[Case] = stories!(listing:
    it_shows_what_is_held_sorted_by_name [Permits],
    it_shows_holders_and_waiters [Arrival, Permits],
    it_does_not_show_what_has_ended [Permits],
    it_shows_a_name_that_is_only_waited_for [Arrival],
    a_prefix_is_taken_literally,
    an_unknown_prefix_lists_nothing,
    it_finds_many_names,
);

async fn listed(peer: &Peer<'_>, prefix: &str) -> Vec<LockName> {
    let listing = peer.store.list(prefix).await.expect("a store can list");
    listing.locks.into_iter().map(|(name, _)| name).collect()
}

async fn it_shows_what_is_held_sorted_by_name(world: &World<'_>) {
    let peer = world.peer().await;
    let names = ["b", "c", "a", "a2", "Z"].map(|text| world.name(text));
    for (name, bid) in names
        .iter()
        .zip([bid(), shared(), permits(1, 2), bid(), bid()])
    {
        peer.take(name, &bid).await;
    }
    let mut sorted = names.to_vec();
    sorted.sort();
    assert_eq!(listed(&peer, world.space()).await, sorted);
    assert_eq!(listed(&peer, names[2].as_str()).await.len(), 2);
}

async fn it_shows_holders_and_waiters(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    for (text, bid) in [
        ("lock", bid()),
        ("reader", shared()),
        ("permit", permits(1, 1)),
    ] {
        let name = world.name(text);
        let held = first.take(&name, &bid).await;
        let mut waiter = second.waiting(bid.clone());
        waiter.owner = crate::peer::bid().owner;
        if text == "reader" {
            waiter.mode = tenure_core::Mode::Exclusive;
        }
        second.queues(&name, &waiter, 0).await;
        let listing = first.store.list(name.as_str()).await;
        let listing = listing.expect("a store can list");
        let (shown, snapshot) = &listing.locks[0];
        assert_eq!(*shown, name);
        assert_eq!(snapshot.kind, Some(bid.mode.kind()));
        assert_eq!(snapshot.last_fence, held.fence.last_of_grant(bid.mode));
        let holder = &snapshot.holders[0];
        assert_eq!(holder.owner, Some(held.owner));
        assert_eq!(holder.fence, Some(held.fence));
        assert_eq!(holder.party, bid.party);
        assert_eq!(snapshot.waiters[0].owner, waiter.owner);
        assert!(listing.now >= held.since);
    }
}

async fn it_does_not_show_what_has_ended(world: &World<'_>) {
    let peer = world.peer().await;
    let released = peer.take(&world.name("released"), &bid()).await;
    peer.lets_go(&released).await;
    let reader = peer.take(&world.name("reader"), &shared()).await;
    peer.lets_go(&reader).await;
    peer.take(&world.name("expired"), &world.lasting(bid(), 100))
        .await;
    peer.take(
        &world.name("expired permit"),
        &world.lasting(permits(1, 2), 100),
    )
    .await;
    world.pass(130).await;
    let none: [LockName; 0] = [];
    assert_eq!(listed(&peer, world.space()).await, none);
}

async fn it_shows_a_name_that_is_only_waited_for(world: &World<'_>) {
    if !world.subject.sees_listeners() {
        return;
    }
    let (peer, deaf) = (world.peer().await, world.deaf_peer().await);
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    deaf.queues(&name, &deaf.waiting(bid()), 0).await;
    peer.lets_go(&held).await;
    assert_eq!(listed(&peer, world.space()).await, [name]);
}

async fn a_prefix_is_taken_literally(world: &World<'_>) {
    let peer = world.peer().await;
    for odd in ["*", "?", "[a-z]", "%", "_", "\\", "{x}", "'", "$", "^"] {
        let name = world.name(&format!("{odd}/end"));
        peer.take(&name, &bid()).await;
        peer.take(&world.name("a/end"), &shared()).await;
        let prefix = world.name(odd);
        assert_eq!(listed(&peer, prefix.as_str()).await, [name]);
    }
}

async fn an_unknown_prefix_lists_nothing(world: &World<'_>) {
    let peer = world.peer().await;
    peer.take(&world.name("a"), &bid()).await;
    let none: [LockName; 0] = [];
    assert_eq!(listed(&peer, world.name("b").as_str()).await, none);
}

async fn it_finds_many_names(world: &World<'_>) {
    let peer = world.peer().await;
    let names: Vec<_> = (100..400)
        .map(|number| world.name(&number.to_string()))
        .collect();
    let batch: Vec<_> = names
        .iter()
        .map(|name| tenure_core::Action::Acquire(bid()).on(name.clone()))
        .collect();
    peer.apply(&batch).await;
    assert_eq!(listed(&peer, world.space()).await, names);
}
