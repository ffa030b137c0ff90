//! Help, usage errors and suggestions.

use super::world::World;

#[test]
fn alone_it_shows_five_commands_and_one_example() {
    let done = World::new().run::<&str>(&[]).exits(0).silently();
    let commands: Vec<&str> = done
        .stdout
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(commands.len(), 5, "{}", done.stdout);
    assert!(
        done.stdout
            .contains("tenure run nightly-report -- ./report.sh")
    );
}

#[test]
fn a_misspelt_command_gets_a_suggestion() {
    World::new()
        .run(&["rnu"])
        .exits(64)
        .says("similar subcommand exists: 'run'");
}

#[test]
fn the_lab_lists_what_can_go_wrong_and_refuses_what_it_does_not_know() {
    let world = World::new();
    let done = world.run(&["lab", "list"]).exits(0).silently();
    assert_eq!(done.stdout.lines().count(), 20, "{}", done.stdout);
    world
        .run(&["lab", "run", "A99"])
        .exits(64)
        .says("there is no anomaly 'A99'");
}

#[test]
fn every_usage_error_exits_64() {
    let world = World::new();
    let lines: [&[&str]; 11] = [
        &["run"],
        &["run", "x"],
        &["run", "x", "--nonsense", "true"],
        &["run", "x", "--shared", "--slots", "2", "true"],
        &["run", "x", "--slots", "0", "true"],
        &["run", "--", "make", "all"],
        &["run", "", "true"],
        &["run", "~once:x", "true"],
        &["run", "x", "--on-lost", "cry", "true"],
        &["run", "x", "--json=fd:1", "true"],
        &["acquire", "x"],
    ];
    for line in lines {
        let done = world.run(line).exits(64);
        assert!(
            done.stdout.is_empty() && done.stderr.starts_with("error[T0"),
            "{line:?}: {done:?}"
        );
    }
}

#[test]
fn whoever_reads_events_hears_of_usage_errors_too() {
    let world = World::new();
    let end = |text: &str| -> serde_json::Value {
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1, "{text}");
        serde_json::from_str(lines[0]).expect("valid JSON")
    };
    for command in ["run", "elect"] {
        let wrong = [command, "x", "--json", "--ttl", "3", "--", "true"];
        let event = end(&world.run(&wrong).exits(64).stderr);
        assert_eq!(
            (&event["event"], &event["outcome"]),
            (&"end".into(), &"usage".into())
        );
        assert_eq!(event["exit_code"], 64);
        assert_eq!(event["error"]["code"], "T0202");
        let what = event["error"]["message"].as_str().expect("a text");
        assert!(what.contains("no unit: say 3s"), "{what}");
        let file = world.path(&format!("{command}.jsonl"));
        let target = format!("--json={}", file.display());
        let forgotten = [command, &target, "--", "make", "all"];
        world
            .run(&forgotten)
            .exits(64)
            .says("error[T0202]: no NAME");
        end(&super::world::text_of(&file));
    }
    // These are the command's own.
    let done = world
        .run(&["run", "x", "--ttl", "3", "--", "true", "--json"])
        .exits(64);
    assert!(done.stderr.starts_with("error[T0202]"), "{}", done.stderr);
}

#[test]
fn a_lock_that_nobody_else_can_see_is_refused() {
    let world = World::new();
    let lines: [&[&str]; 6] = [
        &["run", "x", "true"],
        &["elect", "x", "true"],
        &["acquire", "x", "--ttl", "9s"],
        &["seq", "x"],
        &["ls"],
        &["show", "x"],
    ];
    for line in lines {
        for store in ["memory:", "memory:shared"] {
            world
                .run(&[&["--store", store], line].concat())
                .exits(64)
                .says("seen by this process alone");
        }
    }
    world.run(&["doctor", "--store", "memory:"]).exits(0);
}

#[test]
fn a_folder_that_is_missing_is_not_made_up() {
    let world = World::new();
    let missing = world.path("work/nope");
    let url = format!("sqlite:{}", missing.join("x.db").display());
    world
        .run(&["run", "x", "--store", &url, "true"])
        .exits(64)
        .says("does not exist")
        .says("mkdir -p");
    assert!(!missing.exists());
    // But for one's own, which nobody has to name; for oneself alone.
    let own = world.path("state/tenure");
    assert!(!own.exists());
    world.run(&["run", "x", "true"]).exits(0);
    let mode = std::fs::metadata(own).expect("it is there").permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o700
    );
}

