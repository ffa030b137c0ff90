//! A store that goes away while the command runs, or while it is waited for.

use super::world::{Running, World};
use crate::support::redis_server::RedisServer;
use crate::support::wait::eventually;

/// Starts a run whose job first leaves a mark; returns once it has.
fn started(world: &World, server: &RedisServer, options: &[&str], script: &str) -> Running {
    let mark = world.path("mark");
    let script = format!("touch '{}'; {script}", mark.display());
    let url = server.url();
    let mut arguments = vec!["run", "x", "--store", &url];
    arguments.extend(options);
    arguments.extend(["-c", &script]);
    let running = world.start(&arguments);
    eventually("the job has started", || mark.exists().then_some(()));
    running
}

#[test]
fn a_command_whose_lease_cannot_be_renewed_is_ended() {
    let world = World::new();
    let server = RedisServer::start();
    let run = started(&world, &server, &["--ttl", "6s"], "exec sleep 300");
    server.stop();
    run.finish()
        .exits(79)
        .says("the lease cannot be renewed, trying on")
        .says("lease at risk")
        .says("error[T0303]: the lease of \"x\" was lost (exit 79)")
        .says("was gone before anybody else could get the lock")
        .says("--ttl 24s");
}

#[test]
fn a_command_may_be_left_alone_and_the_exit_code_be_chosen() {
    let world = World::new();
    let server = RedisServer::start();
    let options = ["--ttl", "1s", "--on-lost", "warn", "--exit-lost", "9"];
    let run = started(&world, &server, &options, "sleep 3; echo survived");
    server.stop();
    let done = run.finish().exits(9).says("the job goes on");
    assert_eq!(done.stdout, "survived\n");
}

#[test]
fn a_command_may_be_told_by_a_signal() {
    let world = World::new();
    let server = RedisServer::start();
    let options = ["--ttl", "1s", "--on-lost", "signal:USR1"];
    let script = "trap 'echo told' USR1; for i in 1 2 3 4; do sleep 1; done";
    let run = started(&world, &server, &options, script);
    server.stop();
    let done = run.finish().exits(79);
    assert!(done.stdout.starts_with("told\n"), "{}", done.stdout);
}

#[test]
fn a_release_that_fails_is_a_warning_and_the_result_is_the_commands() {
    let world = World::new();
    let mut server = RedisServer::start();
    let go = world.path("go");
    let script = format!(
        "until [ -e '{}' ]; do sleep 0.02; done; exit 3",
        go.display()
    );
    let run = started(&world, &server, &[], &script);
    server.kill();
    world.write("go", "");
    run.finish()
        .exits(3)
        .says("could not give the lock back")
        .says("ends by itself within 30s");
}

#[test]
fn a_wait_ends_on_time_while_the_store_hangs_and_is_not_busy() {
    let world = World::new();
    let server = RedisServer::start();
    let url = server.url();
    let _holder = world.hold("x", &["--store", &url]);
    let waiter = world.start(&["run", "x", "-q", "--wait", "9s", "--store", &url, "true"]);
    world.until_waiting_in(&["--store", &url], "x", 1);
    server.stop();
    waiter.finish().exits(69).says("error[T0101]");
    server.resume();
}
