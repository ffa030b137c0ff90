//! C7: a release that arrives late or twice changes nothing: it ends no hold, neither one that was
//! given back before nor anybody else's.

use std::collections::HashMap;

use tenure::core::PromiseId;
use tenure::{Fence, OwnerId};

use super::holds::Hold;
use super::{Case, Check, Finding, Reach, Verdict};
use crate::history::{Event, LostBy, Wanted, What};

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) -> Reach {
    let late = released_twice(case, verdict);
    let lost = ended_by_somebody_else(case, verdict);
    Reach::of(
        late + lost,
        "late releases and holds that the store disowned",
    )
    .but_if(
        late == 0,
        "nobody gave back again what was given back (with its owner)",
    )
}

/// A release that ended a hold which the store had said before is given back.
fn released_twice(case: &Case<'_>, verdict: &mut Verdict) -> usize {
    let mut judged = 0;
    let holds = case.holds.all.iter();
    let holds: HashMap<(OwnerId, Fence), &Hold> = holds
        .filter_map(|hold| Some(((hold.owner?, hold.fence), hold)))
        .collect();
    let mut calls: HashMap<(u32, u64), (&Event, &Hold)> = HashMap::new();
    for event in &case.history.events {
        match &event.what {
            What::Invoke {
                call,
                wanted: Wanted::LateRelease { owner, fence, .. },
            } => {
                let hold = holds.get(&(*owner, *fence));
                let ended = hold.filter(|it| it.released.is_some_and(|at| at < event.at));
                if let Some(hold) = ended {
                    judged += 1;
                    calls.insert((event.process, *call), (event, hold));
                }
            }
            What::Ok { call, .. } => {
                if let Some((asked, hold)) = calls.remove(&(event.process, *call)) {
                    let sentence = format!(
                        "of {:?}, the hold with the fence {} was given back twice, and the second \
                         time ended one, too",
                        hold.name, hold.fence
                    );
                    let granted = hold.evidence.iter().map(|index| case.event(*index));
                    let rest = [asked.clone(), event.clone()];
                    let evidence = granted.chain(rest).collect();
                    verdict.findings.push(Finding {
                        check: Check::C7,
                        sentence,
                        evidence,
                        excuse: case.excuse(&[PromiseId::S2], asked.at),
                    });
                }
            }
            _ => {}
        }
    }
    judged
}

/// A hold that was valid, and of which the store said that there is no such hold.
fn ended_by_somebody_else(case: &Case<'_>, verdict: &mut Verdict) -> usize {
    let mut judged = 0;
    for hold in &case.holds.all {
        let last = hold.evidence.last().map(|index| case.event(*index));
        let Some(event) = last.filter(is_forgotten) else {
            continue;
        };
        judged += 1;
        let Some(ended) = hold.ended.filter(|at| *at < hold.valid_until) else {
            continue;
        };
        let late = case.history.events.iter().filter(|event| {
            let meanwhile = hold.granted <= event.at && event.at <= ended;
            meanwhile && is_late_release(event, &hold.name)
        });
        let granted = hold.evidence.iter().take(2).map(|index| case.event(*index));
        let evidence = granted.chain(late.cloned()).chain([event]).collect();
        verdict.findings.push(Finding {
            check: Check::C7,
            sentence: format!(
                "{:?} with the fence {} was valid, and the store said that there is no such hold",
                hold.name, hold.fence
            ),
            evidence,
            excuse: case.excuse(&[PromiseId::S2], ended),
        });
    }
    judged
}

fn is_forgotten(event: &Event) -> bool {
    matches!(
        event.what,
        What::Lost {
            why: LostBy::Forgotten,
            ..
        }
    )
}

fn is_late_release(event: &Event, lock: &str) -> bool {
    match &event.what {
        What::Invoke {
            wanted: Wanted::LateRelease { name, .. },
            ..
        } => name == lock,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sketch::Sketch;
    use super::*;

    fn found(sketch: &Sketch) -> usize {
        let verdict = super::super::check(&sketch.history());
        verdict
            .violations()
            .filter(|it| it.check == Check::C7)
            .count()
    }

    #[test]
    fn a_second_release_that_ends_something_is_found() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(90).released(20);
        sketch.releases_again(1, 30, 100, true);
        assert_eq!(found(&sketch), 1);
    }

    #[test]
    fn a_second_release_that_finds_nothing_is_fine_and_so_is_one_of_a_lease_that_lingered() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(90).released(20);
        sketch.releases_again(1, 30, 100, false);
        assert_eq!(found(&sketch), 0);
        let mut sketch = Sketch::new();
        sketch
            .holds(1, 10, "exclusive", 100)
            .until(90)
            .lost(90, "expired");
        sketch.releases_again(1, 91, 100, true);
        assert_eq!(found(&sketch), 0);
    }

    #[test]
    fn a_valid_hold_that_the_store_does_not_know_any_more_is_found() {
        let mut sketch = Sketch::new();
        sketch.holds(1, 10, "exclusive", 100).until(20).released(15);
        sketch.holds(2, 25, "exclusive", 200).until(90);
        sketch.lost(40, "forgotten");
        sketch.releases_again(1, 30, 100, false);
        assert_eq!(found(&sketch), 1);
    }

    #[test]
    fn one_that_had_expired_or_was_taken_by_force_is_none_of_its_business() {
        let mut sketch = Sketch::new();
        sketch
            .holds(2, 25, "exclusive", 200)
            .until(90)
            .lost(90, "forgotten");
        sketch
            .holds(3, 95, "exclusive", 300)
            .until(190)
            .lost(100, "forced");
        assert_eq!(found(&sketch), 0);
    }
}
