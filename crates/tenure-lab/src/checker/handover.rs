//! C5: a lock is not free for long while somebody waits for it, and nobody is overtaken.

use std::collections::{BTreeMap, HashMap, HashSet};

use tenure::core::{Order, PromiseId};
use tenure::{Fence, OwnerId};

use super::holds::{Acquire, Answer, Holds};
use super::show::{millis, moment};
use super::{Case, Check, Finding, Reach, Verdict};
use crate::history::{Asked, Event, Said, What};

/// For so long after a fault things may still be rough: dead waiters keep their places, grants that
/// nobody claimed last, and so on.
const AFTERMATH: u64 = 30_000_000_000;

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) -> Reach {
    let Some(terms) = case.history.terms() else {
        return Reach::none("how long a lock may be free is not said: there is no `run`");
    };
    let (idle, rough) = (terms.idle_ms * 1_000_000, terms.recovery_ms * 1_000_000);
    let waits = idle_while_awaited(case, (idle, rough), verdict);
    let places = match terms.order {
        Order::Arrival => overtaken(case, verdict),
        Order::Race => 0,
    };
    let races = terms.order == Order::Race;
    Reach::of(waits + places, "waits and places in the queue")
        .but_if(waits == 0, "nobody waited")
        .but_if(races, "the order of waiters: this store promises none")
        .but_if(
            !races && places == 0,
            "the order of waiters: no place in a queue was seen served",
        )
}

/// How many were granted a lock that somebody else held when they asked.
pub(super) fn count(holds: &Holds) -> usize {
    let mut ends: HashMap<&str, u64> = HashMap::new();
    let mut handovers = 0;
    for hold in &holds.all {
        let end = ends.entry(&hold.name).or_default();
        handovers += usize::from(hold.invoked < *end && *end <= hold.granted);
        *end = (*end).max(hold.end());
    }
    handovers
}

/// Answers how many waits were judged.
fn idle_while_awaited(case: &Case<'_>, bounds: (u64, u64), verdict: &mut Verdict) -> usize {
    let busy = occupied(&case.holds);
    let waiters = || case.holds.acquires.iter().filter(|it| it.waits);
    for waiter in waiters() {
        let end = waiter.answered.unwrap_or(case.last_at());
        let Some((from, to)) = longest_gap(busy.get(&*waiter.name), waiter.invoked, end) else {
            continue;
        };
        let rough = case.is_rough(from.saturating_sub(AFTERMATH), to);
        let bound = if rough { bounds.1 } else { bounds.0 };
        if to - from > bound {
            verdict.findings.push(Finding {
                check: Check::C5,
                sentence: format!(
                    "{:?} was free for {} from {} on while process {} waited for it; {} are allowed",
                    waiter.name,
                    millis(to - from),
                    moment(from),
                    waiter.process,
                    millis(bound)
                ),
                evidence: waiter.evidence.iter().map(|index| case.event(*index)).collect(),
                excuse: case.excuse(&[PromiseId::L1, PromiseId::L2, PromiseId::L3], from),
            });
        }
    }
    waiters().count()
}

