//! Many want the lock: first come, first served, and whoever gets in is told.

use std::time::Duration;

use tenure_core::{LockName, Outcome, Removed};

use super::{Case, stories};
use crate::peer::{Held, NOT_HELD, Peer, World, bid, permits, shared};

pub(crate) const CASES: &[Case] = stories!(contention:
    a_release_hands_over_to_the_first_and_tells_it_alone [Arrival],
    a_waiter_is_told_its_place_and_who_is_in_the_way [Arrival],
    a_pushed_grant_lasts_for_its_claim_window [Arrival],
    a_claimed_grant_lasts_for_its_ttl [Arrival],
    a_grant_that_is_not_claimed_passes_on [Arrival],
    a_lost_push_is_made_good_by_asking_again [Arrival],
    an_expired_hold_goes_to_the_first_that_asks [Arrival],
    a_late_renewal_lets_the_next_one_in [Arrival],
    a_sign_of_life_keeps_the_place [Arrival],
    a_waiter_that_fell_silent_is_never_let_in [Arrival],
    a_waiter_that_fell_silent_and_comes_back_is_last [Arrival],
    a_waiter_that_cannot_be_reached_is_passed_over_but_keeps_its_place [Arrival],
    a_waiter_that_cannot_be_reached_gets_in_by_asking [Arrival],
    a_waiter_that_cancels_leaves_the_queue [Arrival],
    the_grant_that_raced_with_a_cancellation_goes_to_the_next [Arrival],
    nobody_overtakes_the_queue_by_not_waiting [Arrival],
    a_big_request_is_not_starved_by_small_ones [Arrival, Permits],
    a_waiter_that_no_longer_waits_gives_its_place_up [Arrival],
);

async fn a_release_hands_over_to_the_first_and_tells_it_alone(world: &World<'_>) {
    let (first, second, third) = (world.peer().await, world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &bid()).await;
    let next = second.waiting(bid());
    second.queues(&name, &next, 0).await;
    third.queues(&name, &third.waiting(bid()), 1).await;
    first.lets_go(&held).await;
    let pushed = second.is_told(&name, next.owner).await;
    assert!(pushed.fence > held.fence);
    assert_eq!(first.holders(&name).await, [next.owner]);
    assert!(first.mailbox.grants().is_empty());
    assert!(third.mailbox.grants().is_empty());
}

async fn a_waiter_is_told_its_place_and_who_is_in_the_way(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    peer.queues(&name, &peer.waiting(bid()), 0).await;
    let last = peer.waiting(bid());
    let Outcome::Queued { ahead, contention } = peer.acquire(&name, &last).await.outcome else {
        panic!("did not queue");
    };
    assert_eq!((ahead, contention.waiter_count), (1, 2));
    assert_eq!(contention.holder_count, 1);
    assert_eq!(contention.holders[0].owner, Some(held.owner));
    let (_, snapshot) = peer.inspect(&name).await;
    assert_eq!(snapshot.waiters[1].party, last.party);
    assert_eq!(snapshot.waiters[1].mode, last.mode);
}

/// The lock is held and handed over to a waiter whose claim window is half of `alive_for`.
async fn hand_over(peer: &Peer<'_>, name: &LockName, alive_for: u64) -> Held {
    let held = peer.take(name, &bid()).await;
    let next = peer.waiting_for(bid(), alive_for);
    peer.queues(name, &next, 0).await;
    peer.lets_go(&held).await;
    peer.is_told(name, next.owner).await
}

async fn a_pushed_grant_lasts_for_its_claim_window(world: &World<'_>) {
    let peer = world.peer().await;
    let pushed = hand_over(&peer, &world.name("a"), 60_000).await;
    let exact = pushed.since.plus(Duration::from_secs(30));
    let off = exact.since(pushed.expiry) + pushed.expiry.since(exact);
    let tolerance = world.subject.time_tolerance();
    assert!(off <= tolerance, "the claim window is off by {off:?}");
}

async fn a_claimed_grant_lasts_for_its_ttl(world: &World<'_>) {
    let peer = world.peer().await;
    let pushed = hand_over(&peer, &world.name("a"), 60_000).await;
    let reply = peer.renew(&pushed, 60_000).await;
    let Outcome::Renewed { expiry } = reply.outcome else {
        panic!("could not claim: {reply:?}");
    };
    let left = expiry.since(reply.now) + world.subject.time_tolerance();
    assert!(left >= Duration::from_secs(60), "only {left:?}");
}

async fn a_grant_that_is_not_claimed_passes_on(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let unclaimed = hand_over(&peer, &name, 3_000).await;
    let third = peer.waiting(bid());
    peer.acquire(&name, &third).await;
    world.pass(1_530).await;
    assert_eq!(peer.renew(&unclaimed, 60_000).await.outcome, NOT_HELD);
    assert_eq!(peer.holders(&name).await, [third.owner]);
}

async fn a_lost_push_is_made_good_by_asking_again(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let next = peer.waiting(bid());
    peer.queues(&name, &next, 0).await;
    peer.lets_go(&held).await;
    let pushed = peer.is_told(&name, next.owner).await;
    let asked = peer.take(&name, &next).await;
    assert_eq!(asked.fence, pushed.fence);
}

