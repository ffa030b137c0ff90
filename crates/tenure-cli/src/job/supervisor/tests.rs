//! The timeline of `tenure run`, second by second.

use super::*;

/// A lease of 30 s taken at second 0 is valid until here: the margin is 1 %.
const VALID: u64 = 29_700;

fn at(millis: u64) -> Boottime {
    Boottime::from_nanos((1_000_000 + millis) * 1_000_000)
}

fn lease(millis: u64) -> LeaseStatus {
    LeaseStatus::valid_until(at(millis))
}

fn lost(cause: LossCause) -> LeaseStatus {
    LeaseStatus {
        lost: Some(cause),
        ..lease(VALID)
    }
}

fn rules() -> Rules {
    Rules {
        grace: Duration::from_secs(10),
        on_lost: OnLost::Kill,
        hold_until: Boottime::NEVER,
        shares_group: false,
    }
}

fn job(rules: Rules) -> Supervisor {
    Supervisor::new(rules, lease(VALID))
}

fn sent(actions: &[Action]) -> Vec<Signal> {
    let signal = |action: &Action| match action {
        Action::Send(signal) => Some(*signal),
        _ => None,
    };
    actions.iter().filter_map(signal).collect()
}

fn told(actions: &[Action]) -> Vec<Notice> {
    let notice = |action: &Action| match action {
        Action::Tell(notice) => Some(notice.clone()),
        _ => None,
    };
    actions.iter().filter_map(notice).collect()
}

fn press(signal: Signal, from_terminal: bool) -> Arrived {
    Arrived {
        signal,
        from_terminal,
    }
}

fn is_lost(outcome: &Outcome, expected_in_time: bool) -> bool {
    matches!(outcome, Outcome::Lost { in_time, .. } if *in_time == expected_in_time)
}

const TERM_THEN_CONT: [Signal; 2] = [Signal::TERM, Signal::CONT];

#[test]
fn nothing_happens_while_the_lease_is_fresh() {
    let mut job = job(rules());
    assert!(job.tick(at(19_699)).is_empty());
    assert_eq!(job.wake_at(), at(19_700));
}

#[test]
fn term_comes_at_the_end_of_the_lease_minus_grace_and_kill_before_the_end() {
    let mut job = job(rules());
    assert_eq!(sent(&job.tick(at(19_700))), TERM_THEN_CONT);
    assert_eq!(job.wake_at(), at(VALID - 50));
    assert_eq!(sent(&job.tick(at(VALID - 51))), []);
    assert_eq!(sent(&job.tick(at(VALID - 50))), [Signal::KILL]);
    let outcome = job.outcome(at(VALID - 10), Status::Signalled(9));
    assert!(is_lost(&outcome, true));
}

#[test]
fn renewals_push_term_away() {
    let mut job = job(rules());
    for second in [10, 20, 30, 40] {
        let actions = job.lease_changed(at(second * 1000), lease(second * 1000 + VALID));
        assert_eq!(sent(&actions), []);
    }
    assert_eq!(job.wake_at(), at(40_000 + 19_700));
    let outcome = job.outcome(at(41_000), Status::Exited(0));
    assert!(matches!(outcome, Outcome::Ended(Status::Exited(0))));
}

#[test]
fn a_renewal_between_term_and_kill_moves_the_kill_once_and_does_not_cancel() {
    let mut job = job(rules());
    job.tick(at(19_700));
    assert_eq!(sent(&job.lease_changed(at(25_000), lease(54_700))), []);
    assert_eq!(sent(&job.tick(at(VALID))), []);
    // Further renewals do not let a job that ignores TERM live for ever.
    job.lease_changed(at(35_000), lease(64_700));
    assert_eq!(sent(&job.tick(at(54_699))), []);
    assert_eq!(sent(&job.tick(at(54_700))), [Signal::KILL]);
    assert!(is_lost(&job.outcome(at(54_710), Status::Exited(0)), true));
}

#[test]
fn told_by_the_store_term_is_at_once_and_kill_two_seconds_later() {
    let mut job = job(rules());
    let cause = LossCause::ToldByStore("forced".into());
    let actions = job.lease_changed(at(5_000), lost(cause.clone()));
    assert_eq!(told(&actions), [Notice::Lost(cause)]);
    assert_eq!(sent(&actions), TERM_THEN_CONT);
    assert!(actions.contains(&Action::SetGuard(at(7_020))));
    assert_eq!(sent(&job.tick(at(6_999))), []);
    assert_eq!(sent(&job.tick(at(7_000))), [Signal::KILL]);
    let outcome = job.outcome(at(7_001), Status::Signalled(9));
    // Somebody else may have held it since the store gave it away.
    assert!(is_lost(&outcome, false));
}

