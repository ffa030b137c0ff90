//! Fences of a name strictly grow in grant order (promise S1).

use tenure_core::{Action, Cancel, Mode, Outcome, Release};

use super::{Case, stories};
use crate::peer::{World, bid, permits, shared};

pub(crate) const CASES: &[Case] = stories!(fencing:
    fences_grow_across_processes_and_releases,
    fences_grow_after_everything_has_expired,
    fences_follow_the_clock_of_the_store [OneStep],
    readers_have_fences_of_their_own,
    grants_of_one_batch_have_different_fences,
    an_exclusive_grant_has_fences_to_hand_on,
    a_cancelled_grant_uses_its_fence_up,
    a_fence_survives_a_change_of_kind [Permits],
);

async fn fences_grow_across_processes_and_releases(world: &World<'_>) {
    let peers = [world.peer().await, world.peer().await];
    let name = world.name("a");
    let mut last = None;
    for round in 0..10 {
        let peer = &peers[round % 2];
        let held = peer.take(&name, &bid()).await;
        assert!(
            Some(held.fence) > last,
            "round {round}: {} after {last:?}",
            held.fence
        );
        last = Some(held.fence);
        peer.lets_go(&held).await;
    }
}

async fn fences_grow_after_everything_has_expired(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let first = peer.take(&name, &world.lasting(bid(), 100)).await;
    world.pass(150).await;
    let second = peer.take(&name, &bid()).await;
    assert!(second.fence > first.fence);
}

async fn fences_follow_the_clock_of_the_store(world: &World<'_>) {
    let peer = world.peer().await;
    let held = peer.take(&world.name("a"), &bid()).await;
    assert_eq!(
        held.fence.as_u64(),
        held.since.as_micros(),
        "the first fence is the time of the grant, so that it grows even if all data is lost"
    );
}

async fn readers_have_fences_of_their_own(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let first = peer.take(&name, &shared()).await;
    let second = peer.take(&name, &shared()).await;
    assert!(second.fence > first.fence);
}

async fn grants_of_one_batch_have_different_fences(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let requests: Vec<_> = (0..5)
        .map(|_| Action::Acquire(shared()).on(name.clone()))
        .collect();
    let replies = peer.apply(&requests).await;
    let fences: Vec<_> = replies
        .iter()
        .map(|reply| match reply.outcome {
            Outcome::Granted(grant) => grant.fence,
            ref other => panic!("a reader was not let in: {other:?}"),
        })
        .collect();
    let growing = fences.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(growing, "{fences:?}");
}

async fn an_exclusive_grant_has_fences_to_hand_on(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let (first, second, third) = (bid(), bid(), shared());
    // In one batch, so that the clock does not help.
    let steps = [
        Action::Acquire(first.clone()),
        Action::Cancel(Cancel { owner: first.owner }),
        Action::Acquire(second.clone()),
        Action::Cancel(Cancel {
            owner: second.owner,
        }),
        Action::Acquire(third),
    ];
    let replies = peer
        .apply(&steps.map(|action| action.on(name.clone())))
        .await;
    let fences: Vec<_> = replies
        .iter()
        .filter_map(|reply| match reply.outcome {
            Outcome::Granted(grant) => Some(grant.fence),
            _ => None,
        })
        .collect();
    let [first, second, third] = fences[..] else {
        panic!("not all were let in: {replies:?}");
    };
    assert!(second > first.last_of_grant(Mode::Exclusive), "{fences:?}");
    assert!(third > second.last_of_grant(Mode::Exclusive), "{fences:?}");
}

async fn a_cancelled_grant_uses_its_fence_up(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let first = peer.take(&name, &bid()).await;
    peer.cancel(&name, first.owner).await;
    let second = peer.take(&name, &bid()).await;
    assert!(second.fence > first.fence);
    let (owner, fence) = (second.owner, first.fence);
    let old = Action::Release(Release { owner, fence });
    let outcome = peer.ask(&name, old).await.outcome;
    assert!(matches!(outcome, Outcome::NotHeld { .. }), "{outcome:?}");
}

async fn a_fence_survives_a_change_of_kind(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let lock = peer.take(&name, &bid()).await;
    peer.lets_go(&lock).await;
    let semaphore = peer.take(&name, &permits(1, 2)).await;
    assert!(semaphore.fence > lock.fence);
    peer.lets_go(&semaphore).await;
    let reader = peer.take(&name, &shared()).await;
    assert!(reader.fence > semaphore.fence);
}