async fn an_expired_hold_goes_to_the_first_that_asks(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    peer.take(&name, &world.lasting(bid(), 100)).await;
    let next = peer.waiting(bid());
    peer.acquire(&name, &next).await;
    world.pass(130).await;
    peer.take(&name, &next).await;
}

async fn a_late_renewal_lets_the_next_one_in(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &world.lasting(bid(), 300)).await;
    let next = second.waiting(bid());
    second.acquire(&name, &next).await;
    world.pass(330).await;
    assert_eq!(first.renew(&held, 60_000).await.outcome, NOT_HELD);
    assert_eq!(first.holders(&name).await, [next.owner]);
    second.take(&name, &next).await;
}

async fn a_sign_of_life_keeps_the_place(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    peer.take(&name, &bid()).await;
    let (early, late) = (peer.waiting_for(bid(), 4_000), peer.waiting(bid()));
    peer.queues(&name, &early, 0).await;
    peer.queues(&name, &late, 1).await;
    for _ in 0..3 {
        world.pass(1_500).await;
        peer.queues(&name, &early, 0).await;
    }
    assert_eq!(peer.waiters(&name).await, [early.owner, late.owner]);
}

async fn a_waiter_that_fell_silent_is_never_let_in(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let (silent, next) = (peer.waiting_for(bid(), 150), peer.waiting(bid()));
    peer.acquire(&name, &silent).await;
    peer.acquire(&name, &next).await;
    world.pass(180).await;
    assert_eq!(peer.waiters(&name).await, [next.owner], "not shown");
    peer.lets_go(&held).await;
    peer.is_told(&name, next.owner).await;
    assert_eq!(peer.holders(&name).await, [next.owner]);
}

async fn a_waiter_that_fell_silent_and_comes_back_is_last(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let (silent, next) = (peer.waiting_for(bid(), 150), peer.waiting(bid()));
    peer.acquire(&name, &silent).await;
    peer.acquire(&name, &next).await;
    world.pass(180).await;
    let back = peer.waiting(silent);
    peer.acquire(&name, &back).await;
    assert_eq!(peer.waiters(&name).await, [next.owner, back.owner]);
    peer.lets_go(&held).await;
    peer.is_told(&name, next.owner).await;
}

async fn a_waiter_that_cannot_be_reached_is_passed_over_but_keeps_its_place(world: &World<'_>) {
    if !world.subject.sees_listeners() {
        return;
    }
    let (peer, deaf) = (world.peer().await, world.deaf_peer().await);
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let (unheard, next) = (deaf.waiting(bid()), peer.waiting(bid()));
    deaf.queues(&name, &unheard, 0).await;
    peer.queues(&name, &next, 1).await;
    peer.lets_go(&held).await;
    peer.is_told(&name, next.owner).await;
    assert_eq!(peer.waiters(&name).await, [unheard.owner]);
}

async fn a_waiter_that_cannot_be_reached_gets_in_by_asking(world: &World<'_>) {
    let (peer, deaf) = (world.peer().await, world.deaf_peer().await);
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let unheard = deaf.waiting(bid());
    deaf.queues(&name, &unheard, 0).await;
    peer.lets_go(&held).await;
    deaf.take(&name, &unheard).await;
}

async fn a_waiter_that_cancels_leaves_the_queue(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let (gone, next) = (peer.waiting(bid()), peer.waiting(bid()));
    peer.queues(&name, &gone, 0).await;
    peer.queues(&name, &next, 1).await;
    let removed = peer.cancel(&name, gone.owner).await;
    assert_eq!(removed, Outcome::Cancelled(Removed::Waiter));
    peer.queues(&name, &next, 0).await;
    peer.lets_go(&held).await;
    peer.is_told(&name, next.owner).await;
}

async fn the_grant_that_raced_with_a_cancellation_goes_to_the_next(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &bid()).await;
    let (gone, next) = (first.waiting(bid()), second.waiting(bid()));
    first.queues(&name, &gone, 0).await;
    second.queues(&name, &next, 1).await;
    first.lets_go(&held).await;
    let removed = first.cancel(&name, gone.owner).await;
    assert_eq!(removed, Outcome::Cancelled(Removed::Grant));
    let pushed = second.is_told(&name, next.owner).await;
    assert!(pushed.fence > held.fence);
    assert_eq!(first.holders(&name).await, [next.owner]);
}

async fn nobody_overtakes_the_queue_by_not_waiting(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    peer.take(&name, &shared()).await;
    peer.queues(&name, &peer.waiting(bid()), 0).await;
    peer.is_refused(&name, &shared()).await;
}

async fn a_big_request_is_not_starved_by_small_ones(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let small = peer.take(&name, &permits(1, 3)).await;
    let big = peer.waiting(permits(3, 3));
    peer.queues(&name, &big, 0).await;
    peer.queues(&name, &peer.waiting(permits(1, 3)), 1).await;
    peer.lets_go(&small).await;
    peer.is_told(&name, big.owner).await;
    assert_eq!(peer.holders(&name).await, [big.owner]);
}

async fn a_waiter_that_no_longer_waits_gives_its_place_up(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    peer.take(&name, &bid()).await;
    let impatient = bid();
    peer.queues(&name, &peer.waiting(impatient.clone()), 0)
        .await;
    peer.is_refused(&name, &impatient).await;
    assert!(peer.waiters(&name).await.is_empty());
}