#[test]
fn a_shorter_grace_counts_when_told() {
    let mut job = job(Rules {
        grace: Duration::from_millis(500),
        ..rules()
    });
    job.lease_changed(at(5_000), lost(LossCause::ToldByStore("forced".into())));
    assert_eq!(sent(&job.tick(at(5_500))), [Signal::KILL]);
}

#[test]
fn after_a_pause_past_the_end_kill_comes_without_grace() {
    let mut job = job(rules());
    let actions = job.tick(at(60_000));
    assert_eq!(sent(&actions), [Signal::KILL]);
    assert_eq!(told(&actions), [Notice::Lost(LossCause::Expired)]);
    assert!(!job.may_go_on());
}

#[test]
fn lost_is_final() {
    let mut job = job(rules());
    job.tick(at(60_000));
    job.lease_changed(at(60_001), lease(90_000));
    assert!(is_lost(&job.outcome(at(60_002), Status::Exited(0)), false));
}

#[test]
fn kill_is_repeated_until_nobody_is_left() {
    let mut job = job(rules());
    job.tick(at(60_000));
    assert_eq!(job.wake_at(), at(60_100));
    assert_eq!(sent(&job.tick(at(60_100))), [Signal::KILL]);
}

#[test]
fn a_job_that_was_killed_while_we_were_stopped_counts_as_lost() {
    let mut job = job(rules());
    assert!(is_lost(
        &job.outcome(at(60_000), Status::Signalled(9)),
        false
    ));
}

#[test]
fn a_job_that_the_guard_killed_counts_as_lost_even_if_the_clock_says_not_yet() {
    let mut job = job(rules());
    job.killed_by_guard(at(VALID - 29));
    assert!(is_lost(
        &job.outcome(at(VALID - 28), Status::Signalled(9)),
        true
    ));
}

#[test]
fn a_job_that_the_guard_saw_gone_in_time_was_gone_in_time_however_late_we_hear_of_it() {
    let mut job = job(rules());
    job.killed_by_guard(at(60_000));
    job.gone_by_guard(at(VALID - 29));
    assert!(is_lost(
        &job.outcome(at(60_001), Status::Signalled(9)),
        true
    ));
}

#[test]
fn a_job_that_obeys_term_is_still_a_lost_lease() {
    let mut job = job(rules());
    job.tick(at(19_700));
    assert!(is_lost(&job.outcome(at(19_900), Status::Exited(0)), true));
}

#[test]
fn hold_at_most_ends_with_term_grace_kill_and_its_own_outcome() {
    let mut job = job(Rules {
        hold_until: at(5_000),
        ..rules()
    });
    assert_eq!(job.wake_at(), at(5_000));
    let actions = job.tick(at(5_000));
    assert_eq!(told(&actions), [Notice::HoldAtMost]);
    assert_eq!(sent(&actions), TERM_THEN_CONT);
    assert_eq!(sent(&job.tick(at(14_999))), []);
    assert_eq!(sent(&job.tick(at(15_000))), [Signal::KILL]);
    let outcome = job.outcome(at(15_001), Status::Signalled(9));
    assert!(matches!(outcome, Outcome::HoldAtMost(Status::Signalled(9))));
}

#[test]
fn the_lease_overtakes_a_stop_that_takes_its_time() {
    let mut job = job(Rules {
        hold_until: at(19_000),
        ..rules()
    });
    job.tick(at(19_000));
    job.tick(at(19_700));
    assert_eq!(sent(&job.tick(at(29_000))), [Signal::KILL]);
    assert!(is_lost(&job.outcome(at(29_001), Status::Exited(0)), true));
}

#[test]
fn on_lost_warn_only_warns_and_never_arms_the_guard() {
    let mut job = job(Rules {
        on_lost: OnLost::Warn,
        ..rules()
    });
    assert_eq!(job.guard_deadline(), Boottime::NEVER);
    let risk = job.tick(at(19_700));
    assert_eq!(sent(&risk), []);
    assert_eq!(told(&risk).len(), 1);
    let over = job.tick(at(VALID));
    assert_eq!(over, [Action::Tell(Notice::Lost(LossCause::Expired))]);
    assert_eq!(job.wake_at(), Boottime::NEVER);
    assert!(job.may_go_on());
    assert!(is_lost(&job.outcome(at(50_000), Status::Exited(0)), false));
}

