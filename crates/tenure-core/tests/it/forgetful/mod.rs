//! An exhaustive exploration of a server that forgets: two clients and a newcomer, one server that at
//! any moment restarts empty or from an old copy, is replaced by a replica or is wiped, and messages
//! that arrive late, twice or never. Some read and some write; clocks are off, within what is allowed for.
//! Every reachable state is visited.
//!
//! With all rules, no two clients ever believe that they hold the lock at the same time, no fence is
//! given twice, and no valid holder is told that it has lost. Without any one of them, one of these
//! happens: the tests below would notice if a rule were dropped, or were not needed.

mod client;
mod key;
mod model;
mod server;
mod world;

use tenure_core::Mode;

use model::{Bounds, Broken, Cast, Found, Kind, Rule, explore};

const WRITERS: Cast = [Mode::Exclusive; 3];
const READERS_AND_A_NEW_WRITER: Cast = [Mode::Shared, Mode::Shared, Mode::Exclusive];
const A_READER_AMONG_WRITERS: Cast = [Mode::Shared, Mode::Exclusive, Mode::Exclusive];
const A_WRITER_AMONG_READERS: Cast = [Mode::Exclusive, Mode::Shared, Mode::Shared];

/// Long enough for a server that forgot to open again.
const LONG: Bounds = Bounds {
    ticks: 4,
    faults: 1,
    late: 0,
    clocks: 0,
    kept: 0,
    cast: WRITERS,
    kind: Kind::Forgetful,
};

const WITH_LATE_MESSAGES: Bounds = Bounds {
    ticks: 3,
    faults: 1,
    late: 1,
    clocks: 0,
    kept: 0,
    cast: WRITERS,
    kind: Kind::Forgetful,
};

const TWICE: Bounds = Bounds {
    ticks: 3,
    faults: 2,
    late: 0,
    clocks: 0,
    kept: 0,
    cast: WRITERS,
    kind: Kind::Forgetful,
};

/// Enough to see what happens without a rule.
const SHORT: Bounds = Bounds {
    ticks: 2,
    faults: 1,
    late: 1,
    clocks: 0,
    kept: 0,
    cast: WRITERS,
    kind: Kind::Forgetful,
};

/// Visits all states with all rules; the number shows that it does explore.
fn nothing_goes_wrong(bounds: Bounds, at_least: usize) {
    let states = unbroken(bounds, &[]);
    assert!(states > at_least, "only {states} states");
}

fn unbroken(bounds: Bounds, left_out: &[Rule]) -> usize {
    let (states, broken) = explore(bounds, left_out, None);
    if let Some(Broken { found, story }) = broken {
        panic!("{found:?} after\n{story}");
    }
    states
}

/// Whether leaving out these rules leads to this.
fn without(rules: &[Rule], wanted: Found) -> bool {
    let found = |bounds| explore(bounds, rules, Some(wanted)).1.is_some();
    [SHORT, LONG].into_iter().any(found)
}

#[test]
fn a_server_that_forgets_costs_waiting_and_nothing_else() {
    nothing_goes_wrong(LONG, 80_000);
}

#[test]
fn nor_do_late_messages_to_a_server_that_forgets() {
    nothing_goes_wrong(WITH_LATE_MESSAGES, 200_000);
}

#[test]
fn nor_does_a_server_that_forgets_twice() {
    nothing_goes_wrong(TWICE, 200_000);
}

#[test]
fn nor_do_readers_and_writers_ever_meet() {
    for cast in [
        READERS_AND_A_NEW_WRITER,
        A_READER_AMONG_WRITERS,
        A_WRITER_AMONG_READERS,
    ] {
        let states = unbroken(
            Bounds {
                cast,
                ticks: 3,
                ..LONG
            },
            &[],
        );
        assert!(states > 20_000, "only {states} states");
    }
}

#[test]
fn nor_do_clocks_that_are_fast_or_slow_within_the_margin() {
    let bounds = Bounds {
        clocks: 1,
        ticks: 3,
        ..LONG
    };
    nothing_goes_wrong(bounds, 50_000);
}

