//! A batch is decided in order, each request as if alone.

use tenure_core::{Action, Cancel, Fence, Kind, Outcome, Release, Removed, Renew, Request};

use super::{Case, stories};
use crate::peer::{NOT_HELD, World, bid, permits, shared, ttl};

pub(crate) const CASES: &[Case] = stories!(batch:
    an_empty_batch_is_fine,
    a_batch_is_decided_in_order,
    one_refusal_does_not_touch_the_others [Permits],
    many_names_are_taken_and_renewed_at_once,
    many_readers_of_one_name_come_in_one_batch,
);

async fn an_empty_batch_is_fine(world: &World<'_>) {
    let peer = world.peer().await;
    assert!(peer.store.apply(&[]).await.is_empty());
}

async fn a_batch_is_decided_in_order(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let (first, second) = (bid(), bid());
    let owner = first.owner;
    let actions = [
        Action::Acquire(first),
        Action::Acquire(second.clone()),
        Action::Cancel(Cancel { owner }),
        Action::Acquire(second.clone()),
    ];
    let batch = actions.map(|action| action.on(name.clone()));
    let replies = peer.apply(&batch).await;
    let outcomes: Vec<_> = replies.iter().map(|reply| &reply.outcome).collect();
    let [
        Outcome::Granted(one),
        Outcome::Busy(_),
        Outcome::Cancelled(Removed::Grant),
        Outcome::Granted(two),
    ] = outcomes[..]
    else {
        panic!("out of order: {outcomes:?}");
    };
    assert!(two.fence > one.fence);
    assert!(replies.windows(2).all(|pair| pair[0].now <= pair[1].now));
    assert_eq!(peer.holders(&name).await, [second.owner]);
}

async fn one_refusal_does_not_touch_the_others(world: &World<'_>) {
    let peer = world.peer().await;
    let taken = world.name("taken");
    peer.take(&taken, &bid()).await;
    let absent = Release {
        owner: bid().owner,
        fence: Fence::from_u64(1),
    };
    let batch = [
        Action::Acquire(bid()).on(world.name("a")),
        Action::Acquire(permits(1, 2)).on(taken.clone()),
        Action::Acquire(shared()).on(world.name("b")),
        Action::Acquire(bid()).on(taken.clone()),
        Action::Release(absent).on(world.name("nothing")),
        Action::Acquire(permits(1, 2)).on(world.name("c")),
    ];
    let replies = peer.apply(&batch).await;
    let granted = |index: usize| matches!(replies[index].outcome, Outcome::Granted(_));
    assert!(granted(0) && granted(2) && granted(5), "{replies:?}");
    let in_force = Kind::Lock;
    assert_eq!(replies[1].outcome, Outcome::Conflict { in_force });
    assert!(matches!(replies[3].outcome, Outcome::Busy(_)));
    assert_eq!(replies[4].outcome, NOT_HELD);
}

async fn many_names_are_taken_and_renewed_at_once(world: &World<'_>) {
    let peer = world.peer().await;
    let bids: Vec<_> = (0..150).map(|_| bid()).collect();
    let names = (0..).map(|number: u32| world.name(&format!("{number}")));
    let taking: Vec<Request> = names
        .clone()
        .zip(&bids)
        .map(|(name, bid)| Action::Acquire(bid.clone()).on(name))
        .collect();
    let replies = peer.apply(&taking).await;
    let renewing = names.zip(&bids).zip(&replies);
    let renewing: Vec<Request> = renewing
        .map(|((name, bid), reply)| {
            let Outcome::Granted(grant) = reply.outcome else {
                panic!("{name} was not granted: {reply:?}");
            };
            let renew = Renew {
                owner: bid.owner,
                fence: grant.fence,
                ttl: ttl(90_000),
                detach: false,
                terms: None,
            };
            Action::Renew(renew).on(name)
        })
        .collect();
    for reply in peer.apply(&renewing).await {
        let renewed = matches!(reply.outcome, Outcome::Renewed { .. });
        assert!(renewed, "{reply:?}");
    }
}

async fn many_readers_of_one_name_come_in_one_batch(world: &World<'_>) {
    let peer = world.peer().await;
    let name = world.name("a");
    let readers: Vec<_> = (0..40).map(|_| shared()).collect();
    let batch: Vec<_> = readers
        .iter()
        .map(|reader| Action::Acquire(reader.clone()).on(name.clone()))
        .collect();
    peer.apply(&batch).await;
    let owners: Vec<_> = readers.iter().map(|reader| reader.owner).collect();
    assert_eq!(peer.holders(&name).await, owners);
}