#[test]
fn on_lost_signal_sends_it_once_and_lets_the_job_go_on() {
    let mut job = job(Rules {
        on_lost: OnLost::Signal(Signal::USR1),
        ..rules()
    });
    assert_eq!(sent(&job.tick(at(19_700))), [Signal::USR1]);
    assert_eq!(sent(&job.tick(at(19_800))), []);
    assert_eq!(sent(&job.tick(at(VALID))), []);
}

#[test]
fn hearing_the_same_status_again_is_no_renewal() {
    let mut job = job(Rules {
        on_lost: OnLost::Signal(Signal::USR1),
        ..rules()
    });
    let first = job.lease_changed(at(19_700), lease(VALID));
    assert_eq!(sent(&first), [Signal::USR1]);
    assert_eq!(job.lease_changed(at(19_800), lease(VALID)), []);
}

#[test]
fn a_job_that_was_only_warned_and_then_renewed_has_not_lost() {
    let mut job = job(Rules {
        on_lost: OnLost::Warn,
        ..rules()
    });
    job.tick(at(19_700));
    job.lease_changed(at(25_000), lease(54_700));
    let outcome = job.outcome(at(26_000), Status::Exited(3));
    assert!(matches!(outcome, Outcome::Ended(Status::Exited(3))));
    // And it is warned again next time.
    assert_eq!(job.wake_at(), at(44_700));
}

#[test]
fn the_guard_hears_of_every_renewal_and_acts_a_little_later_than_we_do() {
    let mut job = job(rules());
    assert_eq!(job.guard_deadline(), at(VALID - 30));
    let actions = job.lease_changed(at(10_000), lease(39_700));
    assert_eq!(actions, [Action::SetGuard(at(39_670))]);
}

#[test]
fn signals_are_passed_on() {
    let mut job = job(rules());
    for signal in [Signal::USR1, Signal::USR2, Signal::QUIT] {
        assert_eq!(sent(&job.signal(at(1), press(signal, false))), [signal]);
    }
}

#[test]
fn signals_that_end_a_job_reach_it_even_if_it_is_stopped() {
    let mut job = job(rules());
    for signal in [Signal::HUP, Signal::TERM] {
        let actions = job.signal(at(1), press(signal, false));
        assert_eq!(sent(&actions), [signal, Signal::CONT]);
    }
}

#[test]
fn a_key_is_not_doubled_for_a_job_in_our_own_group() {
    let mut job = job(Rules {
        shares_group: true,
        ..rules()
    });
    assert_eq!(sent(&job.signal(at(1), press(Signal::INT, true))), []);
    let by_hand = job.signal(at(5_000), press(Signal::INT, false));
    assert_eq!(sent(&by_hand), [Signal::INT]);
}

#[test]
fn the_second_press_warns_and_the_third_kills() {
    let mut job = job(rules());
    let mut press = |millis, signal| job.signal(at(millis), press(signal, false));
    assert_eq!(sent(&press(0, Signal::INT)), [Signal::INT]);
    let second = press(1_500, Signal::TERM);
    assert_eq!(sent(&second), TERM_THEN_CONT);
    assert_eq!(told(&second), [Notice::AgainToKill]);
    assert_eq!(sent(&press(3_000, Signal::INT)), [Signal::KILL]);
}

#[test]
fn presses_far_apart_do_not_add_up() {
    let mut job = job(rules());
    for millis in [0, 2_500, 5_000, 7_500] {
        let actions = job.signal(at(millis), press(Signal::INT, false));
        assert_eq!(sent(&actions), [Signal::INT]);
        assert_eq!(told(&actions), []);
    }
}

#[test]
fn a_job_without_a_guard_is_ended() {
    let mut job = job(rules());
    assert_eq!(sent(&job.unguarded(at(1_000))), TERM_THEN_CONT);
    assert_eq!(sent(&job.tick(at(11_000))), [Signal::KILL]);
    let outcome = job.outcome(at(11_001), Status::Signalled(9));
    assert!(matches!(outcome, Outcome::Unguarded(_)));
}

#[test]
fn orphans_get_term_grace_and_kill_and_do_not_change_the_outcome() {
    let mut job = job(rules());
    assert_eq!(sent(&job.end_orphans(at(1_000))), TERM_THEN_CONT);
    assert_eq!(sent(&job.tick(at(11_000))), [Signal::KILL]);
    let outcome = job.outcome(at(11_001), Status::Exited(4));
    assert!(matches!(outcome, Outcome::Ended(Status::Exited(4))));
}

#[test]
fn a_lease_that_is_over_starts_nothing() {
    assert_eq!(job(rules()).too_late_to_start(at(VALID - 1)), None);
    let late = job(rules()).too_late_to_start(at(VALID));
    assert_eq!(late, Some(LossCause::Expired));
}
