//! [`Afterwards`]: what is left to do when the caller has its answer: hearing out the members that
//! were slower than the majority, and giving back to those that lost it the vote of a renewed hold.

use std::sync::Arc;

use tenure_core::{Ballot, Error, Fence, LockName, Outcome, OwnerId, Reply, Request};

use super::Shared;
use super::debts::Debt;
use super::fan_out::FanOut;
use super::holds::Held;
use super::keep::{Keep, Rest};
use super::take::Take;

/// What is left to do, question by question.
pub(super) struct Afterwards {
    shared: Arc<Shared>,
    tasks: Vec<Task>,
    repairs: Vec<(usize, Request)>,
}

/// What a late answer to one question means.
enum Task {
    Nothing,
    /// A late vote stays, if it has the same fence or can be given it.
    Won {
        raise: Box<Request>,
        owner: OwnerId,
        fence: Fence,
        held: Held,
    },
    /// A vote that may still be there is taken back.
    Released {
        name: LockName,
        owner: OwnerId,
        rest: Rest,
    },
}

impl Afterwards {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            tasks: Vec::new(),
            repairs: Vec::new(),
        }
    }

    pub(super) fn nothing(&mut self) {
        self.tasks.push(Task::Nothing);
    }

    pub(super) fn won(&mut self, take: &Take, fence: Fence, held: Held) {
        self.tasks.push(Task::Won {
            raise: Box::new(take.vote(Ballot::Raise { to: fence }, None)),
            owner: take.acquire.owner,
            fence,
            held,
        });
    }

    pub(super) fn renewed(&mut self, keep: &Keep) {
        let (shared, now) = (&self.shared, self.shared.clock.now());
        let repairs = keep.repairs(|member| shared.not_after(member, now, None));
        self.repairs.extend(repairs);
        self.nothing();
    }

    pub(super) fn released(&mut self, keep: &Keep, rest: Rest) {
        self.tasks.push(Task::Released {
            name: keep.request.name.clone(),
            owner: keep.owner,
            rest,
        });
    }

    /// Goes on in the background, if there is anything to do.
    pub(super) fn start(self, first: FanOut, asked: Vec<Vec<usize>>) {
        if first.is_done() && self.repairs.is_empty() {
            return;
        }
        let runtime = self.shared.runtime.clone();
        runtime.spawn(self.run(first, asked));
    }

    async fn run(mut self, mut first: FanOut, asked: Vec<Vec<usize>>) {
        for (member, request) in std::mem::take(&mut self.repairs) {
            let now = self.shared.clock.now();
            let asking = self.shared.members[member].clone().ask(now, vec![request]);
            // Without success it is asked for again at the next renewal.
            self.shared.runtime.spawn(asking);
        }
        while let Some((member, answer)) = first.finally().await {
            for (number, reply) in asked[member].iter().zip(answer.replies) {
                if let Some(task) = self.tasks.get(*number) {
                    self.late(task, member, reply).await;
                }
            }
        }
    }

    async fn late(&self, task: &Task, member: usize, reply: Result<Reply, Error>) {
        let shared = &self.shared;
        let outcome = reply.map(|reply| reply.outcome);
        match task {
            Task::Won {
                raise,
                owner,
                fence,
                held,
            } => {
                let mut stray = None;
                if let Ok(Outcome::Granted(grant)) = &outcome {
                    if grant.fence < *fence && !held.is_over() {
                        // If that fails, a renewal does it.
                        self.raise(member, raise).await;
                    }
                    stray = Some(grant.fence).filter(|given| given > fence);
                }
                // Whether there is a vote may be unknown; then a renewal asks for it.
                let unwanted = held.is_given_up() && !matches!(outcome, Ok(Outcome::Busy(_)));
                if unwanted || stray.is_some() {
                    let debt = shared.debt(&raise.name, *owner, held.ttl, shared.clock.now());
                    let fence = stray.filter(|_| !unwanted);
                    shared.owe(member, Debt { fence, ..debt });
                }
            }
            Task::Released { name, owner, rest } => {
                let unconfirmed = match outcome {
                    Ok(Outcome::Released) => false,
                    Ok(_) => rest.fence.is_none(),
                    Err(_) => true,
                };
                if unconfirmed {
                    let debt = shared.debt(name, *owner, rest.ttl, shared.clock.now());
                    let fence = rest.fence;
                    shared.owe(member, Debt { fence, ..debt });
                }
            }
            Task::Nothing => {}
        }
    }

    async fn raise(&self, member: usize, raise: &Request) {
        let now = self.shared.clock.now();
        let member = self.shared.members[member].clone();
        member.ask(now, vec![raise.clone()]).await;
    }
}
