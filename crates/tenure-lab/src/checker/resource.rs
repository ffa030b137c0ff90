//! C3: the protected resource never carries out an old holder's write after a newer one's. With no
//! excuse: it needs no assumption about time, pauses or clocks.

use std::collections::BTreeMap;

use super::{Case, Check, Reach, Verdict};
use crate::history::{Event, What, Write};

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) -> Reach {
    let mut resources: BTreeMap<&str, Resource<'_>> = BTreeMap::new();
    let mut writes = 0;
    for event in &case.history.events {
        let (What::WriteAccepted(write) | What::WriteRefused(write)) = &event.what else {
            continue;
        };
        writes += 1;
        let resource = resources.entry(&write.name).or_default();
        match &event.what {
            What::WriteAccepted(_) => resource.accepted(event, write, verdict),
            _ => resource.refused(event, write, verdict),
        }
    }
    Reach::of(writes, "writes").but_if(writes == 0, "no resource wrote down what it carried out")
}

/// What one resource has done so far.
#[derive(Default)]
struct Resource<'a> {
    writes: u64,
    /// The write with the highest fence.
    highest: Option<(&'a Event, &'a Write)>,
}

impl<'a> Resource<'a> {
    fn accepted(&mut self, event: &'a Event, write: &'a Write, verdict: &mut Verdict) {
        if write.before != self.writes {
            let sentence = format!(
                "{:?} had carried out {} writes and counted {}: a write was lost or done twice",
                write.name, self.writes, write.before
            );
            verdict.add(Check::C3, sentence, vec![event.clone()]);
            self.writes = write.before;
        }
        self.writes += 1;
        match self.highest {
            Some((newer, highest)) if highest.fence > write.fence => {
                let sentence = format!(
                    "{:?} carried out a write with the fence {} after one with {}",
                    write.name, write.fence, highest.fence
                );
                verdict.add(Check::C3, sentence, vec![newer.clone(), event.clone()]);
            }
            _ => self.highest = Some((event, write)),
        }
    }

    fn refused(&mut self, event: &Event, write: &Write, verdict: &mut Verdict) {
        let justified = self
            .highest
            .is_some_and(|(_, highest)| highest.fence > write.fence);
        if !justified {
            let sentence = format!(
                "{:?} refused the fence {} although it has seen none that is higher",
                write.name, write.fence
            );
            verdict.add(Check::C3, sentence, vec![event.clone()]);
        }
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
            .filter(|it| it.check == Check::C3)
            .count()
    }

    #[test]
    fn an_old_write_after_a_newer_one_is_found_whatever_broke() {
        let mut sketch = Sketch::new();
        sketch.fault(1, "clock step", &tenure::core::PromiseId::ALL);
        sketch
            .accepted(10, 100, 0)
            .accepted(20, 200, 1)
            .accepted(30, 100, 2);
        assert_eq!(found(&sketch), 1);
    }

    #[test]
    fn several_writes_under_one_fence_and_a_refused_old_one_are_fine() {
        let mut sketch = Sketch::new();
        sketch
            .accepted(10, 100, 0)
            .accepted(20, 100, 1)
            .accepted(30, 200, 2);
        sketch.refused(40, 100, 3);
        assert_eq!(found(&sketch), 0);
    }

    #[test]
    fn a_lost_or_repeated_write_and_one_refused_without_reason_are_found() {
        let mut lost = Sketch::new();
        lost.accepted(10, 100, 0).accepted(20, 100, 2);
        assert_eq!(found(&lost), 1);
        let mut repeated = Sketch::new();
        repeated.accepted(10, 100, 0).accepted(20, 100, 0);
        assert_eq!(found(&repeated), 1);
        let mut refused = Sketch::new();
        refused.accepted(10, 100, 0).refused(20, 100, 1);
        assert_eq!(found(&refused), 1);
    }
}
