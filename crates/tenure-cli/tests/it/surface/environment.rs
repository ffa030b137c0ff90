//! What the command finds in its environment, and what a run inside a run does.

use std::collections::BTreeMap;

use super::world::{Done, World};
use crate::support::redis_server::RedisServer;

fn variables(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .collect()
}

#[test]
fn the_command_knows_its_lock() {
    let world = World::new();
    let done = world
        .run(&["run", "a,b", "--ttl", "7s", "--owner", "ci", "env"])
        .exits(0);
    let found = variables(&done.stdout);
    assert_eq!(found["TENURE_LOCK"], "a,b");
    assert_eq!(found["TENURE_HELD"], "a%2Cb");
    assert_eq!(found["TENURE_TTL_MS"], "7000");
    assert_eq!(found["TENURE_OWNER"], "ci");
    assert!(found["TENURE_FENCE"].parse::<u64>().is_ok());
    assert!(found["TENURE_PARENT_PID"].parse::<u32>().is_ok());
    assert!(!found["TENURE_STORE_FINGERPRINT"].is_empty());
    let (owner, fence) = found["TENURE_LEASE"].split_once('-').expect("owner-fence");
    assert_eq!((owner.len(), fence), (32, found["TENURE_FENCE"]));
}

/// A server, and a URL of it with a password in it.
fn with_password() -> (RedisServer, String) {
    let server = RedisServer::start_with(&["--requirepass", "correct-horse"]);
    let url = format!("redis://:correct-horse@{}?recovery=open", server.address());
    (server, url)
}

#[test]
fn the_store_is_passed_on_but_no_password_unless_asked_for() {
    let world = World::new();
    let with = |url: &str, options: &[&str]| {
        let line = [&["run", "x"], options, &["env"]].concat();
        let done = Done::of(world.tenure(&line).env("TENURE_STORE", url)).exits(0);
        variables(&done.stdout)
            .get("TENURE_STORE")
            .map(|url| (*url).to_owned())
    };
    let plain = format!("sqlite:{}", world.path("state/own.db").display());
    assert_eq!(with(&plain, &[]), Some(plain.clone()));
    let (_server, secret) = with_password();
    assert_eq!(with(&secret, &[]), None);
    assert_eq!(with(&secret, &["--pass-store"]), Some(secret.clone()));
}

#[test]
fn a_file_that_was_named_from_here_is_the_same_elsewhere() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let script = format!("cd / && {tenure} check && {tenure} show x");
    let done = world
        .run(&["run", "x", "--store", "sqlite:own.db", "-c", &script])
        .exits(0);
    assert!(done.stdout.contains("held by"), "{}", done.stdout);
    assert!(world.path("work/own.db").exists());
}

#[test]
fn whoever_looks_inside_a_run_sees_its_store_or_is_told_which_is_asked() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let inside = |url: &str, command: &[&str]| {
        let line = [&["run", "x", "--store", url, "--", tenure], command].concat();
        world.run(&line).exits(0)
    };
    let plain = format!("sqlite:{}", world.path("state/own.db").display());
    let (_server, secret) = with_password();
    for command in [["ls", "x"].as_slice(), &["show", "x"]] {
        let done = inside(&plain, command).silently();
        assert!(done.stdout.contains("exclusive"), "{}", done.stdout);
        inside(&secret, command)
            .says("the default; the lock of the `tenure run` around this is in another store");
    }
}

#[test]
fn a_run_inside_a_run_on_the_same_name_is_refused() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let done = world
        .run(&["run", "x", "--", tenure, "run", "x", "true"])
        .exits(64);
    done.says("error[T0203]")
        .says("would wait for itself")
        .says("--inherit")
        .says("pid ");
    world
        .run(&["run", "x", "--", tenure, "run", "y", "true"])
        .exits(0);
}

#[test]
fn a_run_inside_a_run_can_inherit_the_lock() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let line = [
        "run",
        "x",
        "--",
        tenure,
        "run",
        "x",
        "--inherit",
        "-c",
        "echo $TENURE_LOCK; exit 4",
    ];
    let done = world.run(&line).exits(4);
    assert_eq!(done.stdout, "x\n");
    // Wherever the store was named.
    let url = format!("sqlite:{}", world.path("state/own.db").display());
    let done = world
        .run(&[&["--store", &url], &line[..]].concat())
        .exits(4);
    assert_eq!(done.stdout, "x\n");
}

#[test]
fn inheriting_from_nobody_takes_the_lock() {
    let world = World::new();
    let _holder = world.hold("x", &[]);
    world
        .run(&["run", "x", "--inherit", "--no-wait", "true"])
        .exits(75);
}

#[test]
fn inside_a_run_check_needs_no_arguments() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    world
        .run(&["run", "x", "--", tenure, "check", "--at-least", "1s"])
        .exits(0)
        .silently();
    world
        .run(&["run", "x", "--", tenure, "check", "--at-least", "1h"])
        .exits(79);
}

#[test]
fn inside_a_run_the_default_store_is_not_a_guess_for_the_parents() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let (_server, url) = with_password();
    let inner: [&[&str]; 2] = [
        &["run", "y", "-q", "true"],
        &["acquire", "y", "--ttl", "9s"],
    ];
    for inner in inner {
        let outer = |options: &[&str], store: &[&str]| {
            let line = [
                &["run", "x", "--store", &url],
                options,
                &["--", tenure],
                inner,
                store,
            ];
            world.run(&line.concat())
        };
        outer(&[], &[]).exits(64).says("--pass-store");
        outer(&["--pass-store"], &[]).exits(0);
    }
    let chosen = [
        "run", "x", "--store", &url, "--", tenure, "--store", "sqlite:",
    ];
    world
        .run(&[&chosen[..], &["run", "y", "true"]].concat())
        .exits(0);
}

#[test]
fn inside_a_run_release_wants_to_know_which_lease() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let done = world.run(&["run", "x", "--", tenure, "release"]).exits(64);
    done.says("is held by `tenure run`");
    let script = format!("{tenure} release x --lease $({tenure} acquire x2 --ttl 9s)");
    world.run(&["run", "x", "-c", &script]).exits(79);
    let script = format!("{tenure} release y --lease $({tenure} acquire y --ttl 9s)");
    world.run(&["run", "x", "-c", &script]).exits(0).silently();
}

#[test]
fn check_never_answers_from_another_store() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let (_server, url) = with_password();
    let check = [
        "run", "x", "--store", &url, "--", tenure, "check", "--store", "sqlite:",
    ];
    for check in [&check[..7], &check] {
        world
            .run(check)
            .exits(64)
            .says("is not the store that the parent's lock is in");
    }
}
