//! Looks for an order of the steps that explains all answers: Wing and Gong's search, with a memory of
//! what was tried (Lowe), the likeliest step first.
//!
//! What makes it fast is that fences tell in which order, and mostly when, grants were made: a fence
//! that somebody was seen with must have been given to just them, by the next step whose grants reach
//! that far. So a wrong guess is noticed at the next grant and not at the next answer that it spoils.

use std::collections::HashSet;

use tenure::OwnerId;
use tenure::core::{Action, Cancel};

use super::model::{Memory, fingerprint};
use super::{Asking, Course};

/// What the search found.
pub(super) enum Outcome {
    /// There is such an order.
    Explained,
    /// There is none, and here it ends.
    Impossible(Stuck),
    /// It was given up; so far it came.
    TooMuch(Stuck),
}

/// Where the longest attempt ended.
pub(super) struct Stuck {
    pub(super) sentence: String,
    pub(super) evidence: Vec<usize>,
}

/// So many times it is tried what a step leads to. An order that is found takes some thousands, whatever the length. Not
/// counted in states, since each costs more the more steps there are that may or may not have happened.
const PATIENCE: usize = 300_000;

/// Looks for an order of all answered steps, and as many others as it takes.
pub(super) fn search(course: &Course) -> Outcome {
    // Few of the steps that may have been carried out twice were, and each that may or may not have been doubles the
    // orders: so first without them, which is an order all the same.
    match Search::new(course, Twins::Never).run() {
        Outcome::Explained => Outcome::Explained,
        stuck if !course.steps.iter().any(|step| step.is_twin) => stuck,
        _ => Search::new(course, Twins::Perhaps).run(),
    }
}

/// Whether steps may have been carried out a second time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twins {
    Never,
    Perhaps,
}

pub(super) struct Search<'a> {
    pub(super) course: &'a Course,
    /// Steps with an answer, in the order in which they were asked; then those without.
    answered: Vec<usize>,
    unanswered: Vec<usize>,
    /// Who was seen with which fence, in the order of the fences.
    grants: Vec<(u64, OwnerId)>,
    /// What the store may do without being asked.
    by_itself: Asking,
    seen: HashSet<(u64, u64)>,
    /// How often it was tried what a step leads to.
    tried: usize,
    /// The node that explains most.
    pub(super) best: Option<Node>,
}

/// Some steps are explained, and this is what the store remembers after them.
#[derive(Clone)]
pub(super) struct Node {
    done: Done,
    pub(super) memory: Memory,
    /// The store's time at the last step.
    clock: u64,
    /// The highest fence that was given so far.
    highest: u64,
}

/// A node, and what has not been tried after it; the last is tried first.
struct Frame {
    node: Node,
    candidates: Vec<Next>,
    /// By then the next step has taken effect.
    by: u64,
    ready: Vec<Node>,
}

/// Which steps are explained.
#[derive(Clone)]
struct Done {
    bits: Vec<u64>,
    /// All answered steps before this one are among them.
    first: usize,
    /// How many answered steps.
    count: usize,
    hash: u64,
}

/// What may happen next, at this time of the store.
pub(super) struct Next {
    pub(super) what: Happens,
    at: u64,
    /// Only if somebody gets exactly this fence by it: the time is a guess from it.
    gives: Option<u64>,
}

#[derive(Clone, Copy)]
pub(super) enum Happens {
    Step(usize),
    /// The store serves the queue by itself, because somebody died or a lease has ended.
    ByItself,
}

impl<'a> Search<'a> {
    fn new(course: &'a Course, twins: Twins) -> Self {
        let steps = (0..course.steps.len())
            .filter(|step| twins == Twins::Perhaps || !course.steps[*step].is_twin);
        let (answered, unanswered) = steps.partition(|step| course.steps[*step].said.is_some());
        let grants = course.grants.iter();
        let mut grants: Vec<_> = grants
            .map(|(owner, fence)| (fence.as_u64(), *owner))
            .collect();
        grants.sort_unstable();
        grants.dedup();
        Self {
            course,
            answered,
            unanswered,
            grants,
            by_itself: Asking {
                asked: u64::MAX,
                answered: u64::MAX,
                // Of nobody: forgets what has ended, lets in whoever can get in, and nothing else.
                action: Action::Cancel(Cancel {
                    owner: OwnerId::from_bytes([0; 16]),
                }),
                said: None,
                is_twin: false,
                evidence: Vec::new(),
            },
            seen: HashSet::new(),
            tried: 0,
            best: None,
        }
    }

