//! `tenure run` when all is well, and when the command cannot be run.

use super::world::{Done, World, text_of};

#[test]
fn it_prints_what_the_command_prints_and_nothing_else() {
    let done = World::new()
        .run(&["run", "hello", "--", "echo", "hi"])
        .exits(0)
        .silently();
    assert_eq!(done.stdout, "hi\n");
}

#[test]
fn the_exit_code_is_the_commands() {
    let world = World::new();
    world.run(&["run", "x", "-c", "exit 3"]).exits(3).silently();
    world.run(&["run", "x", "-c", "kill -TERM $$"]).exits(143);
}

#[test]
fn options_after_the_command_are_the_commands() {
    let world = World::new();
    world.script("work/job.sh", "echo \"$@\"");
    let done = world
        .run(&["run", "x", "./job.sh", "--flag", "--ttl", "-q"])
        .exits(0);
    assert_eq!(done.stdout, "--flag --ttl -q\n");
    let done = world
        .run(&["run", "--ttl", "5s", "x", "--", "./job.sh", "--", "a b"])
        .exits(0);
    assert_eq!(done.stdout, "-- a b\n");
}

#[test]
fn a_shell_is_used_only_when_asked_for() {
    let world = World::new();
    let done = world
        .run(&["run", "x", "-c", "echo a | tr a b"])
        .exits(0)
        .silently();
    assert_eq!(done.stdout, "b\n");
    let done = world
        .run(&["run", "x", "echo", "$HOME", "|", "cat"])
        .exits(0);
    assert_eq!(done.stdout, "$HOME | cat\n");
}

#[test]
fn a_missing_command_is_127_and_the_store_is_not_touched() {
    let world = World::new();
    world
        .run(&["run", "x", "a | b > c"])
        .exits(127)
        .says("a | b > c")
        .says("did you mean -c");
    world
        .run(&["run", "x", "no-such-program"])
        .exits(127)
        .says("no-such-program");
    assert!(!world.path("state/tenure").exists());
}

#[test]
fn a_command_that_may_not_be_executed_is_126() {
    let world = World::new();
    world.write("work/plain.txt", "text");
    world
        .run(&["run", "x", "./plain.txt"])
        .exits(126)
        .says("chmod +x");
    world.run(&["run", "x", "/tmp"]).exits(126).says("folder");
    assert!(!world.path("state/tenure").exists());
}

#[test]
fn a_script_without_its_interpreter_is_126_and_the_lock_is_free_again() {
    let world = World::new();
    let path = world.script("work/job.sh", "true");
    std::fs::write(&path, "#!/no/such/interpreter\n").expect("a file");
    world
        .run(&["run", "x", "./job.sh"])
        .exits(126)
        .says("names an interpreter that does not exist");
    world.run(&["run", "x", "--no-wait", "true"]).exits(0);
}

#[test]
fn a_second_run_follows_the_first() {
    let world = World::new();
    let first = world
        .run(&["run", "x", "-c", "echo $TENURE_FENCE"])
        .exits(0)
        .stdout;
    let second = world
        .run(&["run", "x", "-c", "echo $TENURE_FENCE"])
        .exits(0)
        .stdout;
    let fence = |text: &str| text.trim().parse::<u64>().expect("a number");
    assert!(fence(&second) > fence(&first), "{first} {second}");
}

#[test]
fn all_modes_run() {
    let world = World::new();
    world
        .run(&["run", "r", "--shared", "true"])
        .exits(0)
        .silently();
    world
        .run(&["run", "s", "--slots", "3", "true"])
        .exits(0)
        .silently();
}

#[test]
fn a_name_used_as_something_else_is_refused() {
    let world = World::new();
    let _holder = world.hold("gpu", &["--slots", "2"]);
    world
        .run(&["run", "gpu", "--no-wait", "true"])
        .exits(64)
        .says("error[T0304]");
}

#[test]
fn hold_at_most_ends_the_command_with_124() {
    let world = World::new();
    world
        .run(&["run", "x", "--hold-at-most", "300ms", "sleep", "100"])
        .exits(124);
}

#[test]
fn hold_at_least_leaves_the_lease_behind() {
    let world = World::new();
    world
        .run(&["run", "x", "--hold-at-least", "10m", "true"])
        .exits(0)
        .silently();
    // Whoever looks is told why a process that is gone holds it.
    world
        .run(&["run", "x", "--no-wait", "true"])
        .exits(75)
        .says("hold-at-least=10m")
        .says("here any more: the lock is kept by --hold-at-least");
    let shown = world.json(&["show", "x", "--json"]);
    let left = shown["holders"][0]["expires_in_ms"]
        .as_u64()
        .expect("a number");
    assert!((500_000..=600_000).contains(&left), "{left}");
}

#[test]
fn events_end_with_the_outcome() {
    let world = World::new();
    let file = world.path("events");
    let target = format!("--json={}", file.display());
    world
        .run(&["run", "x", &target, "-c", "exit 3"])
        .exits(3)
        .silently();
    let text = text_of(&file);
    let last: serde_json::Value =
        serde_json::from_str(text.lines().last().expect("a line")).expect("valid JSON");
    assert_eq!(last["event"], "end");
    assert_eq!(last["outcome"], "child_failed");
    assert_eq!(last["child_code"], 3);
    assert_eq!(last["signal"], serde_json::Value::Null);
    assert!(last["fence"].is_string() && last["held_ms"].is_u64() && last["waited_ms"].is_u64());
}

#[test]
fn events_on_stderr_replace_all_other_messages() {
    let world = World::new();
    let _holder = world.hold("x", &[]);
    let done = world
        .run(&["run", "x", "--json", "--no-wait", "true"])
        .exits(75);
    for line in done.stderr.lines() {
        let _: serde_json::Value = serde_json::from_str(line).expect(line);
    }
    let last: serde_json::Value =
        serde_json::from_str(done.stderr.lines().last().expect("a line")).expect("JSON");
    assert_eq!(
        (last["event"].as_str(), last["outcome"].as_str()),
        (Some("end"), Some("busy"))
    );
    assert_eq!(last["error"]["code"], "T0302");
}

#[test]
fn events_can_go_to_a_descriptor() {
    let world = World::new();
    let file = world.path("events");
    let script = format!("\"$1\" run x --json=fd:3 true 3>'{}'", file.display());
    let mut shell = world.tenure::<&str>(&[]);
    let tenure = shell.get_program().to_owned();
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", &script, "sh"]).arg(tenure);
    command.env_clear().envs(
        shell
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let _ = shell.stdin(std::process::Stdio::null());
    Done::of(&mut command).exits(0).silently();
    assert!(text_of(&file).contains(r#""event":"end""#));
}
