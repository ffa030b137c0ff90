//! [`Afterwards`]: what is left to do when the caller has its answer: hearing out the members that
//! were slower than the majority.

use std::sync::Arc;

use tenure_core::{Ballot, Error, Fence, LockName, Moment, Outcome, OwnerId, Reply, Request};

use super::Shared;
use super::debts::{Debt, Lasting};
use super::electorate::Voice;
use super::fan_out::FanOut;
use super::holds::Held;
use super::keep::{Keep, Rest};
use super::mending::Mending;
use super::take::Take;

/// What is left to do, question by question.
pub(super) struct Afterwards {
    shared: Arc<Shared>,
    tasks: Vec<Task>,
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
    /// A vote that is missing is got back.
    Renewed(Box<Mending>),
    /// Whoever does not know is told with the next renewal.
    Converted(Held),
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

    pub(super) fn renewed(&mut self, keep: &Keep, sent: Moment) {
        let Some(mending) = Mending::of(keep, sent) else {
            return self.nothing();
        };
        self.shared.mend(&mending, keep);
        self.tasks.push(Task::Renewed(Box::new(mending)));
    }

    pub(super) fn converted(&mut self, keep: &Keep) {
        let Some(held) = &keep.held else {
            return self.nothing();
        };
        for member in 0..self.shared.members.len() {
            let known = keep.voice(member) == Some(Voice::Yes);
            held.notes.converted(member, known);
        }
        self.tasks.push(Task::Converted(held.clone()));
    }

    pub(super) fn released(&mut self, keep: &Keep, rest: Rest) {
        self.tasks.push(Task::Released {
            name: keep.request.name.clone(),
            owner: keep.owner,
            rest,
        });
    }

    /// How many questions have been seen to.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Goes on in the background, if there is anything to do.
    pub(super) fn start(self, first: FanOut, asked: Vec<Vec<usize>>) {
        if first.is_done() {
            return;
        }
        let runtime = self.shared.runtime.clone();
        runtime.spawn(self.run(first, asked));
    }

    async fn run(self, mut first: FanOut, asked: Vec<Vec<usize>>) {
        while let Some((member, answer)) = first.finally().await {
            for (number, reply) in asked[member].iter().zip(answer.replies) {
                if let Some(task) = self.tasks.get(*number) {
                    self.late(task, (member, answer.sent), reply).await;
                }
            }
        }
    }

    async fn late(
        &self,
        task: &Task,
        (member, sent): (usize, Moment),
        reply: Result<Reply, Error>,
    ) {
        let shared = &self.shared;
        if let (Task::Renewed(mending), Ok(reply)) = (task, &reply) {
            return shared.mend_late(mending, member, sent, reply);
        }
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
                    let mut given = grant.fence;
                    if given < *fence && !held.is_over() {
                        // If that fails, a renewal does it.
                        given = self.raise(member, raise).await.unwrap_or(given);
                    }
                    stray = Some(given).filter(|given| given > fence);
                }
                // Whether there is a vote may be unknown; then a renewal asks for it.
                let unwanted = held.is_given_up() && !matches!(outcome, Ok(Outcome::Busy(_)));
                if unwanted || stray.is_some() {
                    let lasting = Lasting::of(Some(held));
                    let debt = shared.debt(&raise.name, *owner, lasting, shared.clock.now());
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
                    let debt = shared.debt(name, *owner, rest.lasting, shared.clock.now());
                    let fence = rest.fence;
                    shared.owe(member, Debt { fence, ..debt });
                }
            }
            Task::Converted(held) => {
                if let Ok(Outcome::Converted { .. }) = outcome {
                    held.notes.converted(member, true);
                }
            }
            Task::Nothing | Task::Renewed(_) => {}
        }
    }

    /// Answers which fence the vote has then: a reader may have come in between, and have the one that was asked for.
    async fn raise(&self, member: usize, raise: &Request) -> Option<Fence> {
        let now = self.shared.clock.now();
        let member = self.shared.members[member].clone();
        let answer = member.ask(now, vec![raise.clone()]).await;
        match answer.replies.into_iter().next()?.ok()?.outcome {
            Outcome::Granted(grant) => Some(grant.fence),
            _ => None,
        }
    }
}
