//! What the answers to a batch leave to be done: holds noted, votes that came to nothing taken back,
//! bells hung where somebody is in the way.

use futures_util::future::join_all;
use tenure_core::{Action, Error, Fence, LockName, Moment, Outcome, OwnerId, Renew, Reply};
use tokio::sync::oneshot;

use super::Shared;
use super::afterwards::Afterwards;
use super::debts::{Debt, Lasting};
use super::electorate::Voice;
use super::fan_out::FanOut;
use super::holds::{End, Held};
use super::keep::{Keep, Rest};
use super::look::Undo;
use super::question::Question;
use super::round::Round;
use super::take::{Course, Take};
use crate::clock::bounded;

impl Round {
    /// Sees to what the answers leave to be done, and waits for what can be done at once.
    pub(super) async fn settle(&mut self, results: &[Result<Reply, Error>]) {
        let shared = self.shared.clone();
        let mut paid = Vec::new();
        let mut watched = Vec::new();
        let mut afterwards = Afterwards::new(shared.clone());
        for (question, result) in self.questions.iter().zip(results) {
            let outcome = result.as_ref().ok().map(|reply| &reply.outcome);
            match question {
                Question::Take(take) => match (take.course(), outcome) {
                    (Course::Won { fence, until }, Some(Outcome::Granted(_))) => {
                        let held = shared.hold(take, fence, until);
                        for (member, stray) in take.strays(fence) {
                            let owner = take.acquire.owner;
                            let debt = self.debt(&take.name, owner, Lasting::asked(&take.acquire));
                            let fence = Some(stray);
                            shared.owe(member, Debt { fence, ..debt });
                        }
                        afterwards.won(take, fence, held);
                        continue;
                    }
                    (_, outcome) => {
                        paid.extend(self.take_all_back(take, Patience::after(outcome)));
                        let obstacles = take.obstacles(outcome);
                        watched.extend(obstacles.map(|it| (take.name.clone(), it)));
                    }
                },
                Question::Keep(keep) => {
                    self.conclude(keep, outcome, &mut afterwards);
                    continue;
                }
                Question::Undo(undo) => {
                    if let Action::Cancel(cancel) = &undo.request.action {
                        self.undo(undo, cancel.owner);
                    }
                }
                Question::Refused(_) | Question::Look(_) => {}
            }
            afterwards.nothing();
        }
        if !paid.is_empty() {
            bounded(&*shared.clock, shared.node_timeout, join_all(paid)).await;
        }
        for (name, obstacles) in watched {
            shared.watch(name, obstacles);
        }
        // Not before: whoever is told must not be gone by then.
        for (question, result) in self.questions.iter().zip(results) {
            if let (Question::Keep(keep), Ok(reply)) = (question, result) {
                self.give_up_lost(keep, &reply.outcome);
            }
        }
        self.settled = true;
        debug_assert_eq!(afterwards.len(), self.questions.len(), "one each");
        let asked = std::mem::take(&mut self.asked);
        afterwards.start(std::mem::replace(&mut self.first, FanOut::new()), asked);
    }

    fn conclude(&self, keep: &Keep, outcome: Option<&Outcome>, afterwards: &mut Afterwards) {
        let shared = &self.shared;
        match (&keep.request.action, outcome) {
            (Action::Renew(renew), Some(Outcome::Renewed { .. })) => {
                if let Some(until) = keep.until() {
                    shared.holds.prolong(renew.owner, until);
                }
                afterwards.renewed(keep, self.sent);
                return;
            }
            (
                Action::Release(_) | Action::ForceRelease(_),
                None | Some(Outcome::Forgotten { .. }),
            ) => {
                // Whoever relies on it may not hear of it and go on, also if it was taken here: others may have its lease. A
                // holder that gives it up asks again.
                afterwards.released(keep, keep.rest(outcome, None));
                return self.end_the_rest(keep, &keep.rest(outcome, None));
            }
            (Action::Release(_) | Action::ForceRelease(_), _) => {
                let fence = Some(keep.fence);
                let held = shared.end(keep.owner, fence, End::Released);
                let rest = keep.rest(outcome, held.as_ref());
                self.end_the_rest(keep, &rest);
                afterwards.released(keep, rest);
                return;
            }
            (_, Some(Outcome::NotHeld { .. })) => {}
            (Action::Convert(_), _) => return afterwards.converted(keep),
            _ => {}
        }
        afterwards.nothing();
    }

