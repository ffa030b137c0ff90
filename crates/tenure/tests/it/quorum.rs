//! A lock on several stores: what a client sees when some of them are slow, hang, fail, forget or
//! disagree. In virtual time, so every bound is exact.

use std::time::Duration;

use tenure::core::{Action, Outcome};
use tenure::stores::quorum::{Rule as Electing, Settings};
use tenure::test_util::{Fault, Rule};
use tenure::{Attempt, ErrorKind, Loss, Mode, Standing};

use crate::client_world::{acquired, millis, others_act, secs};
use crate::quorum_world::Quorum;
use crate::support::peer::{Peer, bid, bid_in, lasting, named};

const NODE_TIMEOUT: Duration = Settings::NODE_TIMEOUT;

#[tokio::test(start_paused = true)]
async fn all_members_are_asked_at_once_and_all_have_the_vote_in_the_end() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    others_act().await;
    assert_eq!(quorum.votes("x").await, 5);
    for member in 0..5 {
        let fence = quorum.peek(member, "x").await.holders[0].fence;
        assert_eq!(fence, Some(guard.fence()), "all agree on the fence");
        assert_eq!(quorum.members[member].count("vote"), 1, "one round");
    }
    guard.release().await.unwrap();
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_minority_that_hangs_fails_or_is_slow_delays_nothing() {
    for fault in [
        Fault::Hang,
        Fault::Fail,
        Fault::Refuse,
        Fault::LoseReply,
        Fault::Delay(millis(40)),
        Fault::DelayReply(secs(1)),
    ] {
        let quorum = Quorum::of(5);
        let tenure = quorum.client().await;
        quorum.all([1, 3], fault);
        let lock = tenure.lock("x").ttl(secs(9));
        let (guard, took) = quorum.elapsed(lock.try_acquire()).await;
        let guard = acquired(guard.unwrap());
        assert_eq!(took, Duration::ZERO, "acquire with {fault:?}");
        quorum.pass(secs(30)).await;
        guard.ensure().unwrap();
        let held = matches!(&*guard.standing().borrow(), Standing::Held { .. });
        assert!(held, "never in jeopardy with {fault:?}");
        let (released, took) = quorum.elapsed(guard.release()).await;
        released.unwrap();
        assert_eq!(took, Duration::ZERO, "release with {fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_the_error_is_clear_and_comes_after_one_node_timeout() {
    for fault in [Fault::Hang, Fault::Fail] {
        let quorum = Quorum::of(5);
        let tenure = quorum.client().await;
        quorum.all([0, 2, 4], fault);
        let (attempt, took) = quorum.elapsed(tenure.lock("x").try_acquire()).await;
        let error = attempt.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("2 of 5"), "{error}");
        // The votes of the others are taken back before the answer.
        assert!(took <= NODE_TIMEOUT * 2, "{took:?} with {fault:?}");
        assert_eq!(quorum.votes("x").await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_whose_majority_is_gone_is_told_before_its_votes_end() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    quorum.pass(millis(100)).await;
    quorum.all([0, 1, 2], Fault::Hang);
    assert_eq!(guard.lost().await, Loss::Expired);
    let held = quorum.peek(0, "x").await.holders.len();
    assert_eq!(held, 1, "the votes of those that are cut off still last");
}

#[tokio::test(start_paused = true)]
async fn votes_that_came_to_nothing_are_taken_back_everywhere() {
    let quorum = Quorum::of(5);
    let (one, two) = (quorum.client().await, quorum.client().await);
    // Somebody has a majority, but the other does not reach one of its members.
    let guard = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.members[3].forget(&named("x")).await.unwrap();
    quorum.members[4].forget(&named("x")).await.unwrap();
    let Attempt::Busy(blocked) = two.lock("x").try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    assert_eq!(blocked.contention.holder_count, 1);
    assert_eq!(quorum.votes("x").await, 3, "only those of the holder");
    guard.release().await.unwrap();
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_vote_that_was_given_late_or_unheard_is_taken_back() {
    for fault in [
        Fault::Hang,
        Fault::LoseReply,
        Fault::Delay(millis(300)),
        Fault::DelayReply(millis(300)),
    ] {
        let quorum = Quorum::of(3);
        let tenure = quorum.client().await;
        quorum.all([0], Fault::Fail);
        quorum.all([1], fault);
        let error = tenure.lock("x").try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        quorum.pass(secs(1)).await;
        quorum.members[1].resume().await;
        quorum.pass(secs(1)).await;
        assert_eq!(quorum.votes("x").await, 0, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_acquire_leaves_no_votes() {
    for patience in 0..40 {
        let quorum = Quorum::of(5);
        let tenure = quorum.client().await;
        quorum.all([0, 1], Fault::Delay(millis(10)));
        quorum.all([2], Fault::Hang);
        quorum.all([3, 4], Fault::DelayReply(millis(20)));
        let lock = tenure.lock("x");
        let acquire = lock.acquire();
        tokio::select! {
            biased;
            guard = acquire => drop(guard),
            () = quorum.pass(millis(patience)) => {}
        }
        tenure.settle().await;
        for member in &quorum.members {
            member.resume().await;
        }
        quorum.pass(secs(2)).await;
        assert_eq!(quorum.votes("x").await, 0, "given up after {patience} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_vote_of_a_hold_stays_and_goes_with_it() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let late = Rule::on("vote").does(Fault::Delay(millis(200)));
    quorum.members[2].script(late);
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    assert_eq!(quorum.votes("x").await, 2);
    quorum.pass(millis(300)).await;
    assert_eq!(quorum.votes("x").await, 3, "after success late votes stay");
    guard.release().await.unwrap();
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_vote_of_a_hold_that_is_over_is_taken_back() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let late = Rule::on("vote").does(Fault::Delay(millis(200)));
    quorum.members[2].script(late);
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    guard.release().await.unwrap();
    quorum.pass(millis(400)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_gets_back_the_votes_of_members_that_lost_them() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    others_act().await;
    // One after the other loses it; each comes back with the next renewal.
    for round in 0..10 {
        let member = &quorum.members[round % 5];
        member.forget(&named("x")).await.unwrap();
        quorum.pass(secs(4)).await;
        guard.ensure().unwrap();
        assert_eq!(quorum.votes("x").await, 5, "round {round}");
    }
    // Even when most have lost it: nobody else was let in meanwhile.
    for member in &quorum.members[..3] {
        member.forget(&named("x")).await.unwrap();
    }
    quorum.pass(secs(4)).await;
    guard.ensure().unwrap();
    assert_eq!(quorum.votes("x").await, 5);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_gets_no_vote_where_somebody_else_was_since() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    others_act().await;
    for member in &quorum.members {
        member.forget(&named("x")).await.unwrap();
    }
    let other = acquired(two.lock("x").try_acquire().await.unwrap());
    assert!(other.fence() > guard.fence());
    other.release().await.unwrap();
    assert_eq!(guard.lost().await, Loss::Forgotten);
    others_act().await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_ended_by_force_does_not_come_back_with_a_renewal() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(one.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    others_act().await;
    quorum.members[2].forget(&named("x")).await.unwrap();
    two.force_release("x", guard.lease(), "stuck")
        .await
        .unwrap();
    assert!(matches!(guard.lost().await, Loss::Forced(_)));
    quorum.pass(secs(1)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_race_that_nobody_wins_at_first_is_won_by_somebody() {
    for round in 0..20 {
        let quorum = Quorum::of(4);
        let (one, two) = (quorum.client().await, quorum.client().await);
        // Each is first at half of the members.
        for member in 0..4 {
            let slow = usize::from(member % 2 == 0);
            let delay = Fault::Delay(millis(1 + 5 * slow as u64));
            let rule = Rule::on("vote").after(slow).times(1).does(delay);
            quorum.members[member].script(rule);
        }
        let (one, two) = tokio::join!(
            async { one.lock("x").wait(secs(5)).acquire().await },
            async {
                let guard = two.lock("x").wait(secs(5)).acquire().await?;
                guard.release().await
            }
        );
        assert!(one.is_ok() || two.is_ok(), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_contenders_with_one_of_three_away_both_get_it() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    quorum.all([1], Fault::Hang);
    let uses = async |tenure: &tenure::Tenure| {
        for _ in 0..10 {
            let guard = tenure.lock("x").wait(secs(60)).acquire().await.unwrap();
            quorum.pass(millis(1)).await;
            guard.release().await.unwrap();
        }
    };
    let (_, took) = quorum
        .elapsed(async { tokio::join!(uses(&one), uses(&two)) })
        .await;
    // Without being told: nothing is pushed by memory stores, so a waiter asks when leases end.
    assert!(took < secs(120), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_release_reaches_the_slow_members_too() {
    let quorum = Quorum::of(5);
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    others_act().await;
    quorum.all([0, 1], Fault::Delay(millis(300)));
    let (released, took) = quorum.elapsed(guard.release()).await;
    released.unwrap();
    assert_eq!(took, Duration::ZERO);
    assert_eq!(quorum.votes("x").await, 2);
    quorum.pass(millis(400)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn many_processes_that_want_it_all_get_it_one_after_the_other() {
    let quorum = Quorum::of(5);
    let started = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (tenure, inside) = (quorum.client().await, started.clone());
        let clock = quorum.clock.clone();
        tasks.push(tokio::spawn(async move {
            use std::sync::atomic::Ordering::SeqCst;
            use tenure::clock::Clock;
            let mut fences = Vec::new();
            for _ in 0..5 {
                let guard = tenure.lock("x").wait(secs(300)).acquire().await.unwrap();
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "two at once");
                clock.sleep(millis(3)).await;
                fences.push(guard.fence());
                inside.fetch_sub(1, SeqCst);
                guard.release().await.unwrap();
            }
            fences
        }));
    }
    let mut fences = Vec::new();
    for task in tasks {
        fences.extend(task.await.unwrap());
    }
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 40, "every grant had a fence of its own");
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_refused() {
    for (members, rule) in [
        (0, Electing::Majority),
        (2, Electing::Majority),
        (1, Electing::All),
    ] {
        let quorum = Quorum::with(members, Settings::new(rule));
        let error = quorum.try_store().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    }
    let quorum = Quorum::with(
        3,
        Settings {
            node_timeout: secs(1),
            ..Settings::new(Electing::Majority)
        },
    );
    let tenure = quorum.client().await;
    let error = tenure.lock("x").ttl(secs(1)).try_acquire().await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("2s"), "{error}");
    drop(acquired(
        tenure.lock("x").ttl(secs(2)).try_acquire().await.unwrap(),
    ));
}

#[tokio::test(start_paused = true)]
async fn permits_are_refused_with_the_reason() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    let error = tenure.semaphore("gpu", 2).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("do not bound a sum"), "{error}");
}

/// The reason, acted out: majorities of three, each member with a semaphore of two, three holders.
#[tokio::test(start_paused = true)]
async fn majorities_would_not_bound_a_sum_of_permits() {
    let quorum = Quorum::of(3);
    for pair in [[0, 1], [1, 2], [2, 0]] {
        let one_of_two = bid_in(Mode::permits(1, 2).unwrap());
        for member in pair {
            let acquire = Action::Acquire(one_of_two.clone());
            let outcome = quorum.ask(member, "gpu", acquire).await;
            assert!(matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn readers_share_and_keep_a_writer_out() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let reader = acquired(one.rwlock("doc").read().try_acquire().await.unwrap());
    let other = acquired(two.rwlock("doc").read().try_acquire().await.unwrap());
    assert_ne!(reader.fence(), other.fence());
    let writer = two.rwlock("doc").write().try_acquire().await.unwrap();
    assert!(matches!(writer, Attempt::Busy(_)));
    reader.release().await.unwrap();
    other.release().await.unwrap();
    others_act().await;
    let writer = acquired(two.rwlock("doc").write().try_acquire().await.unwrap());
    let busy = one.rwlock("doc").read().try_acquire().await.unwrap();
    assert!(matches!(busy, Attempt::Busy(_)));
    writer.downgrade().await.unwrap();
    others_act().await;
    drop(acquired(
        one.rwlock("doc").read().try_acquire().await.unwrap(),
    ));
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_is_told_who_holds_it_until_when() {
    let quorum = Quorum::of(5);
    let (one, two) = (quorum.client().await, quorum.client().await);
    let guard = acquired(
        one.lock("x")
            .ttl(secs(10))
            .no_renew()
            .try_acquire()
            .await
            .unwrap(),
    );
    others_act().await;
    quorum.pass(secs(4)).await;
    let Attempt::Busy(blocked) = two.lock("x").try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    let holder = &blocked.contention.holders[0];
    assert_eq!(holder.owner, Some(guard.lease().owner));
    assert_eq!(blocked.expires_in(holder), Some(secs(6)));
    let (now, snapshot) = two.inspect("x").await.unwrap();
    assert_eq!(snapshot.holders[0].expiry.unwrap().since(now), secs(6));
    let listing = two.list("").await.unwrap();
    assert_eq!(listing.locks.len(), 1);
    // Whoever waits gets it when the votes have ended.
    let (next, took) = quorum.elapsed(two.lock("x").acquire()).await;
    assert!(next.unwrap().fence() > guard.fence());
    assert!(took >= millis(5_900) && took < secs(7), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_acquire_recognises_its_own_votes() {
    let quorum = Quorum::of(5);
    let peer = Peer::new(quorum.try_store().await.unwrap()).await;
    quorum.all([0, 1], Fault::Fail);
    let bid = lasting(bid(), 5_000);
    let lease = peer.take("x", &bid).await;
    for member in &quorum.members {
        member.behave();
    }
    assert_eq!(peer.take("x", &bid).await.fence, lease.fence);
    others_act().await;
    assert_eq!(peer.release("x", lease).await, Outcome::Released);
}

#[tokio::test(start_paused = true)]
async fn of_two_that_must_agree_one_that_is_down_refuses_new_holds_and_keeps_old_ones() {
    let quorum = Quorum::with(2, Settings::new(Electing::All));
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    quorum.all([1], Fault::Hang);
    quorum.pass(secs(60)).await;
    guard.ensure().unwrap();
    let error = tenure.lock("y").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(quorum.votes("y").await, 0);
    guard.release().await.unwrap();
    quorum.members[1].resume().await;
    quorum.pass(secs(30)).await;
    drop(acquired(tenure.lock("x").try_acquire().await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn an_even_number_is_allowed_with_a_warning() {
    let quorum = Quorum::of(4);
    let tenure = quorum.client().await;
    let findings = tenure.diagnose().await.unwrap();
    let even = findings
        .iter()
        .find(|finding| finding.subject == "even number");
    assert_eq!(even.unwrap().severity, tenure::Severity::Warning);
    drop(acquired(tenure.lock("x").try_acquire().await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_quorum_is_connected_to_while_a_minority_is_down() {
    let quorum = Quorum::of(3);
    quorum.all([2], Fault::Hang);
    let tenure = quorum.client().await;
    drop(acquired(tenure.lock("x").try_acquire().await.unwrap()));
    quorum.all([1], Fault::Hang);
    let error = quorum.try_store().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
