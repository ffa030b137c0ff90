//! The suite itself is tested: it passes a store that does as it should, and finds the fault in each
//! of a shelf of stores that do not.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod executor;
mod flaws;
mod model;

use std::collections::BTreeSet;

use flaws::Flaw;
use model::Model;
use tenure_conformance::{cases, check_each};

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
        let by_oracle = found.iter().any(|name| name.starts_with("differential"));
        assert!(
            by_oracle || flaw.hides_from_the_oracle(),
            "the oracle did not find {flaw:?}, but {found:?} did"
        );
        for name in found {
            idle.remove(name);
        }
    }
    assert!(idle.is_empty(), "these find no flaw: {idle:#?}");
}

#[test]
fn names_of_cases_differ() {
    let mut names: Vec<_> = cases().iter().map(ToString::to_string).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}
