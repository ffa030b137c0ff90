//! `run --once-per`: who is let run, what counts, and what the others are told.

use std::fs;

use super::world::{Running, World};
use crate::support::wait::eventually;

/// Sliding, so that no test fails at midnight.
const DAILY: [&str; 5] = ["run", "job", "--once-per", "1d", "--sliding"];

fn daily<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&DAILY, more].concat()
}

/// Starts a run that goes on until it is ended; returns once its command runs.
fn running(world: &World, options: &[&str]) -> Running {
    let mark = world.path("mark");
    let _ = fs::remove_file(&mark);
    let script = format!("touch '{}'; exec sleep 300", mark.display());
    let running = world.start(&daily(&[options, &["-c", &script]].concat()));
    eventually("the command runs", || mark.exists().then_some(()));
    running
}

#[test]
fn whoever_comes_second_is_told_who_ran_it_when_and_how() {
    let world = World::new();
    let first = world.run(&daily(&["--owner", "ann", "echo", "hi"]));
    assert_eq!(first.exits(0).silently().stdout, "hi\n");
    let second = world.run(&daily(&["echo", "hi"]));
    assert_eq!(second.stdout, "");
    second
        .exits(75)
        .says("error[T0306]: \"job\" was already run in this period (exit 75)")
        .says("run by    ann pid ")
        .says(", started ")
        .says("succeeded")
        .says("for another 23h59m")
        .says("tenure force-release '~once:job' --lease ");
    let shown = world.run(&["show", "job"]).exits(0).stdout;
    assert!(shown.starts_with("job  free\n  counted   "), "{shown}");
    assert!(
        shown.contains("ann pid ") && shown.contains("for another 23h59m"),
        "{shown}"
    );
    world.run(&daily(&["--exit-busy", "9", "true"])).exits(9);
    let skipped = world.run(&daily(&["--if-busy", "skip", "true"]));
    skipped.exits(0).says("in this period, skipped (run by ann");
    world
        .run(&daily(&["--if-busy", "skip", "-q", "true"]))
        .exits(0)
        .silently();
    // The lock itself is free.
    world.run(&["run", "job", "--no-wait", "true"]).exits(0);
    world
        .run(&["run", "job", "--once-per", "1000d", "true"])
        .exits(64)
        .says("a period of 1000d");
}

#[test]
fn a_run_that_is_made_to_count_no_more_is_not_described_as_a_crash() {
    let world = World::new();
    world.run(&daily(&["--owner", "ann", "true"])).exits(0);
    let take = |id: &str| {
        let line = ["force-release", "~once:job", "--lease", id, "--reason", "x"];
        world.run(&line)
    };
    let wrong = take("00000000")
        .exits(79)
        .says("a record: ok after ")
        .says("ann pid ");
    assert!(!wrong.stderr.contains("crash"), "{}", wrong.stderr);
    let shown = world.json(&["show", "~once:job", "--json"]);
    let id = shown["holders"][0]["lease"].as_str().expect("an id");
    let done = take(id).exits(0).says("counts no more: ok after ");
    assert!(!done.stderr.contains("stopped"), "{}", done.stderr);
    world.run(&daily(&["true"])).exits(0);
}

#[test]
fn a_failure_does_not_count_unless_starts_do() {
    let world = World::new();
    world.run(&daily(&["-c", "exit 3"])).exits(3);
    world
        .run(&daily(&["--count", "start", "-c", "exit 4"]))
        .exits(4);
    world
        .run(&daily(&["true"]))
        .exits(75)
        .says("failed: exit code 4");
}

#[test]
fn a_run_that_is_killed_in_the_middle_counts_only_if_starts_do() {
    let world = World::new();
    // Dropped means killed.
    drop(running(&world, &[]));
    drop(running(&world, &["--count", "start"]));
    world
        .run(&daily(&["true"]))
        .exits(75)
        .says("has not said how it ended");
}

