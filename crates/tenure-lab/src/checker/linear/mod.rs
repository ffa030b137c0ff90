//! C4: the store's answers are those of `decide`, in some order that fits in time.
//!
//! A step that was asked and answered took effect at one moment in between; one that was not answered
//! took effect at any later moment, or never. Per name, `search.rs` looks for an order in which
//! [`decide_in`](tenure::core::decide_in) gives every answer that was given (Wing and Gong, with a
//! memory of what was tried, after Lowe). `model.rs` carries out one step, for all that is not known
//! of it: whether waiters could be reached, and whether a process had died.
//!
//! Judged as far as it is known what the store remembers: up to the first fault after which it may
//! have forgotten something.

mod model;
mod search;
mod stuck;

use std::collections::{BTreeMap, HashMap};

use tenure::core::{Action, Inbox, PromiseId};
use tenure::{Fence, OwnerId};

use super::{Case, Check, Reach, Verdict};
use crate::history::{Asked, Memory, Said, What};
use model::Model;
use search::{Outcome, search};

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) -> Reach {
    let mut asked = case.history.events.iter();
    if !asked.any(|event| matches!(event.what, What::Asked { .. })) {
        return Reach::none("what a store was asked is not written down: there is no `asked`");
    }
    match case.history.terms() {
        None => return Reach::none("what the store is like is not said: there is no `run`"),
        Some(terms) if !terms.one_machine => {
            let why = "a lock may be kept by several servers, at once or one after the other, and no order of \
                       steps need exist";
            return Reach::none(why);
        }
        Some(_) => {}
    }
    let forgets = case
        .faults()
        .find(|(_, fault)| fault.memory == Memory::Unsure);
    let until = forgets.map_or(u64::MAX, |(event, _)| event.at);
    let mut reach = Reach::default();
    let (mut names, mut steps) = (0, 0);
    for (name, course) in courses(case, until) {
        match search(&course) {
            Outcome::TooMuch(stuck) => {
                verdict.counts.undecided += 1;
                reach.left_out.push(format!(
                    "{name:?}: undecided, too many orders of {} steps; {}",
                    course.steps.len(),
                    stuck.sentence
                ));
                continue;
            }
            Outcome::Explained => {}
            Outcome::Impossible(stuck) => {
                let indices = stuck.evidence.into_iter();
                let evidence = indices.map(|index| case.event(index)).collect();
                let sentence = format!("of {name:?}, {}", stuck.sentence);
                verdict.add(Check::C4, sentence, evidence);
            }
        }
        names += 1;
        steps += course.steps.iter().filter(|it| it.said.is_some()).count();
    }
    reach.judged = steps;
    reach.things = format!("answers about {names} names");
    if let Some((_, fault)) = forgets {
        let asked = case.history.events.iter().filter(|event| event.at >= until);
        let asked = asked.filter(|event| matches!(event.what, What::Asked { .. }));
        reach.left_out.push(format!(
            "{} steps after {:?}: what the store remembers is not known",
            asked.count(),
            fault.kind
        ));
    }
    reach
}

/// All that was asked about one name.
pub(super) struct Course {
    /// Those with an answer are in the order in which they were asked.
    steps: Vec<Asking>,
    model: Model,
    /// Who was seen with which fence, by whatever answer or push.
    grants: Vec<(OwnerId, Fence)>,
}

/// One step: asked, and answered or not.
pub(super) struct Asking {
    asked: u64,
    /// When it had been answered; `u64::MAX` if it was not.
    answered: u64,
    action: Action,
    /// The answer and the store's time, if there was one.
    said: Option<(u64, Said)>,
    /// Whether another one is the same, and was perhaps carried out twice.
    is_twin: bool,
    /// The events that tell.
    evidence: Vec<usize>,
}