    fn run(mut self) -> Outcome {
        let start = Node {
            done: Done {
                bits: vec![0; self.course.steps.len() / 64 + 1],
                first: 0,
                count: 0,
                hash: 0,
            },
            memory: Memory::default(),
            clock: 0,
            highest: 0,
        };
        let mut frames = Vec::new();
        let mut next = Some(start);
        loop {
            if let Some(node) = next.take().filter(|node| self.is_new(node)) {
                if self.tried > PATIENCE {
                    return Outcome::TooMuch(self.stuck());
                }
                if node.done.first == self.answered.len() {
                    return Outcome::Explained;
                }
                let best = self.best.as_ref().map_or(0, |best| best.done.count + 1);
                if node.done.count >= best {
                    self.best = Some(node.clone());
                }
                let (mut candidates, by) = self.candidates(&node);
                candidates.reverse();
                frames.push(Frame {
                    node,
                    candidates,
                    by,
                    ready: Vec::new(),
                });
            }
            next = self.advance(&mut frames);
            if next.is_none() && frames.pop().is_none() {
                return Outcome::Impossible(self.stuck());
            }
        }
    }

    fn is_new(&mut self, node: &Node) -> bool {
        let Node { memory, clock, .. } = node;
        let key = fingerprint(&memory.state)
            ^ scrambled(memory.closed_until)
            ^ scrambled(*clock).rotate_left(1)
            ^ scrambled(node.highest).rotate_left(2);
        self.seen.insert((node.done.hash, key))
    }

    /// The next node after that of the last frame, the likeliest first.
    fn advance(&mut self, frames: &mut [Frame]) -> Option<Node> {
        let last = frames.len().checked_sub(1)?;
        loop {
            if let Some(node) = frames[last].ready.pop() {
                return Some(node);
            }
            let next = frames[last].candidates.pop()?;
            let (node, by) = (&frames[last].node, frames[last].by);
            self.tried += 1;
            let mut after = match next.what {
                Happens::ByItself => self.idles(node, next.at, by),
                Happens::Step(step) => self.steps(node, step, next.at, by),
            };
            after.retain(|memory| self.fits(node, memory, next.gives));
            let after = after.into_iter().rev().map(|memory| Node {
                done: match next.what {
                    Happens::Step(step) => self.with(&node.done, step),
                    _ => node.done.clone(),
                },
                highest: node.highest.max(memory.state.last_fence.as_u64()),
                memory,
                clock: next.at,
            });
            let after: Vec<_> = after.collect();
            frames[last].ready = after;
        }
    }

    fn steps(&self, node: &Node, step: usize, at: u64, by: u64) -> Vec<Memory> {
        let (model, asking) = (&self.course.model, &self.course.steps[step]);
        let mut after = model.step(&node.memory, asking, at, (asking.asked, by));
        if asking.said.is_none() {
            // What would have happened without it, too, need not be done by it.
            let idle = model.step(&node.memory, &self.by_itself, at, (asking.asked, by));
            after.retain(|memory| !idle.contains(memory));
        }
        after
    }

    /// What the store may do by itself: let somebody in. Whatever else has ended is forgotten anyway.
    fn idles(&self, node: &Node, at: u64, by: u64) -> Vec<Memory> {
        let model = &self.course.model;
        let mut after = model.step(&node.memory, &self.by_itself, at, (by, by));
        after.retain(|memory| memory.state.last_fence > node.memory.state.last_fence);
        after
    }

