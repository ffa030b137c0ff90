//! `tenure lab check` as somebody meets it who judges a history of their own; and the page that says what
//! lines a history has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use serde_json::Value;
use tenure_lab::checker::{Check, check};
use tenure_lab::history::{Asked, History, Said, Wanted, What};

use super::world::{Done, command, lab};

/// What `check` says of a file with this in it.
fn checked(text: &str, more: &[&str]) -> Done {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history.jsonl");
    std::fs::write(&file, text).expect("a file in it");
    lab(&[&["check", &file.display().to_string()], more].concat())
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/histories.md");
    std::fs::read_to_string(path).expect("the page is there")
}

/// The examples of the page: the smallest one and the one with everything.
fn examples() -> [String; 2] {
    let page = page();
    let blocks = page.split("```json\n").skip(1);
    let blocks = blocks.map(|rest| {
        rest.split("```")
            .next()
            .expect("the first piece")
            .to_owned()
    });
    let blocks: Vec<_> = blocks.collect();
    blocks.try_into().expect("two examples")
}

#[test]
fn what_proves_nothing_is_not_called_fine() {
    let run = examples()[1].lines().next().unwrap().to_owned();
    for (text, what) in [("", "an empty file"), (&*run, "a run without anything")] {
        let done = checked(text, &[]).exits(65);
        assert!(done.stderr.contains("proves nothing"), "{what}: {done:?}");
        assert!(done.stdout.contains("C1 two holders"), "{what}: {done:?}");
        let done = checked(text, &["--json"]).exits(65);
        let verdict: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(verdict["proves_nothing"], true, "{what}");
    }
    for text in [
        "# A page about locks\n",
        "{\"some\":\"json\"}\n",
        "\u{0}\u{1}\n",
    ] {
        let done = checked(text, &[]).exits(65);
        assert!(
            done.stderr.starts_with("error: not a history: line 1"),
            "{done:?}"
        );
    }
    let done = lab(&["check", "there-is-no-such-file"]).exits(66);
    assert!(done.stderr.starts_with("error: not a history"), "{done:?}");
}

#[test]
fn a_history_that_is_cut_in_a_line_is_judged_as_far_as_it_goes() {
    let [smallest, _] = examples();
    let whole = smallest.trim_end();
    let done = checked(&whole[..whole.len() - 20], &[]).exits(0);
    assert!(
        done.stdout.contains("line 6, the last one, is cut off"),
        "{done:?}"
    );
    assert!(done.stdout.contains("1 grants"), "the other one: {done:?}");
    let done = checked(whole, &[]).exits(0);
    assert!(done.stdout.contains("2 grants"), "{done:?}");
    assert!(!done.stdout.contains("cut off"), "{done:?}");
}

#[test]
fn a_history_can_come_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    std::fs::write(&file, &examples()[0]).unwrap();
    let mut check = command(&["check", "-"]);
    let done = check.stdin(File::open(&file).unwrap()).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.contains("2 grants"), "{text}");
}

#[test]
fn it_says_what_it_judged_and_what_not_and_why() {
    let [smallest, everything] = examples();
    let done = checked(&smallest, &[]).exits(0);
    for why in [
        "no `asked`",
        "no `run`",
        "no `calm`",
        "no `end`",
        "no resource",
    ] {
        assert!(done.stdout.contains(why), "{why}: {done:?}");
    }
    let done = checked(&everything, &["--json"]).exits(0);
    let verdict: Value = serde_json::from_str(&done.stdout).unwrap();
    let judged = verdict["checks"].as_array().unwrap().iter();
    let judged = judged.map(|it| {
        (
            it["check"].as_str().unwrap(),
            it["judged"].as_u64().unwrap(),
        )
    });
    let judged: BTreeMap<_, _> = judged.collect();
    assert_eq!(judged.len(), Check::ALL.len());
    assert!(judged.values().all(|count| *count > 0), "{judged:?}");
    assert_eq!(verdict["notes"], serde_json::json!([]));
}

#[test]
fn another_holder_in_the_smallest_example_is_found() {
    let [smallest, _] = examples();
    let overlap = smallest.replace("\"at\":9500000", "\"at\":8500000");
    assert_ne!(overlap, smallest);
    let done = checked(&overlap, &[]).exits(1);
    assert!(done.stdout.starts_with("C1 (two holders"), "{done:?}");
}

#[test]
fn events_that_belong_to_nothing_are_told() {
    let [smallest, _] = examples();
    let answers: Vec<_> = smallest
        .lines()
        .filter(|line| line.contains("\"ok\""))
        .collect();
    let done = checked(&answers.join("\n"), &[]).exits(65);
    assert!(done.stdout.contains("3 events tell of a call"), "{done:?}");
    let without = smallest.replace(",\"fence\":\"42\",\"valid_until\":960000000", "");
    let done = checked(&without, &[]).exits(0);
    assert!(
        done.stdout
            .contains("1 events say that a lock was acquired without"),
        "{done:?}"
    );
}

#[test]
fn the_page_about_histories_has_every_word_that_a_line_may_have() {
    let page = page();
    let tables: Vec<_> = page.lines().filter(|line| line.starts_with('|')).collect();
    let tables = tables.join("\n");
    let described = |word: &str| tables.contains(&format!("`{word}`"));
    let mut words = BTreeSet::new();
    for line in examples().concat().lines() {
        let line: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        for (field, value) in line {
            let says = ["event", "op", "ask", "said"].contains(&&*field);
            words.extend(says.then(|| value.as_str().unwrap().to_owned()));
            words.insert(field);
        }
    }
    let missing: Vec<_> = words.iter().filter(|word| !described(word)).collect();
    assert!(missing.is_empty(), "not described: {missing:?}");
    for event in known::<What>("event") {
        assert!(words.contains(&event), "{event:?} is in no example");
    }
    let others = [
        known::<Wanted>("op"),
        known::<Asked>("ask"),
        known::<Said>("said"),
    ];
    for word in others.concat() {
        assert!(described(&word), "{word:?} is not described");
    }
}

/// All words that may stand in this field: whoever reads another one is told of them.
fn known<T: serde::de::DeserializeOwned>(field: &str) -> Vec<String> {
    let unknown = serde_json::json!({ field: "something else" });
    let error = serde_json::from_value::<T>(unknown)
        .err()
        .expect("no such word");
    let error = error.to_string();
    let known: Vec<_> = error
        .split('`')
        .skip(3)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    assert!(known.len() > 3, "{error}");
    known
}

#[test]
fn the_examples_of_the_page_are_histories_in_which_nothing_is_wrong() {
    for example in examples() {
        let history: History = example.parse().unwrap();
        let verdict = check(&history);
        assert_eq!(verdict.violations().count(), 0, "{}", verdict.text());
    }
}