/// Something happens to it, and it restarts with all that it has before the waiting for that was over.
const THEN_KEPT: Bounds = Bounds {
    ticks: 2,
    kept: 1,
    ..TWICE
};

#[test]
fn nor_does_a_restart_that_keeps_everything_after_a_loss() {
    for (kind, at_least) in [
        (Kind::Forgetful, 50_000),
        // A replica without the last writes takes over, and then has all that it had.
        (Kind::Durable, 20_000),
        (Kind::Alone, 5_000),
    ] {
        nothing_goes_wrong(Bounds { kind, ..THEN_KEPT }, at_least);
    }
}

#[test]
fn opening_at_once_because_nothing_was_lost_this_time_gives_two_holders() {
    let rules = [Rule::RecoveryGoesOn];
    let bounds = Bounds {
        kind: Kind::Alone,
        ..THEN_KEPT
    };
    let (_, broken) = explore(bounds, &rules, Some(Found::TwoHolders));
    assert!(broken.is_some());
}

#[test]
fn to_say_that_a_server_has_no_replicas_when_it_has_gives_two_holders() {
    let bounds = Bounds {
        kind: Kind::SaidToBeAlone,
        ..THEN_KEPT
    };
    let (_, broken) = explore(bounds, &[], Some(Found::TwoHolders));
    let story = broken.expect("a copy looks like the original").story;
    assert!(
        story.contains("Promotion") && story.contains("RestartKept"),
        "{story}"
    );
}

#[test]
fn without_the_margin_a_slow_clock_gives_two_holders() {
    assert!(without(&[Rule::AMarginForSlowClocks], Found::TwoHolders));
}

#[test]
fn letting_a_writer_in_while_recovering_meets_readers() {
    let bounds = Bounds {
        cast: READERS_AND_A_NEW_WRITER,
        ..SHORT
    };
    let rules = [Rule::NobodyIsLetIn];
    let (_, broken) = explore(bounds, &rules, Some(Found::TwoHolders));
    assert!(broken.is_some());
}

#[test]
fn binding_to_a_life_and_lost_being_final_each_suffice_against_two_holders_but_not_neither() {
    let neither = [Rule::RequestsAreBoundToALife, Rule::LostIsFinal];
    for one in neither {
        let (_, broken) = explore(SHORT, &[one], Some(Found::TwoHolders));
        assert!(broken.is_none(), "without {one:?}");
    }
    assert!(without(&neither, Found::TwoHolders));
}

/// An old question of its own comes to a server that is open again, and is granted anew.
#[test]
fn without_binding_to_a_life_a_valid_holder_loses_its_lock() {
    let rules = [Rule::RequestsAreBoundToALife];
    assert!(without(&rules, Found::ValidHolderLost));
}

#[test]
fn letting_in_while_recovering_gives_two_holders() {
    let rules = [Rule::NobodyIsLetIn];
    assert!(without(&rules, Found::TwoHolders));
}

#[test]
fn letting_in_on_a_release_alone_costs_a_valid_holder_its_lock() {
    let rules = [Rule::ReleasesLetNobodyIn];
    assert!(without(&rules, Found::ValidHolderLost));
}

#[test]
fn without_the_higher_fence_winning_a_valid_holder_loses_its_lock() {
    let rules = [Rule::TheHigherFenceWins];
    assert!(without(&rules, Found::ValidHolderLost));
}

#[test]
fn a_bare_counter_gives_a_fence_twice() {
    let rules = [Rule::FencesFollowTheClock];
    assert!(without(&rules, Found::FenceRepeated));
}

#[test]
fn opening_without_a_record_gives_two_holders() {
    let rules = [Rule::NoOpeningWithoutARecord];
    assert!(without(&rules, Found::TwoHolders));
}

#[test]
fn trusting_the_age_of_a_promoted_replica_gives_two_holders() {
    let rules = [Rule::ATakeoverIsNoAge];
    assert!(without(&rules, Found::TwoHolders));
}

#[test]
fn carrying_out_requests_before_anybody_said_hello_gives_two_holders() {
    let rules = [Rule::HelloComesFirst];
    assert!(without(&rules, Found::TwoHolders));
}
