//! What becomes of the lock when its holder dies or stops, on both stores.

use std::fs;

use rustix::process::Signal;

use super::world::{Running, World, text_of};
use crate::support::redis_server::RedisServer;
use crate::support::wait::eventually;

/// A holder whose job writes to a file for as long as it lives.
fn writing_holder(world: &World, options: &[&str]) -> Running {
    let file = world.path("written");
    let script = format!(
        "while :; do echo first >> '{}'; sleep 0.02; done",
        file.display()
    );
    let mut arguments = vec!["run", "x"];
    arguments.extend(options);
    arguments.extend(["-c", &script]);
    let holder = world.start(&arguments);
    eventually("the first job writes", || {
        (!text_of(&file).is_empty()).then_some(())
    });
    holder
}

/// A waiter whose job writes one line and then sees for a while whether anybody else writes.
fn checking_waiter(world: &World, options: &[&str]) -> Running {
    let file = world.path("written");
    let script = format!(
        "echo second >> '{}'; sleep 0.3; tail -n 1 '{0}'",
        file.display()
    );
    let mut arguments = vec!["run", "x"];
    arguments.extend(options);
    arguments.extend(["-q", "-c", &script]);
    world.start(&arguments)
}

#[test]
fn on_sqlite_a_killed_holder_is_succeeded_at_once() {
    let world = World::new();
    // Long enough to fail the test if anybody waited for it.
    let holder = writing_holder(&world, &["--ttl", "10m"]);
    let waiter = checking_waiter(&world, &[]);
    world.until_waiting("x", 1);
    holder.signal(Signal::KILL);
    let done = waiter.finish().exits(0);
    assert_eq!(done.stdout, "second\n", "the first job was still writing");
}

#[test]
fn on_redis_a_killed_holder_is_succeeded_after_its_ttl() {
    let server = RedisServer::start();
    let world = World::new();
    let url = server.url();
    let holder = writing_holder(&world, &["--ttl", "2s", "--store", &url]);
    let waiter = checking_waiter(&world, &["--store", &url]);
    holder.signal(Signal::KILL);
    let done = waiter.finish().exits(0);
    assert_eq!(done.stdout, "second\n", "the first job was still writing");
}

#[test]
fn a_stopped_holder_loses_its_job_before_the_next_one_starts() {
    let server = RedisServer::start();
    for options in [[].as_slice(), &["--store", &server.url()]] {
        let world = World::new();
        let mut holding = vec!["--ttl", "2s"];
        holding.extend(options);
        let holder = writing_holder(&world, &holding);
        let waiter = checking_waiter(&world, options);
        holder.signal(Signal::STOP);
        let done = waiter.finish().exits(0);
        assert_eq!(done.stdout, "second\n", "the first job was still writing");
        holder.signal(Signal::CONT);
        holder.finish().exits(79).says("error[T0303]");
    }
}

#[test]
fn a_forced_release_ends_the_job_and_says_who_and_why() {
    let world = World::new();
    let holder = world.hold("x", &["--ttl", "2s"]);
    let shown = world.json(&["show", "x", "--json"]);
    let lease = shown["holders"][0]["lease"]
        .as_str()
        .expect("text")
        .to_owned();
    world
        .run(&[
            "force-release",
            "x",
            "--lease",
            &lease,
            "--reason",
            "stuck since noon",
        ])
        .exits(0);
    holder.finish().exits(79).says("stuck since noon");
}

#[test]
fn a_waiter_sits_out_a_restart_of_the_store() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let world = World::new();
    let url = format!("{}&replicas=none", server.url());
    let holder = world.hold("x", &["--store", &url]);
    let waiter = world.start(&["run", "x", "-q", "--store", &url, "echo", "mine"]);
    world.until_waiting_in(&["--store", &url], "x", 1);
    server.restart();
    holder.end();
    let done = waiter.finish().exits(0).silently();
    assert_eq!(done.stdout, "mine\n");
    assert!(
        !fs::exists(world.path("state/tenure")).expect("a folder"),
        "only Redis was used"
    );
}

#[test]
fn a_command_survives_a_short_outage_of_the_store() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let world = World::new();
    let url = format!("{}&replicas=none", server.url());
    let holder = world.start(&["run", "x", "--ttl", "6s", "--store", &url, "sleep", "4"]);
    eventually("it is held", || {
        let shown = world.json(&["show", "x", "--store", &url, "--json"]);
        (shown["holders"].as_array().map(Vec::len) == Some(1)).then_some(())
    });
    server.restart();
    holder.finish().exits(0);
}
