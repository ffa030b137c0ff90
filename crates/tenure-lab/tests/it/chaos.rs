//! Random faults against every shape, and the judgement of histories, as users see them.

use std::process::Child;

use serde_json::Value;

use super::world::{command, lab};

/// What is started, and the seed: plans in which much is broken early.
const SHAPES: [(&str, &str); 6] = [
    ("redis", "1"),
    ("sentinel", "2"),
    ("cluster", "3"),
    ("redlock:3", "4"),
    ("redlock:5", "5"),
    ("sqlite", "6"),
];

#[test]
fn a_short_mix_of_faults_breaks_no_promise_of_any_shape() {
    // All at the same time: most of it is waiting.
    let runs = SHAPES.map(|(shape, seed)| {
        let arguments = ["chaos", "--start", shape, "--seed", seed, "--steps", "8"];
        let run = command(&arguments).arg("--json").spawn().unwrap();
        (shape, run)
    });
    for (shape, run) in runs {
        let verdict = verdict(shape, run);
        assert_eq!(verdict["violations"], serde_json::json!([]), "{shape}");
        assert_eq!(verdict["notes"], serde_json::json!([]), "{shape}");
        let counts = &verdict["counts"];
        assert!(counts["grants"].as_u64() > Some(20), "{shape}: {counts}");
        assert!(counts["writes_accepted"].as_u64() > Some(20), "{shape}");
        let faults = counts["faults"].as_object().unwrap();
        assert!(faults.len() >= 2, "{shape}: {counts}");
    }
}

fn verdict(shape: &str, run: Child) -> Value {
    let done = run.wait_with_output().expect("a child of ours");
    let text = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{shape}: {done:?}");
    serde_json::from_str(&text).expect("one JSON object")
}

#[test]
fn a_plan_can_be_carried_out_again_and_its_history_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (first, second) = (path("first"), path("second"));
    let start = ["chaos", "--start", "sqlite", "--faults", "pause"];
    let rest = ["--steps", "2", "--seed", "7", "--keep", &first];
    let done = lab(&[&start[..], &rest].concat()).exits(0);
    assert!(done.stdout.contains("again:"), "{done:?}");
    let plan = format!("{first}/plan.json");
    lab(&["chaos", "--plan", &plan, "--keep", &second]).exits(0);
    let read = |folder: &str| std::fs::read_to_string(format!("{folder}/plan.json")).unwrap();
    assert_eq!(read(&first), read(&second));
    let done = lab(&["check", &format!("{second}/history.jsonl")]).exits(0);
    assert!(done.stdout.contains("violations 0"), "{done:?}");
    assert!(done.stdout.contains(" pause\n"), "{done:?}");
    let history = |folder: &str| std::fs::read(format!("{folder}/history.jsonl")).unwrap();
    let before = history(&second);
    let done = lab(&["chaos", "--plan", &plan, "--keep", &second]).exits(73);
    assert!(done.stderr.contains("of an earlier run"), "{done:?}");
    assert_eq!(history(&second), before);
}

#[test]
fn a_history_with_two_holders_is_refused_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    let mut lines = String::new();
    for (process, at, fence) in [(1, 1_000, 7), (2, 2_000, 8)] {
        let who = format!(r#""process":{process},"task":0"#);
        let acquire = r#""op":"acquire","name":"x","mode":"exclusive","ttl_ms":1000,"waits":true"#;
        lines += &format!(r#"{{"at":{at},{who},"event":"invoke","call":0,{acquire}}}"#);
        lines += &format!(
            "\n{{\"at\":{},{who},\"event\":\"ok\",\"call\":0,\"fence\":\"{fence}\",\"valid_until\":9000}}\n",
            at + 1
        );
    }
    std::fs::write(&file, lines).unwrap();
    let file = file.display().to_string();
    let done = lab(&["check", &file]).exits(1);
    assert!(done.stdout.starts_with("C1 (two holders"), "{done:?}");
    assert_eq!(done.stdout.matches(r#""event":"ok""#).count(), 2);
    let done = lab(&["check", &file, "--json"]).exits(1);
    let verdict: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(verdict["violations"][0]["check"], "C1");
}

#[test]
fn it_must_be_said_what_to_break() {
    lab(&["chaos"]).exits(64);
    let done = lab(&["chaos", "--start", "redsi"]).exits(2);
    assert!(done.stderr.contains("redlock:5"), "{done:?}");
    let done = lab(&["chaos", "--start", "sqlite", "--for", "0s"]).exits(2);
    assert!(done.stderr.contains("in no time"), "{done:?}");
    let done = lab(&["chaos", "--plan", "there-is-no-such-file"]).exits(66);
    assert!(done.stderr.starts_with("error: "), "{done:?}");
    let done = lab(&["chaos", "--plan", "Cargo.toml"]).exits(65);
    assert!(done.stderr.contains("Cargo.toml"), "{done:?}");
}

#[test]
fn what_is_missing_is_said_before_anything_is_begun() {
    let done = lab(&["chaos", "--store", "redis://127.0.0.1:1", "--for", "10m"]).exits(69);
    assert!(done.stderr.contains("127.0.0.1:1"), "{done:?}");
    let empty = tempfile::tempdir().unwrap();
    let start = ["chaos", "--start", "cluster", "--for", "10m"];
    let done = command(&start).env("PATH", empty.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(69), "{done:?}");
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(text.contains("apt-get install redis-server"), "{done:?}");
    let file = empty.path().join("file");
    std::fs::write(&file, "").unwrap();
    let folder = file.join("folder").display().to_string();
    let done = lab(&["chaos", "--start", "sqlite", "--keep", &folder]).exits(73);
    assert!(done.stderr.contains(&folder), "{done:?}");
}

#[test]
fn a_primary_that_is_cut_off_together_with_a_client_does_not_make_two_holders() {
    let runs = [("sentinel", "5"), ("cluster", "6")].map(|(shape, seed)| {
        let start = ["chaos", "--start", shape, "--seed", seed, "--json"];
        let faults = ["--faults", "split,cut-off", "--steps", "4"];
        (
            shape,
            command(&[&start[..], &faults].concat()).spawn().unwrap(),
        )
    });
    for (shape, run) in runs {
        let verdict = verdict(shape, run);
        assert_eq!(verdict["violations"], serde_json::json!([]), "{shape}");
        let faults = &verdict["counts"]["faults"];
        assert!(faults["split"].as_u64() >= Some(1), "{shape}: {faults}");
    }
}
