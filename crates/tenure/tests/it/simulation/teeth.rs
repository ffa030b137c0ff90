//! A shelf of wrong variants, each of which must be caught within a fixed number of seeds: one that is
//! not is a failing test. The same seeds find nothing wrong with the right one (`seeds.rs`).
//!
//! The same mistakes are made in the exhaustive models of `tenure-core` (`queue_model`, `forgetful`).

use std::sync::Arc;

use tenure::Tenure;
use tenure::test_util::{Fault, Rule, seed_chance};

use super::dice::Dice;
use super::flaws::Flaw;
use super::judge::Wrong;
use super::profile::Profile;
use super::run::run;
use crate::client_world::{millis, secs};
use crate::quorum::world::Quorum;

/// A flaw, the weather that shows it, how many seeds it takes at most, and what it leads to.
struct Tooth {
    flaw: Flaw,
    weather: Profile,
    within: u64,
    shows: &'static [Wrong],
}

const SHELF: [Tooth; 9] = [
    Tooth {
        flaw: Flaw::UnlockWithoutOwner,
        weather: Profile::STORM,
        within: 20,
        shows: &[Wrong::Overlap, Wrong::NotTold],
    },
    Tooth {
        flaw: Flaw::ValidityFromTheReply,
        weather: Profile::SLOW_REPLIES,
        within: 60,
        shows: &[Wrong::Overlap, Wrong::NotTold],
    },
    Tooth {
        flaw: Flaw::ClockBeforeTheLock,
        weather: Profile::ROW_LOCKS,
        within: 20,
        // Nothing worse was ever seen: a lease counts from before the clock was read all the same.
        shows: &[Wrong::TimeGoesBack],
    },
    Tooth {
        flaw: Flaw::CounterFence,
        weather: Profile::FORGETFUL,
        within: 20,
        shows: &[Wrong::Fence],
    },
    Tooth {
        flaw: Flaw::NoClaimWindow,
        weather: Profile::DYING_WAITERS,
        within: 60,
        shows: &[Wrong::Starved],
    },
    Tooth {
        flaw: Flaw::WaiterWithoutALimit,
        weather: Profile::SEEN_DEATHS,
        within: 60,
        shows: &[Wrong::Leak],
    },
    Tooth {
        flaw: Flaw::CancelForgetsAGrant,
        weather: Profile::DYING_WAITERS,
        within: 60,
        shows: &[Wrong::Starved, Wrong::Leak],
    },
    Tooth {
        flaw: Flaw::PushOnly,
        weather: Profile::STORM,
        within: 20,
        shows: &[Wrong::Starved],
    },
    Tooth {
        flaw: Flaw::RecoveryOff,
        weather: Profile::FORGETFUL,
        within: 20,
        shows: &[Wrong::Overlap, Wrong::NotTold],
    },
];

#[test]
fn every_wrong_variant_is_caught() {
    for tooth in &SHELF {
        let Tooth {
            flaw,
            weather,
            within,
            shows,
        } = tooth;
        let found = |seed| run(seed, *weather, Some(*flaw), false).found;
        let caught = (0..*within).find_map(|seed| Some((seed, found(seed)?)));
        let (seed, violation) = caught.unwrap_or_else(|| panic!("{flaw:?} was not caught"));
        println!("{flaw:?}: seed {seed}, {:?}", violation.wrong);
        assert!(shows.contains(&violation.wrong), "{flaw:?}: {violation:?}");
    }
}

/// The table for people names all of them.
#[test]
fn every_wrong_variant_is_on_the_page() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("../../docs/decisions/015-models-simulation-and-teeth.md");
    let page = std::fs::read_to_string(page).expect("the decision");
    for tooth in &SHELF {
        let row = format!("\n| `{:?}`", tooth.flaw);
        assert!(page.contains(&row), "{:?}", tooth.flaw);
    }
}

#[test]
fn a_quorum_that_does_not_take_its_votes_back_is_caught() {
    let seeds = 0..20;
    for seed in seeds.clone() {
        assert_eq!(race(seed, true), None, "seed {seed}");
    }
    let mut caught = seeds.map(|seed| race(seed, false));
    assert!(
        caught.any(|wrong| wrong.is_some()),
        "no roll-back was missed"
    );
}

/// Several race for the votes of three members; whoever does not get most of them takes its own back.
fn race(seed: u64, rolls_back: bool) -> Option<Wrong> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    seed_chance(Some(seed));
    let wrong = runtime.block_on(async {
        let mut dice = Dice::new(seed, 3);
        let quorum = Arc::new(Quorum::of(3));
        for member in &quorum.members {
            if !rolls_back {
                member.script(Rule::on("cancel").does(Fault::Refuse));
            }
            for _ in 0..4 {
                let delay = Fault::Delay(dice.millis(10));
                member.script(Rule::on("vote").times(1).does(delay));
            }
        }
        let (mut clients, mut tasks) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let client = quorum.client().await;
            clients.push(client.clone());
            tasks.push(tokio::spawn(get_in(client)));
        }
        let mut wrong = None;
        for task in tasks {
            if !task.await.expect("nobody panics") {
                wrong = Some(Wrong::Starved);
            }
        }
        // Not the end of their leases, only that of what is under way.
        quorum.pass(secs(3)).await;
        if quorum.votes("x").await > 0 {
            wrong = wrong.or(Some(Wrong::Leak));
        }
        wrong
    });
    seed_chance(None);
    wrong
}

async fn get_in(tenure: Tenure) -> bool {
    let lock = tenure.lock("x").ttl(secs(60)).wait(secs(20));
    match lock.acquire().await {
        Ok(guard) => {
            tenure.clock().sleep(millis(5)).await;
            guard.release().await.is_ok()
        }
        Err(_) => false,
    }
}
