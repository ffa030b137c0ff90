//! `acquire`, `renew`, `release`, `check`: leases for scripts.

use super::world::World;

fn acquire(world: &World, name: &str) -> String {
    let done = world
        .run(&["acquire", name, "--ttl", "10m"])
        .exits(0)
        .silently();
    done.stdout.trim().to_owned()
}

#[test]
fn a_lease_outlives_the_process_that_took_it() {
    let world = World::new();
    let lease = acquire(&world, "x");
    world.run(&["run", "x", "--no-wait", "true"]).exits(75);
    world
        .run(&["check", "x", "--lease", &lease])
        .exits(0)
        .silently();
    world
        .run(&["release", "x", "--lease", &lease])
        .exits(0)
        .silently();
    world.run(&["run", "x", "--no-wait", "true"]).exits(0);
}

#[test]
fn acquire_prints_lease_fence_and_times_as_json() {
    let world = World::new();
    let shown = world.json(&["acquire", "x", "--ttl", "90s", "--json"]);
    let keys: Vec<&str> = shown
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, ["lease", "fence", "ttl_ms", "expires_in_ms"]);
    let lease = shown["lease"].as_str().expect("text");
    assert!(lease.ends_with(&format!("-{}", shown["fence"].as_str().expect("a string"))));
    assert_eq!(shown["ttl_ms"], 90_000);
    assert!(
        shown["expires_in_ms"]
            .as_u64()
            .is_some_and(|left| (60_000..=90_000).contains(&left))
    );
}

#[test]
fn renewing_prolongs_and_never_shortens() {
    let world = World::new();
    let lease = acquire(&world, "x");
    let left = |command: &[&str]| {
        let shown = world.json(&[command, &["x", "--lease", &lease, "--json"]].concat());
        shown["expires_in_ms"].as_u64().expect("a number")
    };
    assert!(left(&["renew", "--ttl", "1h"]) > 3_000_000);
    // No more is promised than was asked for, and nothing is taken away.
    assert!(left(&["renew", "--ttl", "5s"]) <= 5_000);
    assert!(left(&["check"]) > 3_000_000);
}

#[test]
fn a_lease_that_is_gone_is_79() {
    let world = World::new();
    let lease = acquire(&world, "x");
    world.run(&["release", "x", "--lease", &lease]).exits(0);
    world
        .run(&["release", "x", "--lease", &lease])
        .exits(79)
        .says("error[T0303]");
    world
        .run(&["renew", "x", "--lease", &lease])
        .exits(79)
        .says("error[T0303]");
    world
        .run(&["check", "x", "--lease", &lease])
        .exits(79)
        .says("error[T0303]");
}

#[test]
fn a_short_lease_ends_by_itself() {
    let world = World::new();
    let done = world.run(&["acquire", "x", "--ttl", "1s"]).exits(0);
    world.run(&["run", "x", "--wait", "20s", "true"]).exits(0);
    world
        .run(&["check", "x", "--lease", done.stdout.trim()])
        .exits(79);
}

#[test]
fn a_lease_of_another_lock_or_nonsense_is_refused() {
    let world = World::new();
    let lease = acquire(&world, "x");
    world.run(&["release", "y", "--lease", &lease]).exits(79);
    world
        .run(&["release", "x", "--lease", "7f3a"])
        .exits(64)
        .says("a lease looks like");
    world.run(&["release", "x"]).exits(64).says("which lease");
    world.run(&["check"]).exits(64).says("which lock");
}

#[test]
fn acquire_waits_and_reports_busy_as_run_does() {
    let world = World::new();
    let _lease = acquire(&world, "x");
    world
        .run(&["acquire", "x", "--ttl", "1m", "--no-wait"])
        .exits(75)
        .says("T0302");
    world
        .run(&["acquire", "x", "--ttl", "1m", "--wait", "200ms"])
        .exits(75)
        .says("T0302");
}

#[test]
fn force_release_needs_the_id_and_a_reason() {
    let world = World::new();
    let lease = acquire(&world, "x");
    let id = &lease[..8];
    world
        .run(&["force-release", "x", "--reason", "stuck"])
        .exits(64);
    world.run(&["force-release", "x", "--lease", id]).exits(64);
    world
        .run(&["force-release", "x", "--lease", "7f", "--reason", "stuck"])
        .exits(64);
    world
        .run(&["force-release", "x", "--lease", id, "--reason", " "])
        .exits(64);
    let wrong = if id.starts_with("ffff") {
        "0000"
    } else {
        "ffff"
    };
    world
        .run(&["force-release", "x", "--lease", wrong, "--reason", "stuck"])
        .exits(79)
        .says(id);
    world
        .run(&[
            "force-release",
            "x",
            "--lease",
            &id[..4],
            "--reason",
            "stuck",
        ])
        .exits(0)
        .says("not stopped by this");
    world.run(&["check", "x", "--lease", &lease]).exits(79);
    world.run(&["run", "x", "--no-wait", "true"]).exits(0);
}

#[test]
fn a_lease_that_nobody_can_read_is_not_kept() {
    let world = World::new();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let mut command = world.tenure(&["acquire", "x", "--ttl", "10m"]);
    let status = command.stdout(full).status().expect("it runs");
    assert_eq!(status.code(), Some(70));
    world.run(&["run", "x", "--no-wait", "true"]).exits(0);
}
