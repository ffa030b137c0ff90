//! An exhaustive exploration of the queue: two or three clients that ask, wait, give signs of life,
//! claim what they are given, give it back, change their mind; messages that are lost, late or repeated;
//! processes that die or stand still; a server that restarts and knows nothing. Every reachable state is
//! visited, for as long as time goes on.
//!
//! The explorer next door (`forgetful`) asks whether a server that forgets can give a lock away. This one
//! asks, beside that, whether everybody is served: once nothing is wrong any more, nobody waits for a
//! lock that nobody holds, and when everybody is gone nothing is left. Without any one of the rules, one
//! of these happens.

mod client;
mod delivery;
mod key;
mod message;
mod model;
mod server;
mod world;

use model::{Broken, Faults, Found, Rule, explore};

const NONE: Faults = Faults {
    losses: 0,
    delays: 0,
    crashes: 0,
    pauses: 0,
    restarts: 0,
    cancels: 0,
};
const LOSS: Faults = Faults { losses: 1, ..NONE };
const DELAY: Faults = Faults { delays: 1, ..NONE };
const CRASH: Faults = Faults { crashes: 1, ..NONE };
const PAUSE: Faults = Faults { pauses: 1, ..NONE };
const RESTART: Faults = Faults {
    restarts: 1,
    ..NONE
};

/// Visits all states with all rules; the number shows that it does explore.
fn nothing_goes_wrong(clients: u8, faults: Faults, at_least: usize) {
    let (states, broken) = explore(clients, faults, &[]);
    if let Some(Broken { found, story }) = broken {
        panic!("{found:?} after\n{story}");
    }
    assert!(states > at_least, "only {states} states");
}

/// Whether leaving out this rule leads to this, and to nothing else first.
fn without(rule: Rule, clients: u8, faults: Faults, expected: Found) {
    let (states, broken) = explore(clients, faults, &[rule]);
    let found = broken.map(|broken| broken.found);
    assert_eq!(found, Some(expected), "{states} states without {rule:?}");
}

#[test]
fn messages_that_are_lost_cost_nobody_the_lock() {
    let losses = Faults { losses: 2, ..NONE };
    nothing_goes_wrong(3, losses, 5_000);
    nothing_goes_wrong(3, Faults { cancels: 1, ..LOSS }, 8_000);
}

#[test]
fn nor_do_messages_that_are_late_or_repeated() {
    nothing_goes_wrong(3, DELAY, 100_000);
    let delays = 2;
    nothing_goes_wrong(2, Faults { delays, ..NONE }, 30_000);
    let cancels = 1;
    nothing_goes_wrong(
        2,
        Faults {
            losses: 1,
            cancels,
            ..DELAY
        },
        30_000,
    );
}

#[test]
fn nor_do_processes_that_die() {
    nothing_goes_wrong(3, Faults { losses: 1, ..CRASH }, 20_000);
    nothing_goes_wrong(3, Faults { delays: 1, ..CRASH }, 20_000);
}

#[test]
fn nor_do_processes_that_stand_still() {
    nothing_goes_wrong(2, Faults { delays: 1, ..PAUSE }, 100_000);
    nothing_goes_wrong(3, PAUSE, 30_000);
}

#[test]
fn nor_does_a_server_that_forgets() {
    nothing_goes_wrong(
        2,
        Faults {
            losses: 1,
            ..RESTART
        },
        5_000,
    );
    nothing_goes_wrong(
        2,
        Faults {
            delays: 1,
            ..RESTART
        },
        50_000,
    );
    nothing_goes_wrong(3, RESTART, 10_000);
}

#[test]
fn unlocking_without_naming_the_hold_gives_two_holders() {
    without(Rule::ReleasesNameTheHold, 3, DELAY, Found::TwoHolders);
    without(Rule::ReleasesNameTheHold, 3, PAUSE, Found::TwoHolders);
}

#[test]
fn counting_a_lease_from_the_reply_gives_two_holders() {
    let faults = Faults { delays: 1, ..PAUSE };
    without(Rule::ValidityFromTheSend, 2, faults, Found::TwoHolders);
}

#[test]
fn counting_fences_gives_one_twice_after_an_empty_restart() {
    without(Rule::FencesFollowTheClock, 2, RESTART, Found::FenceRepeated);
}

#[test]
fn without_a_claim_window_a_dead_waiter_keeps_everybody_waiting() {
    without(Rule::ClaimWindow, 3, CRASH, Found::Starved);
}

#[test]
fn places_that_never_end_stay_when_everybody_is_gone() {
    let faults = Faults { crashes: 2, ..NONE };
    without(Rule::WaitersEnd, 2, faults, Found::Leak);
}

#[test]
fn a_cancellation_that_forgets_a_grant_keeps_everybody_waiting() {
    let faults = Faults { cancels: 1, ..LOSS };
    without(Rule::CancelEndsGrants, 2, faults, Found::Starved);
}

#[test]
fn without_asking_again_a_lost_push_leaves_a_waiter_alone() {
    without(Rule::WaitersAskAgain, 2, LOSS, Found::Starved);
}

#[test]
fn opening_at_once_after_an_empty_restart_gives_two_holders() {
    without(Rule::Recovery, 2, RESTART, Found::TwoHolders);
}
