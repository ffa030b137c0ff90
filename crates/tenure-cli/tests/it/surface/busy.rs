//! A lock that somebody else holds, and no wish to wait.

use super::world::{World, user};

#[test]
fn busy_is_75_and_says_who_since_when_from_where() {
    let world = World::new();
    let holder = world.hold("nightly", &["--label", "release 7"]);
    let done = world
        .run(&["run", "nightly", "--no-wait", "true"])
        .exits(75);
    let pid = holder.pid().as_raw_nonzero().to_string();
    let lease = world.json(&["show", "nightly", "--json"])["holders"][0]["lease"].clone();
    done.says("error[T0302]: \"nightly\" is busy (exit 75)")
        .says(&format!("held by   release 7 ({}@", user()))
        .says(&format!("pid {pid}"))
        .says(", since ")
        .says("--wait 10m")
        .says("tenure show nightly")
        .says(&format!(
            "tenure force-release nightly --lease {} --reason …",
            lease.as_str().expect("text")
        ));
}

#[test]
fn a_wait_of_zero_is_no_wait() {
    let world = World::new();
    let _holder = world.hold("x", &[]);
    for wait in ["0", "0s", "0ms"] {
        world
            .run(&["run", "x", "--wait", wait, "true"])
            .exits(75)
            .says("T0302");
    }
}

#[test]
fn a_wait_that_runs_out_is_busy_too() {
    let world = World::new();
    let _holder = world.hold("x", &[]);
    world
        .run(&["run", "x", "--wait", "200ms", "true"])
        .exits(75)
        .says("T0302")
        .says("held by");
    assert_eq!(
        world.json(&["show", "x", "--json"])["waiters"],
        serde_json::json!([])
    );
}

#[test]
fn skipping_is_success_with_one_line_or_none() {
    let world = World::new();
    let _holder = world.hold("x", &[]);
    let done = world
        .run(&["run", "x", "--no-wait", "--if-busy", "skip", "true"])
        .exits(0);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    world
        .run(&["run", "x", "--no-wait", "--if-busy", "skip", "-q", "true"])
        .exits(0)
        .silently();
}

#[test]
fn the_exit_code_for_busy_can_be_chosen() {
    let world = World::new();
    let _holder = world.hold("x", &[]);
    world
        .run(&["run", "x", "--no-wait", "--exit-busy", "9", "true"])
        .exits(9)
        .says("(exit 9)");
}

#[test]
fn readers_share_and_slots_are_counted() {
    let world = World::new();
    let _reader = world.hold("doc", &["--shared"]);
    world
        .run(&["run", "doc", "--shared", "--no-wait", "true"])
        .exits(0);
    world.run(&["run", "doc", "--no-wait", "true"]).exits(75);
    let _slot = world.hold("gpu", &["--slots", "2"]);
    world
        .run(&["run", "gpu", "--slots", "2", "--no-wait", "true"])
        .exits(0);
}