    /// Whether everybody who was seen with a fence that was given by now has it, and somebody the one
    /// that had to be given.
    fn fits(&self, node: &Node, memory: &Memory, gives: Option<u64>) -> bool {
        let state = &memory.state;
        let has = |(fence, owner): &(u64, OwnerId)| {
            let holder = state.holder(*owner);
            holder.is_some_and(|it| it.fence.as_u64() == *fence)
        };
        let gives_it = gives.is_none_or(|fence| {
            let mut grants = self.grants.iter().filter(|it| it.0 == fence);
            grants.any(has)
        });
        let first = self.grants.partition_point(|it| it.0 <= node.highest);
        let given = self.grants[first..].iter();
        let mut given = given.take_while(|it| it.0 <= state.last_fence.as_u64());
        gives_it && (!self.course.model.fences_grow || given.all(has))
    }

    /// What may come next: whatever was asked before any other step that is left had been answered.
    /// And when the first of those must have happened.
    pub(super) fn candidates(&self, node: &Node) -> (Vec<Next>, u64) {
        let steps = &self.course.steps;
        let mut earliest = u64::MAX;
        let mut possible = Vec::new();
        for step in &self.answered[node.done.first..] {
            if steps[*step].asked > earliest {
                break;
            }
            if !node.done.has(*step) {
                earliest = earliest.min(steps[*step].answered);
                possible.push(*step);
            }
        }
        possible.retain(|step| steps[*step].asked <= earliest);
        let time = |step: &usize| steps[*step].said.as_ref().map_or(0, |(now, _)| *now);
        possible.sort_by_key(time);
        let soonest = possible.first().map_or(node.clock, time);
        let lost = self.unanswered.iter().copied();
        let lost = lost.filter(|step| steps[*step].asked <= earliest && !node.done.has(*step));
        let mut unseen: Vec<_> = lost.map(Happens::Step).collect();
        unseen.insert(0, Happens::ByItself);
        let mut candidates = Vec::new();
        // A grant that no answered step explains was made by one whose answer was lost.
        for (at, fence) in self.guessed(node, soonest) {
            let gives = Some(fence);
            candidates.extend(unseen.iter().map(|what| Next {
                what: *what,
                at,
                gives,
            }));
        }
        let gives = None;
        candidates.extend(possible.iter().map(|step| Next {
            what: Happens::Step(*step),
            at: time(step),
            gives,
        }));
        let mut times = vec![node.clock.max(1), soonest.max(node.clock)];
        times.dedup();
        for at in times {
            candidates.extend(unseen.iter().map(|what| Next {
                what: *what,
                at,
                gives,
            }));
        }
        (candidates, earliest)
    }

    /// Which fences may have been given before the next answered step, and when: a fence is the time of
    /// its grant, unless the store's clock was behind.
    fn guessed(&self, node: &Node, soonest: u64) -> Vec<(u64, u64)> {
        let model = &self.course.model;
        if !model.fences_grow {
            let mut fences: Vec<u64> = self.grants.iter().map(|it| it.0).collect();
            fences.retain(|fence| node.clock <= *fence && *fence < soonest);
            return fences.into_iter().map(|fence| (fence, fence)).collect();
        }
        let first = self.grants.partition_point(|it| it.0 <= node.highest);
        let next = self.grants.get(first).map(|it| it.0);
        let last = node.memory.state.last_fence.as_u64();
        let guess = |fence| match fence == last + 1 {
            true => (soonest, fence),
            false => (fence, fence),
        };
        let next = next.map(guess).into_iter();
        next.filter(|(at, _)| *at <= soonest).collect()
    }

    fn with(&self, done: &Done, step: usize) -> Done {
        let mut done = done.clone();
        done.bits[step / 64] |= 1 << (step % 64);
        done.count += usize::from(self.course.steps[step].said.is_some());
        done.hash ^= scrambled(step as u64 + 1);
        while let Some(step) = self.answered.get(done.first)
            && done.has(*step)
        {
            done.first += 1;
        }
        done
    }
}

impl Done {
    fn has(&self, step: usize) -> bool {
        self.bits[step / 64] >> (step % 64) & 1 == 1
    }
}

/// A number that looks random, and is always the same for the same step.
fn scrambled(step: u64) -> u64 {
    let step = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let step = (step ^ (step >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let step = (step ^ (step >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    step ^ (step >> 31)
}
