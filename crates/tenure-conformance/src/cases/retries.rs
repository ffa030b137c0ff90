//! Every request may arrive twice, and late: a lost reply costs a repetition and nothing else.

use tenure_core::{Acquire, Outcome, Removed, Timestamp};

use super::{Case, stories};
use crate::peer::{NOT_HELD, World, bid, permits, shared, ttl};

pub(crate) const CASES: &[Case] = stories!(retries:
    a_repeated_acquire_answers_the_same_grant,
    a_repeated_acquire_of_a_reader_takes_one_place_only,
    a_repeated_acquire_of_permits_takes_them_once [Permits],
    a_repeated_acquire_keeps_the_place_in_the_queue [Arrival],
    a_repeated_release_changes_nothing,
    a_late_release_does_not_end_a_later_hold,
    a_strangers_requests_change_nothing,
    a_repeated_cancel_changes_nothing,
    a_repeated_convert_answers_the_same,
    an_acquire_that_arrives_after_its_limit_takes_nothing,
    a_holder_is_told_its_grant_however_late_it_asks,
);

async fn a_repeated_acquire_answers_the_same_grant(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let bid = bid();
    let held = first.take(&name, &bid).await;
    world.pass(20).await;
    let again = second.take(&name, &bid).await;
    assert_eq!(again.fence, held.fence);
    let off = again.expiry.since(held.expiry) + held.expiry.since(again.expiry);
    let tolerance = world.subject.time_tolerance();
    assert!(off <= tolerance, "the expiry moved by {off:?}");
}

async fn a_repeated_acquire_of_a_reader_takes_one_place_only(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let reader = shared();
    let held = peer.take(&name, &reader).await;
    assert_eq!(peer.take(&name, &reader).await.fence, held.fence);
    peer.lets_go(&held).await;
    peer.take(&name, &bid()).await;
}

async fn a_repeated_acquire_of_permits_takes_them_once(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let some = permits(2, 4);
    let held = peer.take(&name, &some).await;
    assert_eq!(peer.take(&name, &some).await.fence, held.fence);
    peer.take(&name, &permits(2, 4)).await;
}

async fn a_repeated_acquire_keeps_the_place_in_the_queue(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    peer.take(&name, &bid()).await;
    let (second, third) = (peer.waiting(bid()), peer.waiting(bid()));
    peer.queues(&name, &second, 0).await;
    peer.queues(&name, &third, 1).await;
    peer.queues(&name, &second, 0).await;
    peer.queues(&name, &third, 1).await;
    let waiters = peer.waiters(&name).await;
    assert_eq!(waiters, [second.owner, third.owner]);
}

async fn a_repeated_release_changes_nothing(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &bid()).await;
    first.lets_go(&held).await;
    assert_eq!(first.release(&held).await, NOT_HELD);
    let next = second.take(&name, &bid()).await;
    assert_eq!(first.release(&held).await, NOT_HELD);
    assert_eq!(second.holders(&name).await, [next.owner]);
}

async fn a_late_release_does_not_end_a_later_hold(world: &World<'_>) {
    let peer = world.peer().await;
    for (kind, bid) in [
        ("lock", bid()),
        ("reader", shared()),
        ("permits", permits(1, 1)),
    ] {
        if !peer.offers(&bid) {
            continue;
        }
        let name = world.name(kind);
        let bid = world.lasting(bid, 100);
        let first = peer.take(&name, &bid).await;
        world.pass(130).await;
        let ttl = ttl(60_000);
        let bid = Acquire { ttl, ..bid };
        let second = peer.take(&name, &bid).await;
        assert_eq!(peer.release(&first).await, NOT_HELD);
        assert_eq!(peer.renew(&first, 60_000).await.outcome, NOT_HELD);
        peer.lets_go(&second).await;
    }
}

async fn a_strangers_requests_change_nothing(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let mut stranger = held.clone();
    stranger.owner = bid().owner;
    assert_eq!(peer.renew(&stranger, 90_000).await.outcome, NOT_HELD);
    assert_eq!(peer.convert(&stranger).await, NOT_HELD);
    assert_eq!(peer.release(&stranger).await, NOT_HELD);
    let nothing = Outcome::Cancelled(Removed::Nothing);
    assert_eq!(peer.cancel(&name, stranger.owner).await, nothing);
    assert_eq!(peer.holders(&name).await, [held.owner]);
}

async fn a_repeated_cancel_changes_nothing(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    let removed = peer.cancel(&name, held.owner).await;
    assert_eq!(removed, Outcome::Cancelled(Removed::Grant));
    peer.take(&name, &bid()).await;
    let removed = peer.cancel(&name, held.owner).await;
    assert_eq!(removed, Outcome::Cancelled(Removed::Nothing));
    peer.is_refused(&name, &bid()).await;
}

async fn a_repeated_convert_answers_the_same(world: &World<'_>) {
    let peer = world.peer().await;
    let held = peer.take(&world.name("a"), &bid()).await;
    let first = peer.convert(&held).await;
    assert!(matches!(first, Outcome::Converted { .. }), "{first:?}");
    let second = peer.convert(&held).await;
    assert!(matches!(second, Outcome::Converted { .. }), "{second:?}");
}

async fn an_acquire_that_arrives_after_its_limit_takes_nothing(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let (now, _) = peer.inspect(&name).await;
    let just_before = Timestamp::from_micros(now.as_micros() - 1);
    let not_after = Some(just_before);
    for late in [bid(), peer.waiting(bid()), shared(), permits(1, 2)] {
        if !peer.offers(&late) {
            continue;
        }
        let late = Acquire { not_after, ..late };
        let outcome = peer.acquire(&name, &late).await.outcome;
        assert_eq!(outcome, Outcome::TooLate);
    }
    let (_, snapshot) = peer.inspect(&name).await;
    assert_eq!(snapshot.kind, None, "{snapshot:?}");
}

async fn a_holder_is_told_its_grant_however_late_it_asks(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let (now, _) = peer.inspect(&name).await;
    let soon = now.plus(std::time::Duration::from_secs(60));
    let bid = Acquire {
        not_after: Some(soon),
        ..bid()
    };
    let held = peer.take(&name, &bid).await;
    let late = Acquire {
        not_after: Some(Timestamp::from_micros(now.as_micros() - 1)),
        ..bid
    };
    assert_eq!(peer.take(&name, &late).await.fence, held.fence);
}
