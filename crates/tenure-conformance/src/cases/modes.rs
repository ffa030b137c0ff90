//! Exclusive, shared, permits: who may hold together with whom.

use tenure_core::{Kind, Outcome, SHOWN_HOLDERS};

use super::{Case, stories};
use crate::peer::{World, bid, permits, shared};

pub(crate) const CASES: &[Case] = stories!(modes:
    readers_share,
    a_writer_keeps_readers_out_and_readers_a_writer,
    a_reader_that_leaves_does_not_end_another,
    the_last_reader_lets_the_writer_in [Arrival],
    adjacent_readers_get_in_together [Arrival],
    permits_are_given_while_they_fit [Permits],
    released_permits_go_to_as_many_as_fit [Permits],
    a_writer_becomes_a_reader_and_lets_readers_in [Arrival],
    a_conversion_does_not_let_a_writer_in [Arrival],
    a_reader_stays_a_reader,
    permits_do_not_convert [Permits],
    a_name_has_one_kind_at_a_time [Permits],
    a_name_that_nobody_uses_has_no_kind [Permits],
    many_holders_are_counted_but_not_all_shown [Permits],
);

async fn readers_share(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let name = world.name("a");
    let one = first.take(&name, &shared()).await;
    let two = second.take(&name, &shared()).await;
    assert_eq!(first.holders(&name).await, [one.owner, two.owner]);
}

async fn a_writer_keeps_readers_out_and_readers_a_writer(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let writer = peer.take(&name, &bid()).await;
    peer.is_refused(&name, &shared()).await;
    peer.lets_go(&writer).await;
    peer.take(&name, &shared()).await;
    peer.is_refused(&name, &bid()).await;
}

async fn a_reader_that_leaves_does_not_end_another(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let one = peer.take(&name, &shared()).await;
    let two = peer.take(&name, &shared()).await;
    peer.lets_go(&one).await;
    assert_eq!(peer.holders(&name).await, [two.owner]);
    peer.is_refused(&name, &bid()).await;
    peer.lets_go(&two).await;
    peer.take(&name, &bid()).await;
}

async fn the_last_reader_lets_the_writer_in(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let one = peer.take(&name, &shared()).await;
    let two = peer.take(&name, &shared()).await;
    let writer = peer.waiting(bid());
    peer.queues(&name, &writer, 0).await;
    peer.lets_go(&one).await;
    assert_eq!(peer.waiters(&name).await, [writer.owner]);
    peer.lets_go(&two).await;
    peer.is_told(&name, writer.owner).await;
}

async fn adjacent_readers_get_in_together(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let writer = peer.take(&name, &bid()).await;
    let readers = [peer.waiting(shared()), peer.waiting(shared())];
    peer.queues(&name, &readers[0], 0).await;
    peer.queues(&name, &readers[1], 1).await;
    let next = peer.waiting(bid());
    peer.queues(&name, &next, 2).await;
    let behind = peer.waiting(shared());
    peer.queues(&name, &behind, 3).await;
    peer.lets_go(&writer).await;
    let one = peer.is_told(&name, readers[0].owner).await;
    let two = peer.is_told(&name, readers[1].owner).await;
    assert!(two.fence > one.fence);
    assert_eq!(peer.waiters(&name).await, [next.owner, behind.owner]);
}

async fn permits_are_given_while_they_fit(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    peer.take(&name, &permits(2, 4)).await;
    peer.is_refused(&name, &permits(3, 4)).await;
    peer.take(&name, &permits(2, 4)).await;
    peer.is_refused(&name, &permits(1, 4)).await;
}

async fn released_permits_go_to_as_many_as_fit(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let all = peer.take(&name, &permits(4, 4)).await;
    let waiting = [
        peer.waiting(permits(1, 4)),
        peer.waiting(permits(2, 4)),
        peer.waiting(permits(2, 4)),
    ];
    for (place, waiter) in (0..).zip(&waiting) {
        peer.queues(&name, waiter, place).await;
    }
    peer.lets_go(&all).await;
    peer.is_told(&name, waiting[0].owner).await;
    peer.is_told(&name, waiting[1].owner).await;
    assert_eq!(peer.waiters(&name).await, [waiting[2].owner]);
}

