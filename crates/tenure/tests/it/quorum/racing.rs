//! Several who want it at once: somebody wins, and everybody in the end.

use std::time::Duration;

use tenure::stores::quorum::{Rule as Electing, Settings};
use tenure::test_util::{Fault, Rule, seed_chance};
use tenure::{Attempt, Tenure};

use super::world::Quorum;
use crate::client_world::{millis, secs};

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

/// Of those who ask at the same moment and do not wait, exactly one gets it: nobody else holds it. Every
/// call takes a while, and each is first at other members.
#[tokio::test(start_paused = true)]
async fn of_those_who_ask_at_once_without_waiting_exactly_one_gets_it() {
    for (members, electing) in [
        (2, Electing::All),
        (3, Electing::All),
        (3, Electing::Majority),
    ] {
        for (crowd, seeds) in [(2, 20), (3, 20), (20, 5)] {
            for seed in 0..seeds {
                seed_chance(Some(seed));
                let (got, busy) = all_ask_at_once(members, electing, crowd).await;
                let of = format!("{crowd} on {members} by {electing:?}, seed {seed}");
                assert_eq!(got, 1, "{of}");
                assert_eq!(busy, crowd - 1, "the others are told who holds it: {of}");
            }
        }
    }
    seed_chance(None);
}

/// How many of a crowd got it, and how many were told who has it.
async fn all_ask_at_once(members: usize, electing: Electing, crowd: usize) -> (usize, usize) {
    let quorum = Quorum::with(members, Settings::new(electing));
    let mut clients: Vec<Tenure> = Vec::new();
    for _ in 0..crowd {
        clients.push(quorum.client().await);
    }
    for (number, member) in quorum.members.iter().enumerate() {
        // Whoever asks second is first at the last one, and so on.
        let late = Fault::Delay(millis(6));
        member.script(
            Rule::on("vote")
                .after(crowd - 1 - number % crowd)
                .times(1)
                .does(Fault::Delay(millis(1))),
        );
        member.script(Rule::on("vote").times(crowd - 1).does(late));
        member.script(Rule::on_everything().does(Fault::Delay(millis(3))));
    }
    let attempts = clients.iter().map(|client| client.lock("x").try_acquire());
    let attempts = futures_util::future::join_all(attempts).await;
    let count = |wanted: fn(&Attempt) -> bool| {
        let attempts = attempts.iter().map(|attempt| attempt.as_ref().unwrap());
        attempts.filter(|attempt| wanted(attempt)).count()
    };
    let got = count(|attempt| matches!(attempt, Attempt::Acquired(_)));
    let told = |attempt: &Attempt| matches!(attempt, Attempt::Busy(blocked) if !blocked.contention.holders.is_empty());
    (got, count(told))
}

/// Members give readers who come at once different fences, and whoever has its votes agree on one finds that others came in between.
#[tokio::test(start_paused = true)]
async fn readers_who_come_at_once_all_get_in() {
    for seed in 0..10 {
        seed_chance(Some(seed));
        let quorum = Quorum::of(3);
        let mut clients = Vec::new();
        for _ in 0..12 {
            clients.push(quorum.client().await);
        }
        let mut chance = seed.wrapping_mul(0x9e37_79b9) | 1;
        for member in &quorum.members {
            for _ in 0..400 {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                let delay = Fault::Delay(Duration::from_micros(200 + chance % 4_000));
                member.script(Rule::on("vote").times(1).does(delay));
            }
        }
        let reading = |client: &Tenure| client.rwlock("x").read().try_acquire();
        let attempts = futures_util::future::join_all(clients.iter().map(reading)).await;
        let mut fences = Vec::new();
        for attempt in &attempts {
            match attempt {
                Ok(Attempt::Acquired(guard)) => fences.push(guard.fence()),
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        fences.sort_unstable();
        fences.dedup();
        assert_eq!(fences.len(), 12, "each has a fence of its own");
    }
    seed_chance(None);
}

/// It was taken without the one that is there again, and the one that it has beside hangs now.
#[tokio::test(start_paused = true)]
async fn whoever_has_had_its_vote_for_long_does_not_race() {
    let quorum = Quorum::of(3);
    let (one, two) = (quorum.client().await, quorum.client().await);
    quorum.all([1], Fault::Fail);
    let attempt = one.lock("x").try_acquire().await.unwrap();
    quorum.pass(secs(5)).await;
    quorum.members[1].behave();
    quorum.all([2], Fault::Hang);
    let asking = two.lock("x");
    let (next, took) = quorum.elapsed(asking.try_acquire()).await;
    let Attempt::Busy(blocked) = next.unwrap() else {
        panic!("two holders");
    };
    assert_eq!(blocked.contention.holder_count, 1, "{blocked}");
    assert!(took < secs(1), "{took:?}");
    drop(attempt);
}
