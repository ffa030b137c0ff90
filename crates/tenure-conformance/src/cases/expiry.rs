//! A hold ends by itself, not before its time, and only for its own owner.

use tenure_core::Outcome;

use super::{Case, stories};
use crate::peer::{NOT_HELD, World, bid, permits, shared};

pub(crate) const CASES: &[Case] = stories!(expiry:
    a_hold_ends_by_itself,
    a_hold_does_not_end_before_its_time,
    a_renewal_prolongs,
    a_renewal_never_shortens,
    what_has_expired_is_not_renewed_even_if_nobody_came,
    what_has_expired_is_neither_released_nor_converted,
    an_expired_hold_is_not_shown,
    each_reader_ends_on_its_own,
    permits_come_back_when_their_hold_ends [Permits],
    the_same_owner_may_come_back_after_expiry,
);

const SHORT: u64 = 150;

async fn a_hold_ends_by_itself(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    first.take(&name, &world.lasting(bid(), SHORT)).await;
    world.pass(SHORT + 20).await;
    second.take(&name, &bid()).await;
}

async fn a_hold_does_not_end_before_its_time(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &world.lasting(bid(), 400)).await;
    loop {
        let reply = second.acquire(&name, &bid()).await;
        if matches!(reply.outcome, Outcome::Granted(_)) {
            let early = held.expiry.since(reply.now);
            let tolerance = world.subject.time_tolerance();
            assert!(early <= tolerance, "granted {early:?} too early");
            return;
        }
        let late = reply.now.since(held.expiry);
        let tolerance = world.subject.time_tolerance();
        assert!(late <= tolerance, "refused {late:?} after the expiry");
        world.pass(30).await;
    }
}

async fn a_renewal_prolongs(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &world.lasting(bid(), 3_000)).await;
    let reply = first.renew(&held, 60_000).await;
    let Outcome::Renewed { expiry } = reply.outcome else {
        panic!("not renewed: {reply:?}");
    };
    assert!(expiry > held.expiry);
    let (_, snapshot) = second.inspect(&name).await;
    let shown = snapshot.holders[0].expiry.expect("ours ends by itself");
    let off = shown.since(expiry) + expiry.since(shown);
    assert!(off <= world.subject.time_tolerance(), "off by {off:?}");
    assert_eq!(snapshot.holders[0].fence, Some(held.fence), "same fence");
}

async fn a_renewal_never_shortens(world: &World<'_>) {
    let peer = world.peer().await;
    let held = peer.take(&world.name("a"), &bid()).await;
    let reply = peer.renew(&held, 100).await;
    let Outcome::Renewed { expiry } = reply.outcome else {
        panic!("not renewed: {reply:?}");
    };
    let shorter = held.expiry.since(expiry);
    assert!(
        shorter <= world.subject.time_tolerance(),
        "shortened by {shorter:?}"
    );
}

async fn what_has_expired_is_not_renewed_even_if_nobody_came(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &world.lasting(bid(), SHORT)).await;
    world.pass(SHORT + 20).await;
    assert_eq!(peer.renew(&held, 60_000).await.outcome, NOT_HELD);
    assert!(peer.holders(&name).await.is_empty());
}

async fn what_has_expired_is_neither_released_nor_converted(world: &World<'_>) {
    let peer = world.peer().await;
    let held = peer
        .take(&world.name("a"), &world.lasting(bid(), SHORT))
        .await;
    world.pass(SHORT + 20).await;
    assert_eq!(peer.convert(&held).await, NOT_HELD);
    assert_eq!(peer.release(&held).await, NOT_HELD);
}

async fn an_expired_hold_is_not_shown(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &world.lasting(shared(), SHORT)).await;
    world.pass(SHORT + 20).await;
    let (_, snapshot) = peer.inspect(&name).await;
    assert!(snapshot.holders.is_empty());
    assert_eq!(snapshot.kind, None);
    assert_eq!(snapshot.last_fence, held.fence, "the last fence stays");
}

async fn each_reader_ends_on_its_own(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let long = shared();
    peer.take(&name, &long).await;
    peer.take(&name, &world.lasting(shared(), SHORT)).await;
    world.pass(SHORT + 20).await;
    assert_eq!(peer.holders(&name).await, [long.owner]);
    peer.is_refused(&name, &bid()).await;
}

async fn permits_come_back_when_their_hold_ends(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    peer.take(&name, &world.lasting(permits(2, 3), SHORT)).await;
    peer.take(&name, &permits(1, 3)).await;
    world.pass(SHORT + 20).await;
    peer.take(&name, &permits(2, 3)).await;
    peer.is_refused(&name, &permits(1, 3)).await;
}

async fn the_same_owner_may_come_back_after_expiry(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let bid = world.lasting(bid(), SHORT);
    let first = peer.take(&name, &bid).await;
    world.pass(SHORT + 20).await;
    let second = peer.take(&name, &bid).await;
    assert!(second.fence > first.fence, "a new hold has a new fence");
}
