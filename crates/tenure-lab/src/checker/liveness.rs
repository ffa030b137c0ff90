//! C6: after the last fault everybody gets what they ask for within a bound, and nothing is left over.

use super::holds::{Acquire, Answer};
use super::show::millis;
use super::{Case, Check, Reach, Verdict};
use crate::history::What;

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) -> Reach {
    let events = || case.history.events.iter();
    let calm = events().find(|event| event.what == What::Calm);
    let end = events().find_map(|event| match &event.what {
        What::End { left } => Some((event, left)),
        _ => None,
    });
    let mut judged = 0;
    if let (Some(calm), Some(terms)) = (calm, case.history.terms()) {
        let bound = terms.recovery_ms * 1_000_000;
        judged = waits_after(case, calm.at);
        for acquire in case.holds.acquires.iter().filter(|it| it.waits) {
            if let Some(what) = complaint(acquire, calm.at, bound, end.is_some()) {
                let sentence = format!(
                    "after the last fault, process {} asked for {:?} and {what}",
                    acquire.process, acquire.name
                );
                let evidence = acquire.evidence.iter().map(|index| case.event(*index));
                let evidence = [calm.clone()].into_iter().chain(evidence).collect();
                verdict.add(Check::C6, sentence, evidence);
            }
        }
    }
    if let Some((event, left)) = end.filter(|(_, left)| !left.is_empty()) {
        let sentence = format!("at the end the store still had {}", left.join(", "));
        verdict.add(Check::C6, sentence, vec![event.clone()]);
    }
    let bounded = case.history.terms().is_some();
    Reach::of(judged, "waits after the last fault")
        .but_if(
            !bounded,
            "how long it may take is not said: there is no `run`",
        )
        .but_if(
            calm.is_none(),
            "when the last fault was over is not said: there is no `calm`",
        )
        .but_if(
            bounded && calm.is_some() && judged == 0,
            "nobody waited after the last fault",
        )
        .but_if(end.is_none(), "whether anything is left: there is no `end`")
}

fn waits_after(case: &Case<'_>, calm: u64) -> usize {
    let waits = case.holds.acquires.iter().filter(|it| it.waits);
    waits
        .filter(|it| it.answered.is_none_or(|at| at > calm))
        .count()
}

fn complaint(acquire: &Acquire, calm: u64, bound: u64, ended: bool) -> Option<String> {
    let since = acquire.invoked.max(calm);
    let waited = acquire.answered.unwrap_or(since).saturating_sub(since);
    match acquire.answer {
        Answer::Killed => None,
        Answer::Never => ended.then(|| "never got an answer".to_owned()),
        _ if waited > bound => {
            let (waited, bound) = (millis(waited), millis(bound));
            Some(format!("waited for {waited}; {bound} are allowed"))
        }
        Answer::Failed | Answer::Unknown if acquire.invoked > calm && patient(acquire, bound) => {
            Some("did not get it".to_owned())
        }
        _ => None,
    }
}

/// Whether it would have waited for as long as it may take. Not everybody does so from the first moment of calm:
/// whoever was stopped when it was about to ask waits no longer than was drawn for it.
fn patient(acquire: &Acquire, bound: u64) -> bool {
    acquire.patience.is_none_or(|patience| patience >= bound)
}

#[cfg(test)]
mod tests {
    use super::super::sketch::Sketch;
    use super::*;

    fn found(sketch: &Sketch) -> usize {
        let verdict = super::super::check(&sketch.history());
        verdict
            .violations()
            .filter(|it| it.check == Check::C6)
            .count()
    }

    #[test]
    fn whoever_waits_too_long_after_the_last_fault_is_found() {
        let mut sketch = Sketch::promising(60_000, 1_000);
        sketch
            .asked(1, 10)
            .holds(1, 1_101, "exclusive", 100)
            .until(1_500);
        sketch.note(100, What::Calm);
        assert_eq!(found(&sketch), 1);
        let mut sketch = Sketch::promising(60_000, 1_000);
        sketch
            .asked(1, 10)
            .holds(1, 1_099, "exclusive", 100)
            .until(1_500);
        sketch.note(100, What::Calm);
        assert_eq!(found(&sketch), 0, "it counts from then on");
    }

    #[test]
    fn whoever_does_not_get_it_is_found_unless_it_was_killed() {
        let mut sketch = Sketch::promising(60_000, 1_000);
        sketch.note(100, What::Calm);
        sketch.asks(1, 110);
        let left = Vec::new();
        sketch.note(5_000, What::End { left });
        assert_eq!(found(&sketch), 1);
        for just_before_or_after in [105, 120] {
            let mut sketch = sketch.clone();
            sketch.killed(just_before_or_after);
            assert_eq!(found(&sketch), 0);
        }
    }

    #[test]
    fn whoever_gives_up_early_is_not_found() {
        for (patience, complaints) in [(None, 1), (Some(1_000), 1), (Some(999), 0)] {
            let mut sketch = Sketch::promising(60_000, 1_000);
            sketch.note(100, What::Calm);
            sketch.fails(1, 110, 900, patience);
            assert_eq!(found(&sketch), complaints, "{patience:?}");
        }
    }

    #[test]
    fn whatever_is_left_is_found() {
        let mut sketch = Sketch::promising(60_000, 1_000);
        let left = vec!["x".to_owned()];
        sketch.note(5_000, What::End { left });
        assert_eq!(found(&sketch), 1);
    }
}