#[test]
fn whoever_waits_for_a_run_that_succeeds_skips_and_never_two_run_at_once() {
    let world = World::new();
    let (go, log) = (world.path("go"), world.path("log"));
    let script = format!(
        "echo run >> '{}'; until [ -e '{}' ]; do sleep 0.02; done",
        log.display(),
        go.display()
    );
    let first = world.start(&daily(&["-c", &script]));
    eventually("it runs", || log.exists().then_some(()));
    let second = world.start(&daily(&["-c", &script]));
    world.until_waiting("job", 1);
    world
        .run(&daily(&["--no-wait", "-c", &script]))
        .exits(75)
        .says("error[T0302]: \"job\" is busy");
    world.write("go", "");
    first.finish().exits(0);
    second.finish().exits(75).says("succeeded");
    assert_eq!(fs::read_to_string(log).expect("a log"), "run\n");
}

#[test]
fn what_was_counted_is_not_listed_as_a_lock_that_is_held() {
    let world = World::new();
    world.run(&daily(&["true"])).exits(0);
    let listed = |arguments: &[&str]| {
        let listed = world.json(&[&["ls", "--json"], arguments].concat());
        listed.as_array().expect("an array").len()
    };
    assert_eq!(
        (listed(&[]), listed(&["--all"]), listed(&["~once:"])),
        (0, 1, 1)
    );
}

#[test]
fn the_record_is_shown_as_a_run_and_not_as_a_lock_that_is_held() {
    let world = World::new();
    let show = || world.run(&["show", "~once:job"]).exits(0).stdout;
    assert_eq!(show(), "~once:job  no run of job is counted\n");
    world.run(&daily(&["--owner", "ann", "true"])).exits(0);
    let shown = show();
    let first = "~once:job  stands for a run of job\n  counted   ok after ";
    assert!(shown.starts_with(first), "{shown}");
    assert!(
        shown.contains("(ann pid ") && shown.contains("lease id ") && !shown.contains("held"),
        "{shown}"
    );
}

#[test]
fn force_release_of_the_record_lets_it_run_again() {
    let world = World::new();
    world.run(&daily(&["true"])).exits(0);
    let shown = world.json(&["show", "~once:job", "--json"]);
    let holder = &shown["holders"][0];
    let label = holder["label"].as_str().expect("a label");
    assert!(label.starts_with("ok after 0."), "{label}");
    let lease = holder["lease"].as_str().expect("a lease");
    let force = [
        "force-release",
        "~once:job",
        "--lease",
        lease,
        "--reason",
        "again",
    ];
    world.run(&force).exits(0);
    world.run(&daily(&["true"])).exits(0);
}

#[test]
fn an_aligned_period_is_the_same_for_all_who_start_in_it() {
    let world = World::new();
    let yearly = ["run", "job", "--once-per", "366d", "--offset", "2d", "true"];
    world.run(&yearly).exits(0);
    world.run(&yearly).exits(75).says("counts    for another ");
}

#[test]
fn scripts_are_told_too() {
    let world = World::new();
    world.run(&daily(&["true"])).exits(0);
    let events = world.path("events");
    let json = format!("--json={}", events.display());
    world.run(&daily(&[&json, "true"])).exits(75);
    let events = fs::read_to_string(events).expect("events");
    let last = events.lines().last().expect("a last line");
    assert!(last.contains(r#""outcome":"counted""#), "{last}");
    assert!(last.contains(r#""exit_code":75"#), "{last}");
}

#[test]
fn what_makes_no_sense_together_is_refused() {
    let world = World::new();
    for options in [
        ["--once-per", "1d", "--shared", "-q"].as_slice(),
        &["--once-per", "1d", "--hold-at-least", "1h"],
        &["--once-per", "1d", "--sliding", "--offset", "1h"],
        &["--once-per", "0s"],
        &["--once-per", "400d"],
        &["--sliding"],
        &["--count", "start"],
    ] {
        let line = [&["run", "job"], options, &["true"]].concat();
        world.run(&line).exits(64);
    }
}
