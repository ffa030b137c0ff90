//! [`Look`] and [`Undo`]: requests to which every member's answer matters.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use tenure_core::{
    Error, ErrorKind, Fence, LockName, Moment, Outcome, Removed, Reply, Request, Retry, Snapshot,
};

use super::Shared;
use super::electorate::{Electorate, Poll, Voice};
use super::epoch::{Epoch, Reading};
use super::failures::Failures;
use super::rivals::Rivals;
use crate::clock::bounded;

/// Who answered, and what went wrong.
#[derive(Debug)]
pub(super) struct RollCall {
    electorate: Electorate,
    poll: Poll,
    failures: Failures,
    /// Members that answered and may have forgotten something.
    forgetful: BTreeSet<usize>,
}

impl RollCall {
    pub(super) fn new(electorate: Electorate) -> Self {
        Self {
            electorate,
            poll: Poll::new(electorate.members, electorate.to_keep),
            failures: Failures::default(),
            forgetful: BTreeSet::new(),
        }
    }

    pub(super) fn hear(&mut self, member: usize, answer: Result<(), Error>) {
        let voice = match answer {
            Ok(()) => Voice::Yes,
            Err(error) => {
                self.failures.note(member, error);
                Voice::Silent
            }
        };
        self.poll.hear(member, voice);
    }

    pub(super) fn skip(&mut self, member: usize) {
        self.poll.hear(member, Voice::Silent);
    }

    pub(super) fn close(&mut self) {
        self.poll.close();
    }

    pub(super) fn is_complete(&self) -> bool {
        self.poll.open() == 0
    }

    pub(super) fn silent(&self) -> usize {
        self.electorate.members - self.poll.count(Voice::Yes)
    }

    pub(super) fn has_answered(&self, member: usize) -> bool {
        self.poll.voice(member) == Some(Voice::Yes)
    }

    pub(super) fn silent_members(&self) -> impl Iterator<Item = usize> + '_ {
        self.poll.members(Voice::Silent)
    }

    /// # Errors
    /// If so few answered that what they say means nothing.
    pub(super) fn enough(&mut self, what: &str) -> Result<(), Error> {
        let answered = self.poll.count(Voice::Yes);
        self.at_least(answered, self.electorate.to_keep, what)
    }

    /// This member recovers: that it knows nothing says nothing.
    pub(super) fn forgot(&mut self, member: usize) {
        if self.has_answered(member) {
            self.forgetful.insert(member);
        }
    }

    /// # Errors
    /// If those who did not answer, or may have forgotten it, are enough to keep a lock of which the others know nothing.
    pub(super) fn nobody_else(&mut self) -> Result<(), Error> {
        let Electorate {
            members, to_keep, ..
        } = self.electorate;
        let answered = self.poll.count(Voice::Yes) - self.forgetful.len();
        let needed = members - to_keep + 1;
        let forgetful = self.forgetful.len();
        let sure = self.at_least(answered, needed, "be sure that nobody holds");
        let passes = sure
            .as_ref()
            .is_err_and(|error| error.retry() != Retry::Never);
        if passes && forgetful > 0 {
            let message = format!(
                "{forgetful} of {members} servers recover, or do not say whether they do, and may have forgotten a holder, and only {answered} others answer, \
                 where it takes {needed} to be sure that nobody holds the lock: ask again, or see `tenure doctor`"
            );
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        sure
    }

    fn at_least(&mut self, answered: usize, needed: usize, what: &str) -> Result<(), Error> {
        if answered >= needed {
            return Ok(());
        }
        let members = self.electorate.members;
        Err(self.failures.too_few(what, answered, needed, members))
    }
}

/// An inspection.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) request: Request,
    pub(super) answers: RollCall,
    rivals: Rivals,
    last_fence: Fence,
}

impl Look {
    pub(super) fn new(request: Request, electorate: Electorate) -> Self {
        Self {
            request,
            answers: RollCall::new(electorate),
            rivals: Rivals::new(electorate),
            last_fence: Fence::NONE,
        }
    }

    pub(super) fn hear(&mut self, member: usize, sent: Moment, answer: Result<Reply, Error>) {
        let answer = answer.map(|Reply { now, outcome }| {
            if let Outcome::State(snapshot) = outcome {
                self.rivals
                    .see(member, Reading { sent, now }, &snapshot.holders);
                self.last_fence = self.last_fence.max(snapshot.last_fence);
            }
        });
        self.answers.hear(member, answer);
    }

    /// Whether it matters which members recover: who has too few votes may have had one there, or somebody of whom nobody tells.
    /// (If all answer, and so many recover that they could keep it alone, [`recovering`](super::diagnose::recovering) says so.)
    pub(super) fn is_unsure(&self) -> bool {
        let silent = self.answers.silent();
        self.rivals.is_unsure(silent) || silent > 0 && self.rivals.is_empty()
    }

    /// This member recovers.
    pub(super) fn forgot(&mut self, member: usize) {
        self.answers.forgot(member);
        if self.answers.has_answered(member) {
            self.rivals.forgot(member);
        }
    }

    pub(super) fn result(&mut self, sent: Moment, epoch: Epoch) -> Result<Reply, Error> {
        self.answers.enough("inspect")?;
        let snapshot = Snapshot {
            last_fence: self.last_fence,
            ..self.rivals.snapshot(epoch, self.answers.silent())
        };
        if snapshot.holders.is_empty() {
            self.answers.nobody_else()?;
        }
        Ok(Reply {
            now: epoch.timestamp(sent),
            outcome: Outcome::State(snapshot),
        })
    }
}

impl Shared {
    /// Which of these members may have forgotten who holds `name`, or anything: those that recover, or do not say within `limit`.
    pub(super) async fn forgetful(
        &self,
        members: impl IntoIterator<Item = usize>,
        name: Option<&LockName>,
        limit: Duration,
    ) -> Vec<usize> {
        let asked = members.into_iter().map(|member| async move {
            let recovering = self.members[member].store.recovering(name);
            let answer = bounded(&*self.clock, limit, recovering).await;
            (!matches!(answer, Some(Ok(None)))).then_some(member)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }
}

/// A cancellation.
#[derive(Debug)]
pub(super) struct Undo {
    pub(super) request: Request,
    pub(super) answers: RollCall,
    removed: Removed,
}

impl Undo {
    pub(super) fn new(request: Request, electorate: Electorate) -> Self {
        Self {
            request,
            answers: RollCall::new(electorate),
            removed: Removed::Nothing,
        }
    }

    pub(super) fn hear(&mut self, member: usize, answer: Result<Reply, Error>) {
        let answer = answer.map(|reply| {
            if reply.outcome == Outcome::Cancelled(Removed::Grant) {
                self.removed = Removed::Grant;
            }
        });
        self.answers.hear(member, answer);
    }

    pub(super) fn result(&mut self, sent: Moment, epoch: Epoch) -> Result<Reply, Error> {
        self.answers.enough("cancel")?;
        Ok(Reply {
            now: epoch.timestamp(sent),
            outcome: Outcome::Cancelled(self.removed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_holds_it_if_those_who_say_nothing_are_too_few_to_keep_it() {
        for members in 2..=6 {
            for electorate in [
                Electorate::majority(members),
                Electorate::unanimous(members),
            ] {
                for silent in 0..=members {
                    let mut answers = RollCall::new(electorate);
                    for member in silent..members {
                        answers.hear(member, Ok(()));
                    }
                    answers.close();
                    let sure = answers.nobody_else().is_ok();
                    assert_eq!(sure, silent < electorate.to_keep, "{electorate:?}");
                }
            }
        }
    }
}
