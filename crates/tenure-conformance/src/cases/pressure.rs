//! Several processes at once, as in real life.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_core::{BoxFuture, LockName, Outcome};

use super::{Case, stories};
use crate::peer::{Held, Peer, World, bid};
use crate::run::all;

pub(crate) const CASES: &[Case] = stories!(pressure:
    under_pressure_only_one_is_inside_and_fences_grow,
);

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