fn courses<'a>(case: &'a Case<'_>, until: u64) -> BTreeMap<&'a str, Course> {
    let mut steps: Vec<(&str, Asking)> = Vec::new();
    let mut open: HashMap<(u32, u64), usize> = HashMap::new();
    let mut grants: HashMap<&str, Vec<(OwnerId, Fence)>> = HashMap::new();
    let mut inboxes: HashMap<u32, Inbox> = HashMap::new();
    let mut kills: Vec<(u64, u32)> = Vec::new();
    let mut recovers = false;
    let mut repeats: Vec<u64> = Vec::new();
    let events = case.history.events.iter().enumerate();
    for (index, event) in events.take_while(|(_, event)| event.at < until) {
        match &event.what {
            What::Asked { call, name, step } => {
                let Some(action) = step.action() else {
                    continue;
                };
                if let Asked::Acquire {
                    inbox: Some(it), ..
                } = &step.ask
                {
                    let inbox = Inbox::parse(it);
                    inboxes.extend(inbox.map(|inbox| (event.process, inbox)));
                }
                open.insert((event.process, *call), steps.len());
                let asking = Asking {
                    asked: event.at,
                    answered: u64::MAX,
                    action,
                    said: None,
                    is_twin: false,
                    evidence: vec![index],
                };
                steps.push((name, asking));
            }
            What::Answered { call, now, said } => {
                let Some(step) = open.remove(&(event.process, *call)) else {
                    continue;
                };
                let (name, asking) = &mut steps[step];
                asking.answered = event.at;
                asking.evidence.push(index);
                asking.said = Some((*now, said.clone()));
                match (said, &asking.action) {
                    (Said::Granted { fence, .. }, Action::Acquire(it)) => {
                        grants.entry(name).or_default().push((it.owner, *fence));
                    }
                    (Said::Queued { recovering: it } | Said::Busy { recovering: it }, _) => {
                        recovers |= it.is_some();
                    }
                    _ => {}
                }
            }
            What::Pushed {
                name, owner, fence, ..
            } => grants.entry(name).or_default().push((*owner, *fence)),
            What::Fault(fault) => {
                kills.extend(fault.kills.map(|process| (event.at, process)));
                repeats.extend((fault.kind == REPEAT).then_some(event.at));
            }
            _ => {}
        }
    }
    let terms = case.history.terms();
    let kills: Vec<(u64, Inbox)> = kills
        .into_iter()
        .filter_map(|(at, process)| Some((at, inboxes.get(&process)?.clone())))
        .collect();
    let model = Model {
        shortens: terms.is_some_and(|terms| terms.shortens),
        deaths: match terms.is_some_and(|terms| terms.sees_death) {
            true => kills,
            false => Vec::new(),
        },
        recovers,
        fences_grow: case.excuse(&[PromiseId::S1], until).is_none(),
    };
    let mut courses: BTreeMap<&str, Course> = BTreeMap::new();
    let twins = twins(&steps, &repeats);
    for (name, asking) in steps.into_iter().chain(twins) {
        let course = courses.entry(name).or_insert_with(|| Course {
            steps: Vec::new(),
            model: model.clone(),
            grants: grants.remove(name).unwrap_or_default(),
        });
        course.steps.push(asking);
    }
    courses
}

/// The kind of fault after which something that was sent may arrive twice.
pub(crate) const REPEAT: &str = "repeat";

/// How long after such a fault the next thing may be sent.
const REPEATED_WITHIN: u64 = 5_000_000_000;

/// Steps that may have been carried out a second time, without an answer.
fn twins<'a>(steps: &[(&'a str, Asking)], repeats: &[u64]) -> Vec<(&'a str, Asking)> {
    let is_repeated = |asked: u64| {
        let mut repeats = repeats.iter();
        repeats.any(|at| *at < asked + REPEATED_WITHIN && asked < at + REPEATED_WITHIN)
    };
    let repeated = steps.iter().filter(|(_, step)| is_repeated(step.asked));
    let twin = |step: &Asking| Asking {
        asked: step.asked,
        answered: u64::MAX,
        action: step.action.clone(),
        said: None,
        is_twin: true,
        evidence: Vec::new(),
    };
    repeated.map(|(name, step)| (*name, twin(step))).collect()
}

#[cfg(test)]
mod tests;
