//! Many seeds in all kinds of weather, and one seed again.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::judge::Violation;
use super::profile::Profile;
use super::run::run;

const PROFILES: [Profile; 7] = [
    Profile::STORM,
    Profile::ORDERLY,
    Profile::DYING_WAITERS,
    Profile::SEEN_DEATHS,
    Profile::SLOW_REPLIES,
    Profile::FORGETFUL,
    Profile::ROW_LOCKS,
];

/// Runs all seeds on as many threads as there are processors; panics with the first that fails. Answers how many
/// guards came from another task of the same process.
fn all_is_well(profile: Profile, seeds: u64, grants_each: usize) -> usize {
    let (next, grants) = (AtomicU64::new(0), AtomicUsize::new(0));
    let handed_on = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(4) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds {
                        return;
                    }
                    let verdict = run(seed, profile, None, false);
                    grants.fetch_add(verdict.grants, Ordering::SeqCst);
                    handed_on.fetch_add(verdict.handed_on, Ordering::SeqCst);
                    if let Some(violation) = verdict.found {
                        next.store(seeds, Ordering::SeqCst);
                        panic!("{}", complaint(profile, seed, &violation));
                    }
                }
            });
        }
    });
    let grants = grants.into_inner();
    let expected = grants_each * usize::try_from(seeds).expect("a few");
    assert!(grants > expected, "only {grants} grants in {seeds} runs");
    handed_on.into_inner()
}

fn complaint(profile: Profile, seed: u64, violation: &Violation) -> String {
    format!(
        "{:?}: {}\nsee it again: TENURE_TEST_SEED={seed} TENURE_TEST_PROFILE='{}' cargo test -p tenure \
         --all-features --test it simulation::seeds::one_seed_again -- --nocapture",
        violation.wrong, violation.detail, profile.name,
    )
}

pub(super) fn seeds(usual: u64) -> u64 {
    let wanted = std::env::var("TENURE_TEST_SEEDS").ok();
    wanted.map_or(usual, |number| number.parse().expect("a number"))
}

#[test]
fn no_storm_makes_two_hold_or_a_fence_go_back_or_leaves_anybody_waiting() {
    let handed_on = all_is_well(Profile::STORM, seeds(700), 5);
    assert!(handed_on > 0, "and no task handed a lock on to another");
}

#[test]
fn where_messages_stay_in_order_nothing_is_left_behind_even_for_a_moment() {
    all_is_well(Profile::ORDERLY, seeds(500), 5);
}

#[test]
fn waiters_that_die_hold_nobody_up_for_long() {
    all_is_well(Profile::DYING_WAITERS, seeds(300), 5);
    all_is_well(Profile::SEEN_DEATHS, seeds(100), 5);
}

#[test]
fn slow_answers_make_nobody_believe_for_too_long() {
    all_is_well(Profile::SLOW_REPLIES, seeds(300), 5);
}

#[test]
fn a_server_that_forgets_costs_waiting_and_nothing_else() {
    all_is_well(Profile::FORGETFUL, seeds(300), 5);
}

#[test]
fn requests_that_wait_for_each_other_in_the_store_do_no_harm() {
    all_is_well(Profile::ROW_LOCKS, seeds(300), 5);
}

#[test]
fn a_seed_does_the_same_each_time() {
    for profile in PROFILES {
        for seed in [3, 4] {
            let [one, other] = [(), ()].map(|()| run(seed, profile, None, true));
            let differ = one.story.iter().zip(&other.story);
            for (one, other) in differ {
                assert_eq!(one, other, "{} {seed}", profile.name);
            }
            assert_eq!((one.grants, one.ended), (other.grants, other.ended));
        }
    }
}

/// Tells what happens under one seed; by default one that is known to be fine.
#[test]
fn one_seed_again() {
    let variable = |name: &str| std::env::var(name).ok();
    let seed = variable("TENURE_TEST_SEED").map_or(0, |it| it.parse().expect("a number"));
    let name = variable("TENURE_TEST_PROFILE").unwrap_or_else(|| "storm".to_owned());
    let profile = PROFILES.into_iter().find(|it| it.name == name);
    let profile = profile.expect("one of the profiles");
    let verdict = run(seed, profile, None, true);
    for line in &verdict.story {
        println!("{line}");
    }
    if let Some(violation) = verdict.found {
        panic!("{}", complaint(profile, seed, &violation));
    }
}
