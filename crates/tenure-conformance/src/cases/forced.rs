//! A hold that was ended by somebody else, on purpose.

use tenure_core::{Fence, Outcome};

use super::{Case, stories};
use crate::peer::{Held, NOT_HELD, Peer, World, bid, permits, shared};

pub(crate) const CASES: &[Case] = stories!(forced:
    force_ends_a_hold_of_any_mode,
    the_next_waiter_gets_in_and_is_told [Arrival],
    the_old_holder_is_told_by_whom_and_why,
    force_needs_owner_and_fence,
    a_later_holder_is_told_nothing,
);

async fn force_ends_a_hold_of_any_mode(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    for (text, bid) in [
        ("lock", bid()),
        ("reader", shared()),
        ("permit", permits(2, 2)),
    ] {
        if !first.offers(&bid) {
            continue;
        }
        let name = world.name(text);
        let held = first.take(&name, &bid).await;
        assert_eq!(second.force(&held, "stuck").await, Outcome::Released);
        assert!(second.holders(&name).await.is_empty());
        second.take(&name, &crate::peer::bid()).await;
    }
}

async fn the_next_waiter_gets_in_and_is_told(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &bid()).await;
    let next = second.waiting(bid());
    second.queues(&name, &next, 0).await;
    first.force(&held, "stuck").await;
    let pushed = second.is_told(&name, next.owner).await;
    assert!(pushed.fence > held.fence);
}

async fn told(peer: &Peer<'_>, held: &Held, outcome: Outcome) {
    let Outcome::NotHeld {
        forced: Some(forced),
    } = outcome
    else {
        panic!("the old holder was not told: {outcome:?}");
    };
    assert_eq!((forced.owner, forced.fence), (held.owner, held.fence));
    assert_eq!(forced.reason, "stuck: \"it\" doesn't end \u{2713}");
    assert_eq!(forced.by.who(), "operator@desk");
    assert_eq!(forced.by.label(), "on call");
    assert_eq!((forced.by.host(), forced.by.pid()), ("desk", 7));
    let (now, _) = peer.inspect(&held.name).await;
    let tolerance = peer.time_tolerance();
    assert!(held.since <= forced.at.plus(tolerance) && forced.at <= now.plus(tolerance));
}

async fn the_old_holder_is_told_by_whom_and_why(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &bid()).await;
    let reason = "stuck: \"it\" doesn't end \u{2713}";
    second.force(&held, reason).await;
    let renewed = first.renew(&held, 60_000).await.outcome;
    told(&first, &held, renewed).await;
    second.take(&name, &bid()).await;
    let released = first.release(&held).await;
    told(&first, &held, released).await;
    let converted = first.convert(&held).await;
    told(&first, &held, converted).await;
    let again = second.force(&held, "again").await;
    told(&first, &held, again).await;
}

async fn force_needs_owner_and_fence(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let mut wrong = held.clone();
    wrong.fence = Fence::from_u64(held.fence.as_u64() + 1);
    assert_eq!(peer.force(&wrong, "stuck").await, NOT_HELD);
    let mut wrong = held.clone();
    wrong.owner = bid().owner;
    assert_eq!(peer.force(&wrong, "stuck").await, NOT_HELD);
    assert_eq!(peer.holders(&name).await, [held.owner]);
}

async fn a_later_holder_is_told_nothing(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    peer.force(&held, "stuck").await;
    let next = peer.take(&name, &bid()).await;
    peer.lets_go(&next).await;
    assert_eq!(peer.release(&next).await, NOT_HELD);
}
