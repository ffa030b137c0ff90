//! Several processes at once, and crowds: more than a store may want to look at in one step.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_core::{Acquire, Action, BoxFuture, LockName, Outcome, OwnerId};

use super::{Case, stories};
use crate::peer::{Held, Peer, World, bid, permits, shared};
use crate::run::all;

pub(crate) const CASES: &[Case] = stories!(pressure:
    under_pressure_only_one_is_inside_and_fences_grow [Arrival],
    a_crowd_of_readers_gets_in_together [Arrival],
    a_crowd_gets_permits_in_order_while_they_last [Arrival, Permits],
    a_crowd_that_cannot_be_reached_holds_nobody_up [Arrival],
    whoever_asks_gets_past_a_crowd_that_cannot_be_reached [Arrival],
    a_crowd_that_fell_silent_holds_nobody_up [Arrival],
);

/// More than one step of any store looks at.
const CROWD: u32 = 120;

/// So many queue up behind whoever holds `name`.
async fn crowd(peer: &Peer<'_>, name: &LockName, bid: impl Fn() -> Acquire) -> Vec<OwnerId> {
    let bids: Vec<_> = (0..CROWD).map(|_| bid()).collect();
    let batch: Vec<_> = bids
        .iter()
        .map(|bid| Action::Acquire(bid.clone()).on(name.clone()))
        .collect();
    for reply in peer.apply(&batch).await {
        let queued = matches!(reply.outcome, Outcome::Queued { .. });
        assert!(queued, "expected a place in the queue, got {reply:?}");
    }
    bids.iter().map(|bid| bid.owner).collect()
}

async fn a_crowd_of_readers_gets_in_together(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let writer = peer.take(&name, &bid()).await;
    let readers = crowd(&peer, &name, || peer.waiting(shared())).await;
    peer.lets_go(&writer).await;
    assert_eq!(peer.holders(&name).await, readers);
    let mut last = writer.fence;
    for reader in readers {
        let held = peer.is_told(&name, reader).await;
        assert!(held.fence > last);
        last = held.fence;
    }
}

async fn a_crowd_gets_permits_in_order_while_they_last(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let all = peer.take(&name, &permits(100, 100)).await;
    let waiters = crowd(&peer, &name, || peer.waiting(permits(1, 100))).await;
    peer.lets_go(&all).await;
    assert_eq!(peer.holders(&name).await, waiters[..100]);
    assert_eq!(peer.waiters(&name).await, waiters[100..]);
    peer.is_told(&name, waiters[99]).await;
}

async fn a_crowd_that_cannot_be_reached_holds_nobody_up(world: &World<'_>) {
    if !world.subject.sees_listeners() {
        return;
    }
    let (peer, deaf) = (world.peer().await, world.deaf_peer().await);
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let unheard = crowd(&deaf, &name, || deaf.waiting(bid())).await;
    let next = peer.waiting(bid());
    peer.queues(&name, &next, CROWD).await;
    peer.lets_go(&held).await;
    peer.is_told(&name, next.owner).await;
    assert_eq!(peer.holders(&name).await, [next.owner]);
    assert_eq!(peer.waiters(&name).await, unheard, "each keeps its place");
}

async fn whoever_asks_gets_past_a_crowd_that_cannot_be_reached(world: &World<'_>) {
    if !world.subject.sees_listeners() {
        return;
    }
    let (peer, deaf) = (world.peer().await, world.deaf_peer().await);
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    crowd(&deaf, &name, || deaf.waiting(bid())).await;
    peer.lets_go(&held).await;
    let hasty = peer.take(&name, &bid()).await;
    peer.lets_go(&hasty).await;
    peer.take(&name, &peer.waiting(bid())).await;
}

async fn a_crowd_that_fell_silent_holds_nobody_up(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    crowd(&peer, &name, || peer.waiting_for(bid(), 2_000)).await;
    let next = peer.waiting(bid());
    peer.acquire(&name, &next).await;
    world.pass(2_030).await;
    peer.lets_go(&held).await;
    peer.is_told(&name, next.owner).await;
    assert_eq!(peer.holders(&name).await, [next.owner]);
    assert!(peer.waiters(&name).await.is_empty());
}

async fn under_pressure_only_one_is_inside_and_fences_grow(world: &World<'_>) {
    let name = world.name("a");
    let room = Room::default();
    let mut peers = Vec::new();
    for _ in 0..4 {
        peers.push(world.peer().await);
    }
    let working = peers.iter().map(|peer| -> BoxFuture<'_, ()> {
        Box::pin(async {
            for _ in 0..10 {
                let held = get_in(world, peer, &name).await;
                room.enter(&held);
                world.subject.pause().await;
                room.leave();
                peer.lets_go(&held).await;
            }
        })
    });
    all(working.collect()).await;
    let fences = room.fences.lock().expect("nobody panicked inside").clone();
    assert_eq!(fences.len(), 40);
    assert!(
        fences.windows(2).all(|pair| pair[0] < pair[1]),
        "{fences:?}"
    );
}

/// Waits for the lock as a client does: told by a push, or by asking again now and then.
async fn get_in(world: &World<'_>, peer: &Peer<'_>, name: &LockName) -> Held {
    let bid = peer.waiting(bid());
    loop {
        let reply = peer.acquire(name, &bid).await;
        if matches!(reply.outcome, Outcome::Granted(_)) {
            return peer.take(name, &bid).await;
        }
        for _ in 0..50 {
            let grants = peer.mailbox.grants();
            if grants.iter().any(|grant| grant.owner == bid.owner) {
                return peer.is_told(name, bid.owner).await;
            }
            world.subject.pause().await;
        }
    }
}

/// What the lock protects.
#[derive(Default)]
struct Room {
    inside: AtomicU32,
    fences: Mutex<Vec<u64>>,
}

impl Room {
    fn enter(&self, held: &Held) {
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two are inside");
        let mut fences = self.fences.lock().expect("nobody panicked inside");
        fences.push(held.fence.as_u64());
    }

    fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}
