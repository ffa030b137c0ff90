//! `ls` and `show`.

use serde_json::json;

use super::world::{World, user};

#[test]
fn nothing_held_is_said_on_stderr() {
    let done = World::new().run(&["ls"]).exits(0).says("no locks held");
    assert_eq!(done.stdout, "");
}

#[test]
fn nothing_held_is_an_empty_array() {
    assert_eq!(World::new().json(&["ls", "--json"]), json!([]));
}

#[test]
fn the_json_has_exactly_the_promised_shape() {
    let world = World::new();
    let holder = world.hold(
        "nightly",
        &["--owner", "ci", "--label", "build", "--meta", "n=7"],
    );
    let waiter = world.start(&["run", "nightly", "true"]);
    world.until_waiting("nightly", 1);
    let listed = world.json(&["ls", "--json"]);
    let lock = &listed[0];
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (lock["name"].as_str(), lock["mode"].as_str()),
        (Some("nightly"), Some("exclusive"))
    );
    let held = &lock["holders"][0];
    assert_eq!(held["owner"], "ci");
    assert_eq!(held["label"], "build n=7");
    assert_eq!(held["pid"], json!(holder.pid().as_raw_nonzero().get()));
    assert!(held["fence"].is_string() && held["held_ms"].is_u64());
    assert!(
        held["expires_in_ms"]
            .as_u64()
            .is_some_and(|left| left <= 30_000)
    );
    assert_eq!(held["lease"].as_str().map(str::len), Some(8));
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(keys(lock), ["name", "mode", "holders", "waiters"]);
    assert_eq!(
        keys(held),
        [
            "owner",
            "label",
            "host",
            "pid",
            "fence",
            "held_ms",
            "expires_in_ms",
            "lease"
        ]
    );
    let waiting = &lock["waiters"][0];
    assert_eq!(
        keys(waiting),
        ["owner", "label", "host", "pid", "waiting_ms"]
    );
    assert_eq!(waiting["pid"], json!(waiter.pid().as_raw_nonzero().get()));
    assert_eq!(
        world.json(&["show", "nightly", "--json"])["holders"][0]["lease"],
        held["lease"]
    );
}

#[test]
fn a_prefix_selects() {
    let world = World::new();
    let _first = world.hold("app-a", &[]);
    let _second = world.hold("job-b", &["--shared"]);
    let _third = world.hold("job-c", &["--slots", "4"]);
    let listed = world.json(&["ls", "job-", "--json"]);
    let names: Vec<_> = listed
        .as_array()
        .expect("array")
        .iter()
        .map(|lock| &lock["name"])
        .collect();
    assert_eq!(names, ["job-b", "job-c"]);
    assert_eq!(
        (listed[0]["mode"].as_str(), listed[1]["mode"].as_str()),
        (Some("shared"), Some("slots:4"))
    );
}

#[test]
fn the_table_and_the_portrait_are_for_people() {
    let world = World::new();
    let holder = world.hold("nightly", &[]);
    let waiter = world.start(&["run", "nightly", "true"]);
    world.until_waiting("nightly", 1);
    let table = world.run(&["ls"]).exits(0).silently().stdout;
    assert!(table.starts_with("NAME"), "{table}");
    assert!(
        table.contains("nightly") && table.contains(&format!("{}@", user())),
        "{table}"
    );
    let shown = world.run(&["show", "nightly"]).exits(0).silently().stdout;
    let pid = |running: &super::world::Running| format!("pid {}", running.pid().as_raw_nonzero());
    assert!(
        shown.contains("held by") && shown.contains(&pid(&holder)),
        "{shown}"
    );
    assert!(
        shown.contains("waiting") && shown.contains(&pid(&waiter)),
        "{shown}"
    );
}

#[test]
fn a_free_lock_is_shown_as_free() {
    let world = World::new();
    assert!(world.run(&["show", "x"]).exits(0).stdout.contains("free"));
    let shown = world.json(&["show", "x", "--json"]);
    assert_eq!(
        shown,
        json!({"name": "x", "mode": null, "holders": [], "waiters": []})
    );
}
