//! Two owners never hold what only one may hold.

use tenure_core::{BoxFuture, Outcome, Reply};

use super::{Case, stories};
use crate::peer::{World, bid};
use crate::run::all;

pub(crate) const CASES: &[Case] = stories!(exclusion:
    a_free_lock_is_granted_for_its_ttl,
    another_process_is_refused_and_told_who_holds_it,
    two_owners_of_one_process_exclude_each_other,
    a_released_lock_is_free_for_another_process,
    other_names_are_not_affected,
    of_many_who_ask_at_once_one_gets_it [OneStep],
    a_refused_request_leaves_no_trace,
);

async fn a_free_lock_is_granted_for_its_ttl(world: &World<'_>) {
    let peer = world.peer().await;
    let bid = bid();
    let held = peer.take(&world.name("a"), &bid).await;
    let exact = held.since.plus(bid.ttl.duration());
    let off = exact.since(held.expiry) + held.expiry.since(exact);
    assert!(
        off <= world.subject.time_tolerance(),
        "the expiry is off by {off:?}"
    );
}

async fn another_process_is_refused_and_told_who_holds_it(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let holder = bid();
    let held = first.take(&name, &holder).await;
    let Outcome::Busy(contention) = second.acquire(&name, &bid()).await.outcome else {
        panic!("two holders");
    };
    assert_eq!((contention.holder_count, contention.waiter_count), (1, 0));
    let (next, expiry) = (contention.next_expiry, contention.holders[0].expiry);
    assert!(world.same_time(next, expiry), "{next:?} and {expiry:?}");
    assert!(!contention.is_foreign());
    let view = &contention.holders[0];
    assert_eq!(view.owner, Some(holder.owner));
    assert_eq!(view.fence, Some(held.fence));
    let since = view.since;
    assert!(world.same_time(since, Some(held.since)), "{since:?}");
    assert_eq!(view.mode, holder.mode);
    assert_eq!(view.party, holder.party);
}

async fn two_owners_of_one_process_exclude_each_other(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    peer.take(&name, &bid()).await;
    peer.is_refused(&name, &bid()).await;
}

async fn a_released_lock_is_free_for_another_process(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let held = first.take(&name, &bid()).await;
    first.lets_go(&held).await;
    assert!(second.holders(&name).await.is_empty());
    second.take(&name, &bid()).await;
    first.is_refused(&name, &bid()).await;
}

async fn other_names_are_not_affected(world: &World<'_>) {
    let peer = world.peer().await;
    peer.take(&world.name("a"), &bid()).await;
    peer.take(&world.name("b"), &bid()).await;
    peer.take(&world.name("a/b"), &bid()).await;
}

async fn of_many_who_ask_at_once_one_gets_it(world: &World<'_>) {
    let mut peers = Vec::new();
    for _ in 0..8 {
        peers.push(world.peer().await);
    }
    for round in 0..5 {
        let name = world.name(&format!("round {round}"));
        let bids: Vec<_> = peers.iter().map(|_| bid()).collect();
        let asking = peers.iter().zip(&bids);
        let asking = asking
            .map(|(peer, bid)| -> BoxFuture<'_, Reply> { Box::pin(peer.acquire(&name, bid)) });
        let replies = all(asking.collect()).await;
        let granted = |outcome: &Outcome| matches!(outcome, Outcome::Granted(_));
        let winners = replies.iter().filter(|reply| granted(&reply.outcome));
        assert_eq!(winners.count(), 1, "of {replies:?}");
    }
}

async fn a_refused_request_leaves_no_trace(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let held = peer.take(&name, &bid()).await;
    peer.is_refused(&name, &bid()).await;
    assert!(peer.waiters(&name).await.is_empty());
    peer.lets_go(&held).await;
    assert!(peer.holders(&name).await.is_empty());
}
