//! A [`Verdict`] for people and for programs.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Check, Finding, Verdict};
use crate::history::Event;

/// So many violations of one kind are shown: the first ones tell most.
const SHOWN: usize = 3;

impl Verdict {
    /// For people: what was found, each with the smallest piece of history that shows it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut shown: HashMap<Check, usize> = HashMap::new();
        for finding in self.violations() {
            let count = shown.entry(finding.check).or_default();
            *count += 1;
            if *count <= SHOWN {
                let _ = writeln!(text, "{}", said(finding));
            }
        }
        for (check, count) in shown {
            if let Some(more @ 1..) = count.checked_sub(SHOWN) {
                let _ = writeln!(text, "{check}: and {more} more\n");
            }
        }
        for finding in self.excused().take(3) {
            let excuse = finding.excuse.as_ref().map_or_else(String::new, line);
            let _ = writeln!(text, "not promised: {}\n  since {excuse}", finding.sentence);
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        let _ = write!(text, "{}\n{}", self.judged(), self.summary());
        text
    }

    /// What each check judged, and what it did not, and why.
    fn judged(&self) -> String {
        let mut text = String::from("judged\n");
        for check in Check::ALL {
            let reach = self.reach(check);
            let _ = writeln!(text, "  {check} {:<32}{}", check.about(), reach.words());
            for left_out in reach.left_out {
                let _ = writeln!(text, "     not judged: {left_out}");
            }
        }
        text
    }

    /// One paragraph: how much happened and what was found.
    #[must_use]
    pub fn summary(&self) -> String {
        let counts = &self.counts;
        let faults = counts.faults.iter();
        let faults: Vec<_> = faults
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let faults = if faults.is_empty() {
            "none".to_owned()
        } else {
            faults.join(", ")
        };
        format!(
            "names {} · grants {} · hand-overs {} · lost {} · writes {} · refused writes {}\n\
             faults: {faults}\n\
             violations {} · not promised {} · undecided names {} · events {}\n",
            counts.names,
            counts.grants,
            counts.handovers,
            counts.losses,
            counts.writes_accepted,
            counts.writes_refused,
            self.violations().count(),
            self.excused().count(),
            counts.undecided,
            counts.events,
        )
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "check": finding.check.to_string(),
                "about": finding.check.about(),
                "sentence": finding.sentence,
                "evidence": finding.evidence,
                "excuse": finding.excuse,
            })
        };
        let reach = |check: Check| {
            let reach = self.reach(check);
            json!({
                "check": check.to_string(),
                "about": check.about(),
                "judged": reach.judged,
                "things": reach.things,
                "not_judged": reach.left_out,
            })
        };
        json!({
            "proves_nothing": self.proves_nothing(),
            "checks": Check::ALL.map(reach),
            "notes": self.notes,
            "counts": self.counts,
            "violations": self.violations().map(finding).collect::<Vec<_>>(),
            "not_promised": self.excused().map(finding).collect::<Vec<_>>(),
        })
    }
}

fn said(finding: &Finding) -> String {
    let check = finding.check;
    let mut text = format!("{check} ({}): {}\n", check.about(), finding.sentence);
    for event in &finding.evidence {
        let _ = writeln!(text, "  {}", line(event));
    }
    text
}

/// An event as it is in the file, with its time in front.
fn line(event: &Event) -> String {
    let json = serde_json::to_string(event).unwrap_or_default();
    format!("{:>12}  {json}", moment(event.at))
}

/// A time since the machine was started.
pub(super) fn moment(nanos: u64) -> String {
    format!(
        "{}.{:06} s",
        nanos / 1_000_000_000,
        nanos / 1_000 % 1_000_000
    )
}

/// A length of time.
pub(super) fn millis(nanos: u64) -> String {
    match nanos / 1_000_000 {
        0 => format!("{} µs", nanos / 1_000),
        millis => format!("{millis} ms"),
    }
}