/// Per name, when it was held at the store, or may have been: in order, without overlaps.
fn occupied(holds: &Holds) -> HashMap<&str, Vec<(u64, u64)>> {
    let mut busy: HashMap<&str, Vec<(u64, u64)>> = HashMap::new();
    for hold in &holds.all {
        let span = (hold.granted, hold.free_by());
        busy.entry(&hold.name).or_default().push(span);
    }
    for lost in &holds.acquires {
        let Acquire {
            invoked, answered, ..
        } = lost;
        if matches!(lost.answer, Answer::Unknown | Answer::Killed) {
            // It may have been granted, and nobody was told.
            let until = answered.unwrap_or(*invoked) + lost.ttl + AFTERMATH;
            busy.entry(&lost.name).or_default().push((*invoked, until));
        }
    }
    for spans in busy.values_mut() {
        spans.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(spans.len());
        for (from, to) in spans.drain(..) {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        *spans = merged;
    }
    busy
}

/// The longest time between `from` and `to` in which nobody held it.
fn longest_gap(busy: Option<&Vec<(u64, u64)>>, from: u64, to: u64) -> Option<(u64, u64)> {
    let spans = busy.map_or(&[][..], Vec::as_slice);
    let first = spans.partition_point(|span| span.1 <= from);
    let mut gaps = Vec::new();
    let mut free_since = from;
    for span in spans[first..].iter().take_while(|span| span.0 < to) {
        gaps.push((free_since, span.0.max(free_since)));
        free_since = span.1;
    }
    gaps.push((free_since, to.max(free_since)));
    gaps.into_iter().max_by_key(|(from, to)| to - from)
}

/// One owner's way through the queue of one name.
#[derive(Default)]
struct Ticket<'a> {
    asked: Option<&'a Event>,
    queued: Option<&'a Event>,
    granted: Option<(&'a Event, Fence)>,
}

/// Fences are given in grant order, so whoever queued up before somebody else asked must have the
/// lower one. Answers how many places in a queue were judged.
fn overtaken(case: &Case<'_>, verdict: &mut Verdict) -> usize {
    let mut places = 0;
    for (name, tickets) in tickets(case) {
        let mut tickets: Vec<_> = tickets
            .iter()
            .filter_map(|it| Some((it.asked?, it.queued, it.granted?)))
            .collect();
        let mut queued: Vec<_> = tickets.clone();
        queued.retain(|it| it.1.is_some());
        places += queued.len();
        queued.sort_by_key(|it| it.1.map(|event| event.at));
        tickets.sort_by_key(|it| it.0.at);
        let mut queued = queued.into_iter().peekable();
        let mut last: Option<(&Event, &Event, Fence)> = None;
        for (asked, _, (granted, fence)) in tickets {
            let before = |it: &(_, Option<&Event>, _)| it.1.is_some_and(|it| it.at < asked.at);
            while let Some((_, Some(place), (told, fence))) = queued.next_if(before) {
                if last.is_none_or(|last| last.2 < fence) {
                    last = Some((place, told, fence));
                }
            }
            let Some((place, told, later)) = last.filter(|last| last.2 > fence) else {
                continue;
            };
            // Whoever cannot be reached, or let its grant go by, may be passed over.
            let from = place.at.saturating_sub(AFTERMATH);
            if case.is_rough(from, told.at.max(granted.at)) {
                continue;
            }
            verdict.findings.push(Finding {
                check: Check::C5,
                sentence: format!(
                    "in the queue of {name:?}, whoever got the fence {later} was overtaken by \
                     fence {fence}, asked for later"
                ),
                evidence: [place, asked, granted, told].map(Clone::clone).to_vec(),
                excuse: None,
            });
        }
    }
    places
}

fn tickets<'a>(case: &'a Case<'_>) -> BTreeMap<&'a str, Vec<Ticket<'a>>> {
    let mut tickets: BTreeMap<&str, HashMap<OwnerId, Ticket<'_>>> = BTreeMap::new();
    let mut cancelled: HashSet<OwnerId> = HashSet::new();
    let mut calls: HashMap<(u32, u64), (&str, OwnerId)> = HashMap::new();
    for event in &case.history.events {
        match &event.what {
            What::Asked { call, name, step } => {
                let Some(owner) = step.owner else { continue };
                calls.insert((event.process, *call), (name, owner));
                match step.ask {
                    Asked::Acquire { .. } => {
                        let ticket = tickets.entry(name).or_default().entry(owner).or_default();
                        ticket.asked = ticket.asked.or(Some(event));
                    }
                    Asked::Cancel => {
                        cancelled.insert(owner);
                    }
                    _ => {}
                }
            }
            What::Answered { call, said, .. } => {
                let Some((name, owner)) = calls.get(&(event.process, *call)) else {
                    continue;
                };
                let ticket = tickets.entry(name).or_default().entry(*owner).or_default();
                match said {
                    Said::Queued { .. } => ticket.queued = ticket.queued.or(Some(event)),
                    Said::Granted { fence, .. } => {
                        ticket.granted = ticket.granted.or(Some((event, *fence)));
                    }
                    _ => {}
                }
            }
            What::Pushed {
                name, owner, fence, ..
            } => {
                let ticket = tickets.entry(name).or_default().entry(*owner).or_default();
                ticket.granted = ticket.granted.or(Some((event, *fence)));
            }
            _ => {}
        }
    }
    let of_name = |tickets: HashMap<OwnerId, Ticket<'a>>| {
        let tickets = tickets.into_iter();
        let tickets = tickets.filter(|(owner, _)| !cancelled.contains(owner));
        tickets.map(|(_, ticket)| ticket).collect()
    };
    let tickets = tickets.into_iter();
    tickets
        .map(|(name, tickets)| (name, of_name(tickets)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sketch::Sketch;
    use super::*;

    fn found(sketch: &Sketch) -> usize {
        let verdict = super::super::check(&sketch.history());
        verdict
            .violations()
            .filter(|it| it.check == Check::C5)
            .count()
    }

    #[test]
    fn a_lock_that_stays_free_while_somebody_waits_is_found() {
        let mut sketch = Sketch::promising(1_000, 60_000);
        sketch
            .holds(1, 10, "exclusive", 100)
            .until(500)
            .released(100);
        sketch
            .asked(2, 50)
            .holds(2, 1_200, "exclusive", 200)
            .until(1_500);
        assert_eq!(found(&sketch), 1);
    }

    #[test]
    fn a_shorter_time_and_a_longer_one_after_a_fault_are_fine() {
        let mut sketch = Sketch::promising(1_000, 60_000);
        sketch
            .holds(1, 10, "exclusive", 100)
            .until(500)
            .released(100);
        sketch
            .asked(2, 50)
            .holds(2, 1_050, "exclusive", 200)
            .until(1_500);
        assert_eq!(found(&sketch), 0);
        let mut sketch = Sketch::promising(1_000, 60_000);
        sketch.fault(20, "cut", &[]);
        sketch
            .holds(1, 10, "exclusive", 100)
            .until(500)
            .released(100);
        sketch
            .asked(2, 50)
            .holds(2, 2_000, "exclusive", 200)
            .until(2_500);
        assert_eq!(found(&sketch), 0);
    }

    #[test]
    fn a_hold_that_was_not_given_back_occupies_it_until_its_lease_must_have_ended() {
        let mut sketch = Sketch::promising(1_000, 60_000);
        // The ttl of a sketch is one second: free at 1500 at the latest.
        sketch
            .holds(1, 10, "exclusive", 100)
            .until(500)
            .lost(400, "expired");
        sketch
            .asked(2, 50)
            .holds(2, 2_400, "exclusive", 200)
            .until(2_900);
        assert_eq!(found(&sketch), 0);
    }

    #[test]
    fn whoever_queued_up_first_must_not_be_overtaken() {
        let mut sketch = Sketch::promising(1_000, 60_000);
        sketch.queues(1, 10, 300);
        sketch.queues(2, 20, 200);
        assert_eq!(found(&sketch), 1);
        let mut sketch = Sketch::promising(1_000, 60_000);
        sketch.queues(1, 10, 200);
        sketch.queues(2, 20, 300);
        assert_eq!(found(&sketch), 0);
        let mut sketch = Sketch::promising(1_000, 60_000);
        sketch.queues(1, 10, 300);
        sketch.fault(15, "pause", &[]);
        sketch.queues(2, 20, 200);
        assert_eq!(
            found(&sketch),
            0,
            "whoever cannot be reached is passed over"
        );
    }
}