#[test]
fn a_store_without_its_scheme_gets_a_suggestion() {
    let world = World::new();
    world
        .run(&["ls", "--store", "localhost:6379"])
        .exits(64)
        .says("did you mean redis://localhost:6379?");
    world
        .run(&["ls", "--store", "/var/locks.db"])
        .exits(64)
        .says("a file is sqlite:PATH");
}

#[test]
fn help_and_version_are_printed_on_stdout() {
    let world = World::new();
    for line in [
        ["--help"].as_slice(),
        &["--version"],
        &["run", "--help"],
        &["ls", "-h"],
    ] {
        let done = world.run(line).exits(0).silently();
        assert!(!done.stdout.is_empty(), "{line:?}");
    }
}

#[test]
fn the_help_of_run_lists_all_exit_codes() {
    let help = World::new().run(&["run", "--help"]).exits(0).stdout;
    let codes = help
        .split("Exit codes:")
        .nth(1)
        .expect("a section of its own");
    for code in [
        "128+n", "64", "69", "70", "75", "77", "78", "79", "124", "126", "127", "130", "143",
    ] {
        assert!(codes.contains(code), "{code} is missing in {codes}");
    }
}

#[test]
fn names_of_tenures_own_records_are_refused_for_locks() {
    let world = World::new();
    for line in [
        &["run", "~once:job", "true"][..],
        &["acquire", "~x", "--ttl", "30s"],
        &["elect", "~x", "true"],
    ] {
        world.run(line).exits(64).says("a name that begins with ~");
    }
}

#[test]
fn a_duration_needs_a_unit() {
    let world = World::new();
    world
        .run(&["run", "x", "--ttl", "30", "true"])
        .exits(64)
        .says("no unit: say 30s or 30ms");
    world
        .run(&["run", "x", "--wait", "5", "true"])
        .exits(64)
        .says("no unit: say 5s or 5ms");
    world
        .run(&["run", "x", "--ttl", "3 parsecs", "true"])
        .exits(64)
        .says("unknown unit 'parsecs'");
}

#[test]
fn a_lease_of_less_than_a_second_is_refused() {
    World::new()
        .run(&["run", "x", "--ttl", "500ms", "true"])
        .exits(64)
        .says("at least 1s");
}

#[test]
fn a_grace_that_does_not_fit_names_a_ttl_that_does() {
    World::new()
        .run(&["run", "x", "--ttl", "30s", "--grace", "25s", "true"])
        .exits(64)
        .says("--grace 25s does not fit in a lease of 30s")
        .says("use --ttl 1m15s");
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = world
            .run(&["completions", shell])
            .exits(0)
            .silently()
            .stdout;
        assert!(script.contains("force-release"), "{shell}");
    }
    assert!(world.run(&["man"]).exits(0).stdout.contains(".TH tenure 1"));
    assert!(
        world
            .run(&["man", "run"])
            .exits(0)
            .stdout
            .contains("hold\\-at\\-most")
    );
    world.run(&["man", "nonsense"]).exits(64);
}

#[test]
fn a_usage_error_never_shows_a_password() {
    let done = World::new()
        .run(&["ls", "a", "redis://:hunter22@cache"])
        .exits(64);
    assert!(!done.stderr.contains("hunter22"), "{}", done.stderr);
}

#[test]
fn colours_are_used_only_when_asked_for_or_on_a_terminal() {
    let world = World::new();
    for line in [["rnu"].as_slice(), &["show", ""]] {
        let with = |color: &str| {
            world
                .run(&[line, &["--color", color]].concat())
                .exits(64)
                .stderr
        };
        assert!(with("always").contains('\x1b'), "{line:?}");
        assert!(!with("never").contains('\x1b'), "{line:?}");
        assert!(!with("auto").contains('\x1b'), "{line:?}");
    }
}

#[test]
fn cargo_run_in_a_checkout_is_this_program() {
    // The first line of the README is `cargo run --release -- run hello -- echo hi`.
    let metadata = std::process::Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("valid JSON");
    let members = metadata["workspace_default_members"]
        .as_array()
        .expect("a list");
    let packages = metadata["packages"].as_array().expect("a list");
    let programs: Vec<&str> = packages
        .iter()
        .filter(|package| members.contains(&package["id"]))
        .flat_map(|package| package["targets"].as_array().expect("a list"))
        .filter(|target| target["kind"] == serde_json::json!(["bin"]))
        .filter_map(|target| target["name"].as_str())
        .collect();
    assert_eq!(programs, ["tenure"], "`cargo run` would ask which is meant");
}
