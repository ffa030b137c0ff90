//! `tenure elect`: one leader, standbys, and leading again after a loss.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::world::{Running, World};
use crate::support::redis_server::RedisServer;
use crate::support::wait::eventually;

/// Starts a candidate whose command writes down its fence and goes on until it is ended.
fn candidate(world: &World, log: &Path, options: &[&str]) -> Running {
    let script = format!("echo $TENURE_FENCE >> '{}'; exec sleep 300", log.display());
    world.start(&[&["elect", "e"], options, &["-c", &script]].concat())
}

/// Waits for this many terms; their fences must grow.
fn until_terms(log: &Path, count: usize) {
    let fences = eventually("another term", || {
        let text = fs::read_to_string(log).unwrap_or_default();
        let fences: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (fences.len() >= count).then_some(fences)
    });
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    assert_eq!(fences.len(), count);
}

#[test]
fn a_standby_leads_when_the_leader_was_killed() {
    let world = World::new();
    let log = world.path("log");
    let leader = candidate(&world, &log, &[]);
    until_terms(&log, 1);
    let standby = candidate(&world, &log, &["--label", "second"]);
    world.until_waiting("e", 1);
    // Killed, and not asked.
    drop(leader);
    until_terms(&log, 2);
    let shown = world.json(&["show", "e", "--json"]);
    assert_eq!(shown["holders"][0]["label"], "second");
    standby.end();
}

#[test]
fn a_command_that_ends_by_itself_ends_the_candidacy_and_the_next_leads() {
    let world = World::new();
    let log = world.path("log");
    world
        .run(&["elect", "e", "-c", "exit 4"])
        .exits(4)
        .silently();
    let leader = candidate(&world, &log, &[]);
    until_terms(&log, 1);
    let next = world.start(&["elect", "e", "echo", "mine"]);
    world.until_waiting("e", 1);
    leader.signal(Signal::TERM);
    leader.finish().exits(143);
    assert_eq!(next.finish().exits(0).stdout, "mine\n");
}

#[test]
fn a_leader_that_loses_its_lease_ends_its_command_and_leads_again_later() {
    let world = World::new();
    let (server, log) = (RedisServer::start(), world.path("log"));
    let events = world.path("events");
    let json = format!("--json={}", events.display());
    let url = server.url();
    let options = ["--ttl", "2s", "--store", &url, &json];
    let leader = candidate(&world, &log, &options);
    until_terms(&log, 1);
    server.stop();
    let standing_by = || {
        let text = fs::read_to_string(&events).unwrap_or_default();
        text.contains(r#""event":"standby""#).then_some(())
    };
    eventually("it has given up", standing_by);
    server.resume();
    until_terms(&log, 2);
    leader.signal(Signal::TERM);
    leader.finish().exits(143).says("standing by");
}

#[test]
fn a_standby_that_is_asked_to_end_does_and_leaves_no_place_behind() {
    let world = World::new();
    let log = world.path("log");
    let leader = candidate(&world, &log, &[]);
    until_terms(&log, 1);
    let standby = candidate(&world, &log, &[]);
    world.until_waiting("e", 1);
    standby.signal(Signal::TERM);
    standby.finish().exits(143);
    world.until_waiting("e", 0);
    leader.end();
}

#[test]
fn a_forgotten_name_is_not_taken_from_the_command() {
    let world = World::new();
    world
        .run(&["elect", "--", "make", "all"])
        .exits(64)
        .says("tenure elect NAME -- make");
}

#[test]
fn the_help_names_no_option_that_there_is_not() {
    let help = World::new().run(&["elect", "--help"]).exits(0).stdout;
    let (options, codes) = help
        .split_once("Exit codes:")
        .expect("a section of its own");
    for code in ["64", "69", "77", "79", "126, 127", "130, 143"] {
        assert!(codes.contains(code), "{code} is missing in {codes}");
    }
    let words = codes.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    for option in words.filter(|word| word.starts_with("--")) {
        assert!(options.contains(option), "{option} is no option of elect");
    }
    assert!(!codes.contains("75") && !codes.contains("124"), "{codes}");
}