async fn a_writer_becomes_a_reader_and_lets_readers_in(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let writer = peer.take(&name, &bid()).await;
    let reader = peer.waiting(shared());
    peer.queues(&name, &reader, 0).await;
    let Outcome::Converted { expiry } = peer.convert(&writer).await else {
        panic!("did not convert");
    };
    let off = expiry.since(writer.expiry) + writer.expiry.since(expiry);
    assert!(off <= world.subject.time_tolerance(), "moved by {off:?}");
    peer.is_told(&name, reader.owner).await;
    assert_eq!(peer.holders(&name).await, [writer.owner, reader.owner]);
    peer.is_refused(&name, &bid()).await;
    peer.lets_go(&writer).await;
    assert_eq!(peer.holders(&name).await, [reader.owner]);
}

async fn a_conversion_does_not_let_a_writer_in(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let writer = peer.take(&name, &bid()).await;
    let next = peer.waiting(bid());
    peer.queues(&name, &next, 0).await;
    peer.queues(&name, &peer.waiting(shared()), 1).await;
    peer.convert(&writer).await;
    assert_eq!(peer.holders(&name).await, [writer.owner]);
    peer.lets_go(&writer).await;
    peer.is_told(&name, next.owner).await;
}

async fn a_reader_stays_a_reader(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let reader = peer.take(&name, &shared()).await;
    let outcome = peer.convert(&reader).await;
    assert!(matches!(outcome, Outcome::Converted { .. }), "{outcome:?}");
    peer.take(&name, &shared()).await;
}

async fn permits_do_not_convert(world: &World<'_>) {
    let peer = world.peer().await;
    let held = peer.take(&world.name("a"), &permits(2, 2)).await;
    let in_force = Kind::Semaphore { capacity: 2 };
    assert_eq!(peer.convert(&held).await, Outcome::Conflict { in_force });
}

async fn a_name_has_one_kind_at_a_time(world: &World<'_>) {
    let peer = world.peer().await;
    let lock = world.name("lock");
    peer.take(&lock, &bid()).await;
    let outcome = peer.acquire(&lock, &permits(1, 2)).await.outcome;
    let in_force = Kind::Lock;
    assert_eq!(outcome, Outcome::Conflict { in_force });
    let semaphore = world.name("semaphore");
    peer.take(&semaphore, &permits(1, 2)).await;
    let in_force = Kind::Semaphore { capacity: 2 };
    for other in [bid(), shared(), permits(1, 3)] {
        for other in [peer.waiting(other.clone()), other] {
            let outcome = peer.acquire(&semaphore, &other).await.outcome;
            assert_eq!(outcome, Outcome::Conflict { in_force });
        }
    }
    assert!(peer.waiters(&semaphore).await.is_empty());
}

async fn a_name_that_nobody_uses_has_no_kind(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    for bid in [bid(), permits(1, 2), shared(), permits(2, 3), bid()] {
        let held = peer.take(&name, &bid).await;
        let (_, snapshot) = peer.inspect(&name).await;
        assert_eq!(snapshot.kind, Some(bid.mode.kind()));
        peer.lets_go(&held).await;
        let (_, snapshot) = peer.inspect(&name).await;
        assert_eq!(snapshot.kind, None);
    }
}

async fn many_holders_are_counted_but_not_all_shown(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let mut owners = Vec::new();
    for _ in 0..12 {
        owners.push(peer.take(&name, &permits(1, 12)).await.owner);
    }
    let Outcome::Busy(contention) = peer.acquire(&name, &permits(1, 12)).await.outcome else {
        panic!("thirteen of twelve");
    };
    assert_eq!(contention.holder_count, 12);
    let shown: Vec<_> = contention.holders.iter().flat_map(|h| h.owner).collect();
    assert_eq!(shown, owners[..SHOWN_HOLDERS], "the first, in grant order");
    assert_eq!(peer.holders(&name).await, owners);
}
