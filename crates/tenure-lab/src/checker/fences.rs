//! C2: who asks after somebody was granted gets a higher fence; and nobody's fence is given twice.

use std::collections::HashMap;

use tenure::Fence;
use tenure::core::PromiseId;

use super::holds::Hold;
use super::{Case, Check, Finding, Reach, Verdict};

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) -> Reach {
    let mut names: HashMap<&str, Vec<&Hold>> = HashMap::new();
    for hold in &case.holds.all {
        names.entry(&hold.name).or_default().push(hold);
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|(name, _)| *name);
    for (_, holds) in names {
        given_twice(case, &holds, verdict);
        not_growing(case, holds, verdict);
    }
    let grants = case.holds.all.len();
    Reach::of(grants, "grants").but_if(grants == 0, "nobody was told of a grant")
}

fn given_twice(case: &Case<'_>, holds: &[&Hold], verdict: &mut Verdict) {
    let mut given: HashMap<Fence, &Hold> = HashMap::new();
    for hold in holds {
        if let Some(before) = given.insert(hold.fence, hold) {
            let what = format!("the fence {} was given twice", hold.fence);
            verdict.findings.push(finding(case, before, hold, &what));
        }
    }
}

/// Compares each hold with the highest fence that somebody had been told of when it was asked for.
fn not_growing(case: &Case<'_>, mut holds: Vec<&Hold>, verdict: &mut Verdict) {
    let mut granted = holds.clone();
    granted.sort_by_key(|hold| hold.granted);
    holds.sort_by_key(|hold| hold.invoked);
    let mut granted = granted.into_iter().peekable();
    let mut highest: Option<&Hold> = None;
    for hold in holds {
        while let Some(before) = granted.next_if(|it| it.granted < hold.invoked) {
            if highest.is_none_or(|highest| highest.fence < before.fence) {
                highest = Some(before);
            }
        }
        if let Some(before) = highest.filter(|before| before.fence > hold.fence) {
            let (high, low) = (before.fence, hold.fence);
            let what = format!("the fence {high} was given, and after that the lower {low}");
            verdict.findings.push(finding(case, before, hold, &what));
        }
    }
}

fn finding(case: &Case<'_>, before: &Hold, hold: &Hold, what: &str) -> Finding {
    let told = |hold: &Hold| {
        let indices = hold.evidence.iter().take(2);
        indices.map(|index| case.event(*index)).collect::<Vec<_>>()
    };
    let mut evidence = [told(before), told(hold)].concat();
    evidence.sort_by_key(|event| event.at);
    Finding {
        check: Check::C2,
        sentence: format!("of {:?}, {what}", hold.name),
        evidence,
        excuse: case.excuse(&[PromiseId::S1], hold.granted),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sketch::Sketch;
    use super::*;

    fn found(sketch: &Sketch) -> usize {
        let verdict = super::super::check(&sketch.history());
        let findings = verdict.findings.iter();
        findings.filter(|it| it.check == Check::C2).count()
    }

    #[test]
    fn a_lower_fence_for_somebody_who_asked_later_is_found() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(20);
        sketch.holds(2, 30, "exclusive", 99).until(40);
        assert_eq!(found(&sketch), 1);
    }

    #[test]
    fn a_higher_one_and_a_lower_one_for_somebody_who_asked_at_the_same_time_are_fine() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "shared", 100).until(20);
        sketch.holds(2, 30, "exclusive", 101).until(40);
        // Asked for at 5, before anybody was told of 101.
        sketch.asked(3, 5).holds(3, 31, "shared", 90).until(32);
        assert_eq!(found(&sketch), 0);
    }

    #[test]
    fn the_same_fence_twice_is_found_even_at_the_same_time() {
        let mut sketch = Sketch::new();
        sketch.asked(1, 5).holds(1, 10, "shared", 100).until(20);
        sketch.asked(2, 5).holds(2, 10, "shared", 100).until(40);
        assert_eq!(found(&sketch), 1);
    }

    #[test]
    fn names_have_fences_of_their_own() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(20);
        sketch
            .on("another")
            .holds(2, 30, "exclusive", 100)
            .until(40);
        assert_eq!(found(&sketch), 0);
    }
}
