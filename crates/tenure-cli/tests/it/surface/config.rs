//! Which store is used, and how mistakes about it are reported.

use super::world::World;

const NOWHERE: &str = "redis://127.0.0.1:1";

/// The origin that an error about an unreachable store names.
fn origin(world: &World, environment: Option<&str>, arguments: &[&str]) -> String {
    let mut command = world.tenure(arguments);
    if let Some(url) = environment {
        command.env("TENURE_STORE", url);
    }
    let done = super::world::Done::of(&mut command).exits(69);
    let line = done
        .stderr
        .lines()
        .find(|line| line.trim_start().starts_with("from "));
    line.unwrap_or_else(|| panic!("no origin in {}", done.stderr))
        .trim()
        .to_owned()
}

#[test]
fn flag_before_environment_before_files() {
    let world = World::new();
    world.write(
        "config/tenure/config.toml",
        &format!("store = \"{NOWHERE}\"\n"),
    );
    assert!(origin(&world, None, &["ls"]).ends_with("config/tenure/config.toml:1"));
    world.write(
        "work/tenure.toml",
        &format!("# ours\nstore = \"{NOWHERE}\"\n"),
    );
    assert!(origin(&world, None, &["ls"]).ends_with("./tenure.toml:2"));
    assert!(origin(&world, Some(NOWHERE), &["ls"]).ends_with("TENURE_STORE in the environment"));
    let flag = ["ls", "--store", NOWHERE];
    assert!(origin(&world, Some(NOWHERE), &flag).ends_with("--store on the command line"));
}

#[test]
fn a_file_without_a_store_is_passed_over() {
    let world = World::new();
    world.write("work/tenure.toml", "# nothing yet\n");
    world.write(
        "config/tenure/config.toml",
        &format!("store = \"{NOWHERE}\"\n"),
    );
    assert!(origin(&world, None, &["ls"]).ends_with("config.toml:1"));
}

#[test]
fn an_empty_variable_is_refused_because_the_default_is_another_lock_on_each_machine() {
    let world = World::new();
    for empty in ["", " "] {
        for line in [&["ls"][..], &["run", "x", "true"]] {
            let done = super::world::Done::of(world.tenure(line).env("TENURE_STORE", empty));
            done.exits(64)
                .says("error[T0202]: TENURE_STORE is empty")
                .says("unset it for the default");
        }
        // Whoever says it otherwise does not need it.
        let line = ["ls", "--store", "sqlite:locks.db"];
        super::world::Done::of(world.tenure(&line).env("TENURE_STORE", empty)).exits(0);
    }
}

#[test]
fn a_wrong_file_is_reported_with_line_and_column() {
    let world = World::new();
    world.write("work/tenure.toml", "\nstore = redis\n");
    world.run(&["ls"]).exits(78).says("./tenure.toml:2:9: ");
    world.write("work/tenure.toml", "stroe = \"redis://a\"\n");
    world
        .run(&["ls"])
        .exits(78)
        .says("./tenure.toml:1:1: ")
        .says("did you mean 'store'?");
    world.write("work/tenure.toml", "store = \"\"\n");
    world.run(&["ls"]).exits(78).says("store is empty");
}

#[test]
fn an_unknown_scheme_gets_a_suggestion() {
    let world = World::new();
    let done = world
        .run(&["ls", "--store", "reddis://localhost"])
        .exits(64);
    assert!(
        done.stderr.contains("reddis") && done.stderr.contains("redis"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("did you mean"), "{}", done.stderr);
    world.write("work/tenure.toml", "store = \"reddis://localhost\"\n");
    world.run(&["ls"]).exits(78).says("./tenure.toml:1");
}

#[test]
fn an_unreachable_store_is_69_and_says_what_to_do() {
    let done = World::new()
        .run(&["run", "x", "--store", NOWHERE, "true"])
        .exits(69);
    done.says("error[T0101]")
        .says(NOWHERE)
        .says("tenure doctor --store");
}

#[test]
fn a_password_never_shows() {
    let world = World::new();
    let url = "redis://app:hunter22@127.0.0.1:1/0";
    let lines: [&[&str]; 4] = [
        &["ls", "--store", url],
        &["doctor", "--store", url],
        &["run", "x", "-v", "--store", url, "true"],
        &["ls", "--store", "reddis://app:hunter22@127.0.0.1:1/0"],
    ];
    for line in lines {
        let done = world.run(line);
        assert!(
            !done.stderr.contains("hunter22"),
            "{line:?}: {}",
            done.stderr
        );
        assert!(
            !done.stdout.contains("hunter22"),
            "{line:?}: {}",
            done.stdout
        );
    }
    world.write("work/tenure.toml", &format!("store = \"{url}\"\nx = 1\n"));
    let done = world.run(&["ls"]).exits(78);
    assert!(!done.stderr.contains("hunter22"), "{}", done.stderr);
}

#[test]
fn the_default_is_a_file_in_the_state_folder() {
    let world = World::new();
    world.run(&["run", "x", "true"]).exits(0).silently();
    assert!(world.path("state/tenure/locks.db").exists());
}

#[test]
fn a_default_that_cannot_be_used_is_no_fault_of_the_user() {
    let world = World::new();
    world.write("state/tenure", "a file where the folder should be");
    world
        .run(&["ls"])
        .exits(69)
        .says("choose another place: --store sqlite:");
}
