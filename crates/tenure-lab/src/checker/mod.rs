//! The judge: a pure function from a [`History`] to a [`Verdict`]. One file per question; `holds.rs`
//! reads off a history who believed to hold what and when, which most of them need.
//!
//! | check | question | file |
//! |---|---|---|
//! | C1 | were two incompatible holders valid at the same time? | `overlap.rs` |
//! | C2 | do fences grow in grant order, and is each given once? | `fences.rs` |
//! | C3 | did the protected resource carry out an old holder's write after a newer one's? | `resource.rs` |
//! | C4 | are the store's answers those of `decide`, in some order that fits in time? | `linear/` |
//! | C5 | was a lock free for too long while somebody waited, or somebody overtaken? | `handover.rs` |
//! | C6 | after the last fault, did everybody get everything, and was nothing left? | `liveness.rs` |
//! | C7 | did a late or repeated release change anything? | `releases.rs` |
//!
//! What is not promised is not a violation: a fault says which promises it breaks, and what is found
//! after it about those is counted apart. C3 has no such excuse. And what was not judged is not fine:
//! each check says how far it got (`reach.rs`).

mod command;
mod fences;
mod handover;
mod holds;
mod linear;
mod liveness;
mod overlap;
mod reach;
mod releases;
mod resource;
mod show;
#[cfg(test)]
mod sketch;

pub(crate) use command::command;
pub use reach::Reach;

use std::collections::BTreeMap;
use std::fmt;

use tenure::core::PromiseId;

use crate::history::{Event, Fault, History, What};
use holds::Holds;

/// The kind of a "fault" that puts things right again.
pub(crate) const REPAIR: &str = "repair";

/// What was found in a history.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What happened how often.
    pub counts: Counts,
    /// What should not be.
    pub findings: Vec<Finding>,
    /// How much of the history each question was asked of.
    pub reaches: BTreeMap<Check, Reach>,
    /// What is odd about the history itself.
    pub notes: Vec<String>,
}

/// What happened how often.
#[derive(Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Events in all.
    pub events: usize,
    /// Names of locks that were asked for.
    pub names: usize,
    /// Grants that a task was told of.
    pub grants: usize,
    /// Grants to somebody who had waited while another held.
    pub handovers: usize,
    /// Holds that ended although their holder did not give them up.
    pub losses: usize,
    /// Writes that the protected resource carried out.
    pub writes_accepted: usize,
    /// Writes that it refused.
    pub writes_refused: usize,
    /// Names whose steps C4 gave up on: neither explained nor found to be wrong.
    pub undecided: usize,
    /// Faults by their kind.
    pub faults: BTreeMap<String, usize>,
}

/// Something that should not be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which question it answers.
    pub check: Check,
    /// What is wrong, in a sentence.
    pub sentence: String,
    /// The smallest piece of history that shows it.
    pub evidence: Vec<Event>,
    /// The fault after which this is not promised any more. `None`: it is a violation.
    pub excuse: Option<Event>,
}

/// The questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// Overlap of incompatible holds.
    C1,
    /// Order of fences.
    C2,
    /// The protected resource.
    C3,
    /// Linearizability of the store's steps.
    C4,
    /// Hand-over and order of waiters.
    C5,
    /// Liveness after the last fault.
    C6,
    /// Late and repeated releases.
    C7,
}

/// Judges a history.
#[must_use]
pub fn check(history: &History) -> Verdict {
    let holds = Holds::of(history);
    let mut verdict = Verdict {
        counts: count(history, &holds),
        ..Verdict::default()
    };
    verdict.notes.extend(history.notes());
    verdict.notes.extend(holds.notes());
    let case = Case { history, holds };
    for (check, judge) in JUDGES {
        let reach = judge(&case, &mut verdict);
        verdict.reaches.insert(check, reach);
    }
    verdict
}

impl Verdict {
    /// What should not be although it is promised.
    pub fn violations(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|it| it.excuse.is_none())
    }

    /// What is not promised any more since a fault, and did happen.
    pub fn excused(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|it| it.excuse.is_some())
    }

    fn add(&mut self, check: Check, sentence: String, evidence: Vec<Event>) {
        self.findings.push(Finding {
            check,
            sentence,
            evidence,
            excuse: None,
        });
    }
}

/// Looks for one thing, and says of how much.
type Judge = fn(&Case<'_>, &mut Verdict) -> Reach;

const JUDGES: [(Check, Judge); 7] = [
    (Check::C1, overlap::check),
    (Check::C2, fences::check),
    (Check::C3, resource::check),
    (Check::C4, linear::check),
    (Check::C5, handover::check),
    (Check::C6, liveness::check),
    (Check::C7, releases::check),
];

/// What all checks look at.
struct Case<'a> {
    history: &'a History,
    holds: Holds,
}

impl Case<'_> {
    fn event(&self, index: usize) -> Event {
        self.history.events[index].clone()
    }

    fn faults(&self) -> impl Iterator<Item = (&Event, &Fault)> {
        let events = self.history.events.iter();
        events.filter_map(|event| match &event.what {
            What::Fault(fault) => Some((event, fault)),
            _ => None,
        })
    }

    /// The fault that broke one of these promises before `at`.
    fn excuse(&self, promises: &[PromiseId], at: u64) -> Option<Event> {
        let breaks = |fault: &Fault| fault.breaks.iter().any(|it| promises.contains(it));
        self.faults()
            .find(|(event, fault)| event.at <= at && breaks(fault))
            .map(|(event, _)| event.clone())
    }

    /// Whether anything was broken or put right in this time.
    fn is_rough(&self, from: u64, to: u64) -> bool {
        self.faults()
            .any(|(event, _)| from <= event.at && event.at <= to)
    }

    fn last_at(&self) -> u64 {
        self.history.events.last().map_or(0, |event| event.at)
    }
}

fn count(history: &History, holds: &Holds) -> Counts {
    let mut counts = Counts {
        events: history.events.len(),
        grants: holds.all.len(),
        handovers: handover::count(holds),
        names: holds.names(),
        ..Counts::default()
    };
    for event in &history.events {
        match &event.what {
            What::Lost { .. } => counts.losses += 1,
            What::WriteAccepted(_) => counts.writes_accepted += 1,
            What::WriteRefused(_) => counts.writes_refused += 1,
            What::Fault(fault) if fault.kind == REPAIR => {}
            What::Fault(fault) => *counts.faults.entry(fault.kind.clone()).or_default() += 1,
            _ => {}
        }
    }
    counts
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::C1,
        Self::C2,
        Self::C3,
        Self::C4,
        Self::C5,
        Self::C6,
        Self::C7,
    ];

    /// What it is about, in a few words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::C1 => "two holders at the same time",
            Self::C2 => "order of fences",
            Self::C3 => "the protected resource",
            Self::C4 => "answers of the store",
            Self::C5 => "hand-over and order of waiters",
            Self::C6 => "liveness after the last fault",
            Self::C7 => "late and repeated releases",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
