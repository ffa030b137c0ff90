//! A hold that is found to be lost: its holder is told before others can have what is left of its votes, also if whoever
//! asked does not wait for the answer.

use tenure::core::{Action, ForceRelease, Renew, Terms};
use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, Lease, Loss, Mode, Party, Store, Ttl};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};
use crate::support::peer::{Peer, bid, named};

#[tokio::test(start_paused = true)]
async fn whoever_drops_an_extension_or_a_downgrade_that_travels_with_others_is_told_of_a_loss() {
    for extends in [true, false] {
        let quorum = Quorum::of(3);
        let (one, two) = (quorum.client().await, quorum.client().await);
        let guard = acquired(one.lock("x").try_acquire().await.unwrap());
        others_act().await;
        force(&quorum, guard.lease()).await;
        for member in &quorum.members {
            for word in ["vote", "renew", "convert"] {
                member.script(Rule::on(word).does(Fault::Delay(millis(10))));
            }
        }
        // So many calls are under way that the next one takes others along.
        for name in ["a", "b", "c", "d"] {
            let tenure = one.clone();
            tokio::spawn(async move { tenure.lock(name).try_acquire().await });
        }
        others_act().await;
        let asking = async {
            match extends {
                true => guard.extend(secs(60)).await,
                false => guard.downgrade().await,
            }
        };
        tokio::select! {
            biased;
            () = quorum.pass(millis(15)) => {}
            answer = asking => panic!("answered before it is dropped: {answer:?}"),
        }
        quorum.pass(millis(50)).await;
        let next = two.lock("x").try_acquire().await.unwrap();
        let both = guard.is_valid() && matches!(next, Attempt::Acquired(_));
        assert!(!both, "two hold it (extends: {extends})");
        assert!(matches!(guard.lost().await, Loss::Forced(_)));
    }
}

/// The same one level below: a batch that is dropped before it is answered has taken nothing from holders.
#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_hears_the_answer_of_takes_no_votes_from_a_holder() {
    let quorum = Quorum::of(3);
    let peer = Peer::new(quorum.try_store().await.unwrap()).await;
    let lease = peer.take("x", &bid()).await;
    others_act().await;
    force(&quorum, lease).await;
    // A vote for something else that came to nothing is taken back slowly, and the batch waits for it.
    for member in [1, 2] {
        let rule = Rule::on("vote").of("y").does(Fault::Fail);
        quorum.members[member].script(rule);
    }
    let slowly = Rule::on("cancel").of("y").does(Fault::Delay(millis(40)));
    quorum.members[0].script(slowly);
    let batch = [
        Action::Renew(renewal(lease)).on(named("x")),
        Action::Acquire(bid()).on(named("y")),
    ];
    tokio::select! {
        biased;
        () = quorum.pass(millis(20)) => {}
        _ = peer.store.apply(&batch) => panic!("answered before it is dropped"),
    }
    quorum.pass(secs(1)).await;
    assert_eq!(
        quorum.votes("x").await,
        2,
        "nobody was told that it is lost"
    );
    let replies = peer.store.apply(&batch[..1]).await;
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0, "now somebody was");
}

/// Ends it at the first member only, as somebody whom nobody hears of any more.
async fn force(quorum: &Quorum, Lease { owner, fence }: Lease) {
    let force = ForceRelease {
        owner,
        fence,
        by: Party::default(),
        reason: "stuck".to_owned(),
    };
    quorum.ask(0, "x", Action::ForceRelease(force)).await;
}

fn renewal(Lease { owner, fence }: Lease) -> Renew {
    Renew {
        owner,
        fence,
        ttl: Ttl::DEFAULT,
        detach: false,
        terms: Some(Terms {
            mode: Mode::Exclusive,
            party: Party::default(),
        }),
    }
}