    /// Has members end what they have not said to be over.
    fn end_the_rest(&self, keep: &Keep, rest: &Rest) {
        let unconfirmed = keep.unconfirmed(rest);
        for member in unconfirmed.filter(|member| !self.first.waits_for(*member)) {
            let debt = self.debt(&keep.request.name, keep.owner, rest.lasting);
            let fence = rest.fence;
            self.shared.owe(member, Debt { fence, ..debt });
        }
    }

    /// If its holder is told that it is lost, lost is final: the votes that are left only keep others out.
    fn give_up_lost(&self, keep: &Keep, outcome: &Outcome) {
        match (&keep.request.action, outcome) {
            // Whoever renews by lease need not be the one who relies on it.
            (Action::Renew(Renew { terms: None, .. }), _) => return,
            (Action::Renew(_) | Action::Convert(_), Outcome::NotHeld { .. }) => {}
            _ => return,
        }
        let Some(held) = self.shared.end(keep.owner, Some(keep.fence), End::GivenUp) else {
            return;
        };
        let lasting = Lasting::of(Some(&held));
        // Also where there is none: the last renewal may have asked for it, and that is under way.
        for member in 0..self.shared.members.len() {
            self.take_back(member, &keep.request.name, keep.owner, lasting);
        }
    }

    /// Has members that were not reached take back whatever the owner has.
    fn undo(&self, undo: &Undo, owner: OwnerId) {
        let held = self.shared.end(owner, None, End::GivenUp);
        if held.is_none() && self.shared.spent.contains(owner) {
            return; // That is seen to since the votes came to nothing, or the hold ended.
        }
        let lasting = Lasting::of(held.as_ref());
        for member in undo.answers.silent_members() {
            self.take_back(member, &undo.request.name, owner, lasting);
        }
    }

    /// Takes every vote back that was or may yet be given. Answers where to wait for those that were,
    /// with patience also for those that may be.
    fn take_all_back(&self, take: &Take, patience: Patience) -> Vec<oneshot::Receiver<()>> {
        let mut paid = Vec::new();
        for (member, questions) in self.asked.iter().enumerate() {
            if questions.is_empty() {
                continue;
            }
            let (tell, told) = oneshot::channel();
            let lasting = Lasting::asked(&take.acquire);
            let debt = self.debt(&take.name, take.acquire.owner, lasting);
            let voice = take.voice(member);
            match voice {
                Some(Voice::No) => {}
                Some(Voice::Yes) => {
                    let debt = Debt {
                        again: None,
                        paid: Some(tell),
                        ..debt
                    };
                    self.shared.owe(member, debt);
                    paid.push(told);
                }
                None | Some(Voice::Silent) => {
                    let waits = patience >= Patience::Failed
                        || patience >= Patience::Late && voice.is_none();
                    let tell = waits.then_some(tell);
                    self.shared.owe(member, Debt { paid: tell, ..debt });
                    paid.extend(waits.then_some(told));
                }
            }
        }
        paid
    }

    fn take_back(&self, member: usize, name: &LockName, owner: OwnerId, lasting: Lasting) {
        self.shared.owe(member, self.debt(name, owner, lasting));
    }

    fn debt(&self, name: &LockName, owner: OwnerId, lasting: Lasting) -> Debt {
        self.shared.debt(name, owner, lasting, self.sent)
    }
}

/// Which votes that are taken back the caller waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Patience {
    /// Those that were given.
    Given,
    /// Also those of members that have not answered yet.
    Late,
    /// Also those of members that failed.
    Failed,
}

impl Patience {
    fn after(outcome: Option<&Outcome>) -> Self {
        match outcome {
            // If too few answer, the others are a moment late, and the caller has time.
            None => Self::Late,
            // Whoever came too late asks again at once, and not behind a vote of its own.
            Some(Outcome::TooLate) => Self::Failed,
            Some(_) => Self::Given,
        }
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        for question in &self.questions {
            if let Question::Take(take) = question {
                // Whoever waited for it is gone.
                drop(self.take_all_back(take, Patience::Given));
            }
        }
    }
}

impl Shared {
    /// Notes a hold that was taken.
    fn hold(&self, take: &Take, fence: Fence, until: Moment) -> Held {
        let held = Held::new(take.acquire.ttl, fence, until);
        let now = self.clock.now();
        self.holds.add(take.acquire.owner, held.clone(), now);
        held
    }

    /// Notes the end of a hold, for as long as a renewal may be about to set out that does not know of it.
    fn end(&self, owner: OwnerId, fence: Option<Fence>, end: End) -> Option<Held> {
        let until = self.clock.now().plus(self.adrift());
        self.holds.end(owner, fence, end, until)
    }
}
