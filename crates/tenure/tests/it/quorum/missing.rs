//! A renewal has found a vote missing, and something else happens before the next one: nothing is done behind the back of
//! whoever holds the lock.

use tenure::core::Mode;
use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, Guard, Tenure, Ttl};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};
use crate::support::peer::named;

/// A hold of half a minute whose last renewal found one vote missing, just now.
async fn with_a_vote_missing(quorum: &Quorum, tenure: &Tenure) -> Guard {
    let lock = tenure.lock("x").ttl(secs(30));
    let guard = acquired(lock.try_acquire().await.unwrap());
    others_act().await;
    let last = quorum.members.len() - 1;
    quorum.members[last].forget(&named("x")).await.unwrap();
    while quorum.members[0].count("renew") == 0 {
        quorum.pass(millis(1)).await;
    }
    quorum.pass(millis(100)).await;
    guard
}

/// Whether somebody else gets it although its holder may still rely on it.
async fn is_held_twice(guard: &Guard, other: &Tenure) -> bool {
    let second = other.lock("x").try_acquire().await.unwrap();
    guard.is_valid() && matches!(second, Attempt::Acquired(_))
}

#[tokio::test(start_paused = true)]
async fn what_is_left_behind_ends_when_it_was_said_to() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = with_a_vote_missing(&quorum, &one).await;
    guard.leave_for(secs(2)).await.unwrap();
    quorum.pass(secs(3)).await;
    assert_eq!(quorum.votes("x").await, 0);
    drop(acquired(two.lock("x").try_acquire().await.unwrap()));
}

/// Two of four votes keep everybody else out, but are too few to be renewed.
#[tokio::test(start_paused = true)]
async fn whoever_loses_too_many_votes_is_told_before_the_others_are_taken_back() {
    let quorum = Quorum::of(4);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = with_a_vote_missing(&quorum, &one).await;
    quorum.members[2].forget(&named("x")).await.unwrap();
    for _ in 0..20 {
        assert!(!is_held_twice(&guard, &two).await);
        quorum.pass(secs(1)).await;
    }
    assert!(!guard.is_valid(), "the next renewal finds out");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_forced_at_one_member_is_told_before_the_other_votes_are_taken_back() {
    let quorum = Quorum::of(5);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = with_a_vote_missing(&quorum, &one).await;
    for member in 1..5 {
        for word in ["force-release", "release"] {
            quorum.members[member].script(Rule::on(word).does(Fault::Fail));
        }
    }
    let forced = two.force_release("x", guard.lease(), "stuck").await;
    forced.expect_err("it has reached one of five, and three have a vote");
    for _ in 0..20 {
        assert!(!is_held_twice(&guard, &two).await);
        quorum.pass(secs(1)).await;
    }
    assert!(!guard.is_valid(), "the next renewal finds out");
}

/// By lease, in the process of the holder, who does not hear of it.
#[tokio::test(start_paused = true)]
async fn whoever_renews_by_lease_takes_no_votes_from_the_holder() {
    let quorum = Quorum::of(4);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = with_a_vote_missing(&quorum, &one).await;
    quorum.members[2].forget(&named("x")).await.unwrap();
    let renewed = one.renew_lease("x", guard.lease(), Ttl::DEFAULT).await;
    renewed.expect_err("two of four are too few");
    for _ in 0..20 {
        assert!(!is_held_twice(&guard, &two).await);
        quorum.pass(secs(1)).await;
    }
    assert!(!guard.is_valid(), "the next renewal finds out");
}

#[tokio::test(start_paused = true)]
async fn what_is_shared_by_now_comes_back_as_shared() {
    let quorum = Quorum::of(3);
    let one = quorum.client().await;
    let guard = with_a_vote_missing(&quorum, &one).await;
    guard.downgrade().await.unwrap();
    quorum.pass(secs(25)).await;
    guard.ensure().unwrap();
    for member in 0..3 {
        let holders = quorum.peek(member, "x").await.holders;
        assert_eq!(holders.len(), 1, "member {member}");
        assert_eq!(holders[0].mode, Mode::Shared, "member {member}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_released_meanwhile_leaves_nothing() {
    let quorum = Quorum::of(3);
    let one = quorum.client().await;
    let guard = with_a_vote_missing(&quorum, &one).await;
    guard.release().await.unwrap();
    quorum.pass(secs(2)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

/// Holds that are renewed together: an answer that comes late is about the one that was asked about.
#[tokio::test(start_paused = true)]
async fn who_is_forced_out_of_some_locks_keeps_the_others_of_the_same_renewal() {
    const FORCED: [usize; 8] = [1, 2, 5, 6, 8, 11, 12, 15];
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let mut guards = Vec::new();
    for number in 0..16 {
        let lock = one.lock(format!("n{number}")).ttl(secs(30));
        guards.push(acquired(lock.try_acquire().await.unwrap()));
    }
    others_act().await;
    quorum.members[2].script(Rule::on("renew").does(Fault::Delay(millis(5))));
    for number in FORCED {
        let (name, lease) = (format!("n{number}"), guards[number].lease());
        let forced = two.force_release(&name, lease, "stuck");
        forced.await.expect("all servers hear of it");
    }
    for _ in 0..40 {
        quorum.pass(secs(1)).await;
        for (number, guard) in guards.iter().enumerate() {
            assert!(guard.is_valid() || FORCED.contains(&number), "{number}");
        }
    }
    assert!(FORCED.iter().all(|number| !guards[*number].is_valid()));
}

/// Its last renewal asked for a vote that was missing, and that question is still under way.
#[tokio::test(start_paused = true)]
async fn a_vote_that_comes_back_when_the_hold_is_lost_is_taken_back() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let lock = tenure.lock("x").ttl(millis(1_500));
    let guard = acquired(lock.try_acquire().await.unwrap());
    others_act().await;
    quorum.members[2].forget(&named("x")).await.unwrap();
    quorum.members[2].script(Rule::on("vote").does(Fault::Delay(millis(520))));
    while quorum.members[2].count("vote") < 2 {
        quorum.pass(millis(1)).await;
        guard.ensure().unwrap();
    }
    quorum.members[0].forget(&named("x")).await.unwrap();
    guard.lost().await;
    quorum.pass(millis(600)).await;
    assert_eq!(quorum.votes("x").await, 0, "a vote of nobody");
}
