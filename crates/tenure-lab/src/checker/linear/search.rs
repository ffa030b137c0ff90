//! Looks for an order of the steps that explains all answers.

use std::collections::HashSet;

use tenure::OwnerId;
use tenure::core::{Action, Cancel, LockState};

use super::model::fingerprint;
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

/// So many states are looked at.
const PATIENCE: usize = 400_000;

/// Looks for an order of all answered steps, and as many others as it takes.
pub(super) fn search(course: &Course) -> Outcome {
    Search::new(course).run()
}

struct Search<'a> {
    course: &'a Course,
    /// Steps with an answer, in the order in which they were asked; then those without.
    answered: Vec<usize>,
    unanswered: Vec<usize>,
    seen: HashSet<(u64, u64)>,
    /// The node that explains most.
    best: Option<Node>,
}

/// Some steps are explained, and this is the state after them.
#[derive(Clone)]
struct Node {
    done: Done,
    state: LockState,
    /// The store's time at the last step.
    clock: u64,
}

/// A node, and what has not been tried after it; the last is tried first.
struct Frame {
    node: Node,
    candidates: Vec<Next>,
    /// What the store may do by itself now.
    by_itself: Asking,
    ready: Vec<Node>,
}

/// Which steps are explained.
#[derive(Clone)]
struct Done {
    bits: Vec<u64>,
    /// All answered steps before this one are among them.
    first: usize,
    count: usize,
    hash: u64,
}

/// One more step, at this time of the store.
struct Next {
    /// `None`: the store serves the queue by itself, because somebody died or a lease has ended.
    step: Option<usize>,
    at: u64,
    /// Only if that gives somebody exactly this fence: the time is a guess from it.
    gives: bool,
}

impl<'a> Search<'a> {
    fn new(course: &'a Course) -> Self {
        let (answered, unanswered) =
            (0..course.steps.len()).partition(|step| course.steps[*step].said.is_some());
        Self {
            course,
            answered,
            unanswered,
            seen: HashSet::new(),
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
            state: LockState::default(),
            clock: 0,
        };
        let mut frames = Vec::new();
        let mut next = Some(start);
        loop {
            if let Some(node) = next.take().filter(|node| self.is_new(node)) {
                if self.seen.len() > PATIENCE {
                    return Outcome::TooMuch(self.stuck());
                }
                if node.done.first == self.answered.len() {
                    return Outcome::Explained;
                }
                let best = self.best.as_ref().map_or(0, |best| best.done.count + 1);
                if node.done.count >= best {
                    self.best = Some(node.clone());
                }
                frames.push(self.frame(node));
            }
            let Some(frame) = frames.last_mut() else {
                return Outcome::Impossible(self.stuck());
            };
            next = self.advance(frame);
            if next.is_none() {
                frames.pop();
            }
        }
    }

    fn is_new(&mut self, node: &Node) -> bool {
        self.seen.insert((node.done.hash, fingerprint(&node.state)))
    }

    fn frame(&self, node: Node) -> Frame {
        let (mut candidates, earliest) = self.candidates(&node);
        candidates.reverse();
        Frame {
            node,
            candidates,
            by_itself: Asking {
                asked: earliest,
                answered: earliest,
                // Of nobody: forgets what has ended, lets in whoever can get in, and nothing else.
                action: Action::Cancel(Cancel {
                    owner: OwnerId::from_bytes([0; 16]),
                }),
                said: None,
                evidence: Vec::new(),
            },
            ready: Vec::new(),
        }
    }

    /// The next node after that of the frame, the likeliest first.
    fn advance(&self, frame: &mut Frame) -> Option<Node> {
        loop {
            if let Some(node) = frame.ready.pop() {
                return Some(node);
            }
            let next = frame.candidates.pop()?;
            let asking = next
                .step
                .map_or(&frame.by_itself, |it| &self.course.steps[it]);
            let mut states = self.course.model.step(&frame.node.state, asking, next.at);
            states.retain(|state| !next.gives || self.gives(state, next.at));
            frame
                .ready
                .extend(states.into_iter().rev().map(|state| Node {
                    done: match next.step {
                        Some(step) => self.with(&frame.node.done, step),
                        None => frame.node.done.clone(),
                    },
                    state,
                    clock: next.at,
                }));
        }
    }

