//! The suite itself is tested: it passes a store that does as it should, and finds the fault in each
//! of a shelf of stores that do not.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod executor;
mod flaws;
mod model;

use std::collections::BTreeSet;

use flaws::Flaw;
use model::Model;
use tenure_conformance::{cases, check_each, oracle};

#[test]
fn a_store_without_fault_passes() {
    let report = executor::run(check_each(|| Model::new(None)));
    report.assert_all_passed();
}

#[test]
fn every_flaw_is_found_and_every_case_finds_one() {
    let mut idle: BTreeSet<_> = cases().iter().map(ToString::to_string).collect();
    for flaw in Flaw::ALL {
        let report = executor::run(check_each(|| Model::new(Some(flaw))));
        let found: Vec<_> = report.failed().map(|(name, _)| name).collect();
        assert!(!found.is_empty(), "{flaw:?} was not found");
        for name in found {
            idle.remove(name);
        }
    }
    assert!(idle.is_empty(), "these find no flaw: {idle:#?}");
}

#[test]
fn the_oracle_finds_every_flaw_that_random_traces_can_show() {
    for flaw in Flaw::ALL {
        let model = Model::new(Some(flaw));
        let found = executor::run(oracle(&model, 7, 400)).is_err();
        assert_eq!(found, !flaw.hides_from_the_oracle(), "{flaw:?}");
    }
}

#[test]
fn a_disagreement_is_shrunk_to_a_short_trace_and_shown_with_its_seed() {
    let model = Model::new(Some(Flaw::SaysReleasedTwice));
    let disagreement = executor::run(oracle(&model, 7, 400)).unwrap_err();
    let shown = disagreement.to_string();
    assert!(shown.contains("another outcome"), "{shown}");
    assert!(shown.contains("seed 7,"), "{shown}");
    let steps = shown.lines().filter(|line| line.starts_with("- after"));
    assert_eq!(steps.count(), 1, "a release alone shows it: {shown}");
}

#[test]
fn names_of_cases_differ() {
    let mut names: Vec<_> = cases().iter().map(ToString::to_string).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}
