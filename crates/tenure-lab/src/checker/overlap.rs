//! C1: two incompatible holders must not be valid at the same time.

use tenure::Mode;
use tenure::core::PromiseId;

use super::holds::Hold;
use super::{Case, Check, Finding, Reach, Verdict};
use crate::checker::show::{millis, moment};

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) -> Reach {
    let mut spans: Vec<Span<'_>> = Vec::new();
    let mut over = 0;
    for hold in &case.holds.all {
        over += usize::from(hold.end() <= hold.granted);
        let parts = hold.spans().into_iter().filter(|(from, to, _)| from < to);
        spans.extend(parts.map(|(from, to, mode)| Span {
            from,
            to,
            mode,
            hold,
        }));
    }
    spans.sort_by(|one, other| (&one.hold.name, one.from).cmp(&(&other.hold.name, other.from)));
    let mut current: Vec<&Span<'_>> = Vec::new();
    for span in &spans {
        current.retain(|it| it.hold.name == span.hold.name && it.to > span.from);
        if !span.mode.fits(current.iter().map(|it| it.mode)) {
            verdict.findings.push(finding(case, span, &current));
        }
        current.push(span);
    }
    let grants = case.holds.all.len();
    let late = format!("{over} grants that were over when their holder was told");
    Reach::of(grants - over, "grants")
        .but_if(grants == 0, "nobody was told of a grant")
        .but_if(over > 0, &late)
}

/// A hold in one mode.
struct Span<'a> {
    from: u64,
    to: u64,
    mode: Mode,
    hold: &'a Hold,
}

fn finding(case: &Case<'_>, span: &Span<'_>, current: &[&Span<'_>]) -> Finding {
    // Of those who do not go together with it, the one that goes on for longest shows it best; of
    // permits it is all of them together.
    let others: Vec<&Span<'_>> = match span.mode {
        Mode::Permits(_) => current.to_vec(),
        _ => {
            let alone = current
                .iter()
                .filter(|it| !span.mode.fits([it.mode].into_iter()));
            alone.max_by_key(|it| it.to).into_iter().copied().collect()
        }
    };
    let until = others.iter().map(|it| it.to).min().unwrap_or(span.to);
    let until = until.min(span.to);
    let mut indices: Vec<usize> = Vec::new();
    for it in others.iter().copied().chain([span]) {
        indices.extend(&it.hold.evidence);
    }
    indices.sort_unstable();
    indices.dedup();
    let fences: Vec<String> = others.iter().map(|it| it.hold.fence.to_string()).collect();
    Finding {
        check: Check::C1,
        sentence: format!(
            "{:?} was held {} (fence {}) by process {} while others held it (fence {}), for {} from {} on",
            span.hold.name,
            span.mode,
            span.hold.fence,
            span.hold.process,
            fences.join(", "),
            millis(until - span.from),
            moment(span.from),
        ),
        evidence: indices.into_iter().map(|index| case.event(index)).collect(),
        excuse: case.excuse(&[PromiseId::S2], span.from),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sketch::Sketch;
    use super::*;

    fn found(sketch: &Sketch) -> Vec<Finding> {
        let verdict = super::super::check(&sketch.history());
        let mut findings = verdict.findings;
        findings.retain(|it| it.check == Check::C1);
        findings
    }

    #[test]
    fn a_second_holder_before_the_first_ones_validity_has_ended_is_found() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(50);
        sketch.holds(2, 49, "exclusive", 200).until(90);
        let found = found(&sketch);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].sentence.contains("for 1 ms"),
            "{}",
            found[0].sentence
        );
        assert_eq!(found[0].evidence.len(), 4, "two calls, asked and answered");
    }

    #[test]
    fn a_second_holder_from_then_on_is_fine() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(50);
        sketch.holds(2, 50, "exclusive", 200).until(90);
        assert!(found(&sketch).is_empty());
    }

    #[test]
    fn a_renewal_prolongs_and_a_release_a_loss_or_a_kill_end_it() {
        let mut sketch = Sketch::new();
        sketch
            .holds(1, 10, "exclusive", 100)
            .until(50)
            .renewed(40, 80);
        sketch.holds(2, 60, "exclusive", 200).until(90).released(65);
        assert_eq!(found(&sketch).len(), 1);
        for end in ["release", "loss", "kill"] {
            let mut sketch = Sketch::new();
            let hold = sketch.holds(1, 10, "exclusive", 100).until(50);
            let hold = hold.renewed(40, 80);
            match end {
                "release" => hold.released(55),
                "loss" => hold.lost(55, "expired"),
                _ => hold.killed(55),
            };
            sketch.holds(2, 60, "exclusive", 200).until(90);
            assert!(found(&sketch).is_empty(), "{end}");
        }
    }

    #[test]
    fn readers_go_together_and_exclude_a_writer() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "shared", 100).until(50);
        sketch.holds(2, 20, "shared", 200).until(60);
        assert!(found(&sketch).is_empty());
        sketch.holds(3, 55, "exclusive", 300).until(90);
        assert_eq!(found(&sketch).len(), 1);
    }

    #[test]
    fn a_writer_that_became_a_reader_lets_readers_in() {
        let mut sketch = Sketch::new();
        sketch
            .holds(1, 10, "exclusive", 100)
            .until(50)
            .downgraded(30);
        sketch.holds(2, 31, "shared", 200).until(60);
        assert!(found(&sketch).is_empty());
        sketch.holds(3, 29, "shared", 150).until(31);
        assert_eq!(found(&sketch).len(), 1);
    }

    #[test]
    fn permits_are_counted() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "2/3", 100).until(50);
        sketch.holds(2, 20, "1/3", 200).until(60);
        assert!(found(&sketch).is_empty());
        sketch.holds(3, 30, "1/3", 300).until(60);
        assert_eq!(found(&sketch).len(), 1);
    }

    #[test]
    fn other_names_do_not_matter() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(50);
        sketch
            .on("another")
            .holds(2, 20, "exclusive", 200)
            .until(60);
        assert!(found(&sketch).is_empty());
    }

    #[test]
    fn after_a_fault_that_breaks_the_promise_it_is_excused() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(50);
        sketch.fault(20, "clock step", &[PromiseId::S2]);
        sketch.holds(2, 30, "exclusive", 200).until(60);
        let found = found(&sketch);
        assert!(found[0].excuse.is_some());
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(50);
        sketch.holds(2, 30, "exclusive", 200).until(60);
        sketch.fault(31, "clock step", &[PromiseId::S2]);
        sketch.fault(5, "pause", &[]);
        let verdict = super::super::check(&sketch.history());
        assert_eq!(
            verdict
                .violations()
                .filter(|it| it.check == Check::C1)
                .count(),
            1
        );
    }
}