    /// What may come next: whatever was asked before any other step that is left had been answered.
    /// And when the first of those must have happened.
    fn candidates(&self, node: &Node) -> (Vec<Next>, u64) {
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
        let lost: Vec<usize> = lost.collect();
        let mut candidates = Vec::new();
        // A grant that no answered step explains was made by one whose answer was lost, then.
        let mut fences: Vec<u64> = self.course.grants.iter().map(|it| it.1.as_u64()).collect();
        fences.retain(|fence| node.clock <= *fence && *fence < soonest);
        fences.sort_unstable();
        fences.dedup();
        for at in fences {
            let (step, gives) = (None, true);
            candidates.push(Next { step, at, gives });
            let lost = lost.iter().map(|it| Some(*it));
            candidates.extend(lost.map(|step| Next { step, at, gives }));
        }
        let gives = false;
        candidates.extend(possible.iter().map(|step| Next {
            step: Some(*step),
            at: time(step),
            gives,
        }));
        for at in [node.clock.max(1), soonest.max(node.clock)] {
            let lost = lost.iter().map(|it| Some(*it));
            candidates.extend(lost.map(|step| Next { step, at, gives }));
        }
        (candidates, earliest)
    }

    /// Whether somebody has the fence of this time who was seen with it.
    fn gives(&self, state: &LockState, at: u64) -> bool {
        let mut holders = state.holders.iter();
        holders.any(|holder| {
            let seen = (holder.owner, holder.fence);
            holder.fence.as_u64() == at && self.course.grants.contains(&seen)
        })
    }

    fn with(&self, done: &Done, step: usize) -> Done {
        let mut done = done.clone();
        done.bits[step / 64] |= 1 << (step % 64);
        done.count += 1;
        done.hash ^= scrambled(step as u64 + 1);
        while let Some(step) = self.answered.get(done.first)
            && done.has(*step)
        {
            done.first += 1;
        }
        done
    }

    /// Tells where the longest attempt ended: the step that no order explains, what came from those
    /// who were in its way, and what it asked itself before.
    fn stuck(&self) -> Stuck {
        let steps = &self.course.steps;
        let Some(node) = &self.best else {
            let (sentence, evidence) = ("nothing can be explained".to_owned(), Vec::new());
            return Stuck { sentence, evidence };
        };
        let (candidates, _) = self.candidates(node);
        let mut candidates = candidates.iter().filter_map(|next| next.step);
        let stuck = candidates.find(|step| steps[*step].said.is_some());
        let stuck = stuck.map(|step| &steps[step]);
        let (word, said) = stuck.map_or(("", String::new()), |it| {
            let said = it.said.as_ref().map(|(_, said)| said);
            let said = serde_json::to_string(&said).unwrap_or_default();
            (it.action.word(), said)
        });
        let holders = node.state.holders.iter();
        let holders: Vec<String> = holders
            .map(|it| format!("{} {} (fence {})", it.owner.short(), it.mode, it.fence))
            .collect();
        let sentence = format!(
            "no order of the steps explains that {word} was answered {said}: held by {}, {} wait",
            if holders.is_empty() {
                "nobody".to_owned()
            } else {
                holders.join(", ")
            },
            node.state.queue.len()
        );
        let owners: HashSet<_> = node.state.holders.iter().map(|it| it.owner).collect();
        let concerned = |asking: &&Asking| {
            owner(&asking.action).is_some_and(|it| {
                owners.contains(&it) || stuck.is_some_and(|stuck| owner(&stuck.action) == Some(it))
            })
        };
        let last = stuck.map_or(u64::MAX, |it| it.answered);
        let before = steps.iter().filter(|it| it.asked <= last).filter(concerned);
        let mut evidence: Vec<usize> = before.flat_map(|it| it.evidence.clone()).collect();
        evidence.sort_unstable();
        let spare = evidence.len().saturating_sub(12);
        Stuck {
            sentence,
            evidence: evidence.split_off(spare),
        }
    }
}

impl Done {
    fn has(&self, step: usize) -> bool {
        self.bits[step / 64] >> (step % 64) & 1 == 1
    }
}

fn owner(action: &Action) -> Option<OwnerId> {
    Some(match action {
        Action::Acquire(it) => it.owner,
        Action::Renew(it) => it.owner,
        Action::Convert(it) => it.owner,
        Action::Release(it) => it.owner,
        Action::Cancel(it) => it.owner,
        Action::ForceRelease(it) => it.owner,
        Action::Vote(_) | Action::Inspect => return None,
    })
}

/// A number that looks random, and is always the same for the same step.
fn scrambled(step: u64) -> u64 {
    let step = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let step = (step ^ (step >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let step = (step ^ (step >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    step ^ (step >> 31)
}
