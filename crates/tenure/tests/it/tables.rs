//! The guarantee tables in README.md and docs/guarantees.md say what the stores say of themselves.
//!
//! `TENURE_TEST_WRITE_TABLES=1 cargo test -p tenure --all-features tables` writes them anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tenure::Guarantees;
use tenure::core::{Holds, PromiseId};
use tenure::stores::{memory, quorum, redis, sqlite};

const STORES: [Guarantees; 7] = [
    memory::GUARANTEES,
    sqlite::GUARANTEES,
    redis::GUARANTEES,
    redis::SENTINEL_GUARANTEES,
    redis::CLUSTER_GUARANTEES,
    quorum::MAJORITY,
    quorum::UNANIMOUS,
];

#[test]
fn the_table_in_the_readme_is_what_the_stores_promise() {
    check("README.md", &short_table());
}

#[test]
fn the_page_of_guarantees_is_what_the_stores_promise() {
    check("docs/guarantees.md", &long_tables());
}

#[test]
fn every_store_speaks_about_every_promise_in_order() {
    for store in STORES {
        let ids: Vec<_> = store.promises.iter().map(|promise| promise.id).collect();
        assert_eq!(ids, PromiseId::ALL, "{}", store.store);
    }
}

/// One row per store: yes, a footnote-free "if" with the page to read, or no.
fn short_table() -> String {
    let mut table = String::from("| store | who excludes whom | ");
    let ids: Vec<_> = PromiseId::ALL.iter().map(ToString::to_string).collect();
    writeln!(
        table,
        "{} |\n|---|---|{}",
        ids.join(" | "),
        "---|".repeat(ids.len())
    )
    .unwrap();
    for store in STORES {
        let cells: Vec<_> = store
            .promises
            .iter()
            .map(|promise| word(promise.holds))
            .collect();
        writeln!(
            table,
            "| `{}` | {} | {} |",
            store.store,
            store.scope,
            cells.join(" | ")
        )
        .unwrap();
    }
    table
}

fn word(holds: Holds) -> &'static str {
    match holds {
        Holds::Always => "yes",
        Holds::Within(_) => "bounded",
        Holds::If(_) => "if …",
        Holds::No(_) => "no",
    }
}

fn long_tables() -> String {
    let mut text = String::new();
    for store in STORES {
        writeln!(text, "## `{}`\n", store.store).unwrap();
        writeln!(
            text,
            "Excludes: {}. Clock: {}. Wake-up: {}.\n",
            store.scope, store.clock, store.wake_up
        )
        .unwrap();
        text.push_str("| promise | holds |\n|---|---|\n");
        for promise in store.promises {
            let holds = match promise.holds {
                Holds::Always => "yes".to_owned(),
                Holds::Within(bound) => format!("within {bound}"),
                Holds::If(condition) => format!("if {condition}"),
                Holds::No(reason) => format!("no: {reason}"),
            };
            writeln!(
                text,
                "| {}: {} | {holds} |",
                promise.id,
                promise.id.sentence()
            )
            .unwrap();
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Compares what stands between the markers of `file` with `expected`, or writes it there.
fn check(file: &str, expected: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    let text = std::fs::read_to_string(&path).expect(file);
    let (begin, end) = (
        "<!-- guarantees: generated -->\n",
        "<!-- end of guarantees -->",
    );
    let (before, rest) = text.split_once(begin).expect("the first marker");
    let (current, after) = rest.split_once(end).expect("the last marker");
    if current == expected {
        return;
    }
    if std::env::var_os("TENURE_TEST_WRITE_TABLES").is_some() {
        std::fs::write(&path, format!("{before}{begin}{expected}{end}{after}")).expect(file);
        return;
    }
    panic!(
        "{file} is out of date; write it anew as the head of this file says. Expected:\n{expected}"
    );
}
