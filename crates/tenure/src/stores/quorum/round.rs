//! One batch, from question to answer: ask everybody, follow up where they disagree, take back what
//! came to nothing. The deciding is done by the questions; this file sends and waits.

use std::sync::Arc;

use futures_util::future::join_all;
use tenure_core::{
    Acquire, Action, Error, ErrorKind, Fence, LockName, Moment, Outcome, OwnerId, Reply, Request,
    Timestamp, Ttl,
};
use tokio::sync::oneshot;

use super::Shared;
use super::afterwards::Afterwards;
use super::attendance::Attendance;
use super::debts::Debt;
use super::electorate::Voice;
use super::fan_out::FanOut;
use super::holds::{End, Held};
use super::keep::{Keep, Rest};
use super::member::Answer;
use super::question::Question;
use super::take::{Course, Take};
use crate::clock::bounded;

/// How often members are asked to agree on a fence.
const FOLLOW_UPS: usize = 3;

/// Decides a batch.
///
/// # Cancel safety
/// Votes that were asked for are taken back in the background.
pub(super) async fn apply(shared: &Arc<Shared>, batch: &[Request]) -> Vec<Result<Reply, Error>> {
    if batch
        .iter()
        .any(|request| matches!(request.action, Action::Acquire(_)))
    {
        shared.read_clocks().await;
    }
    let sent = shared.clock.now();
    let mut round = Round::new(shared.clone(), batch, sent);
    round.ask_everybody().await;
    round.follow_up().await;
    let results = round.results();
    round.settle(&results).await;
    results
}

/// A batch that is under way. Dropping it before it is settled takes all its votes back.
struct Round {
    shared: Arc<Shared>,
    sent: Moment,
    questions: Vec<Question>,
    attendance: Attendance,
    /// The first questions, of which some members' answers may be outstanding.
    first: FanOut,
    /// Which questions each member was asked, in order.
    asked: Vec<Vec<usize>>,
    settled: bool,
}

impl Round {
    fn new(shared: Arc<Shared>, batch: &[Request], sent: Moment) -> Self {
        let questions: Vec<_> = batch
            .iter()
            .map(|request| Question::new(request, &shared, sent))
            .collect();
        Self {
            asked: vec![Vec::new(); shared.members.len()],
            attendance: Attendance::new(shared.members.len()),
            shared,
            sent,
            questions,
            first: FanOut::new(),
            settled: false,
        }
    }

    async fn ask_everybody(&mut self) {
        let shared = self.shared.clone();
        for (index, member) in shared.members.iter().enumerate() {
            let twin = shared.twin(index).is_some();
            let mut requests = Vec::with_capacity(self.questions.len());
            for (number, question) in self.questions.iter_mut().enumerate() {
                match question.request(&shared, index, self.sent) {
                    Some(request) if !twin => {
                        requests.push(request);
                        self.asked[index].push(number);
                    }
                    _ => question.skip(index),
                }
            }
            if !requests.is_empty() {
                let asking = member.clone().ask(self.sent, requests);
                self.first.ask(index, Box::pin(asking));
            }
        }
        let deadline = self.sent.plus(shared.node_timeout);
        while !self.questions.iter().all(Question::is_decided) {
            let Some((member, answer)) = self.first.next(&*shared.clock, deadline).await else {
                self.questions.iter_mut().for_each(Question::close);
                return;
            };
            self.hear_first(member, answer);
        }
        // What is there is heard, too: it tells who need not be asked to take anything back.
        while let Some((member, answer)) = self.first.arrived() {
            self.hear_first(member, answer);
        }
    }

    fn hear_first(&mut self, member: usize, answer: Answer) {
        let numbers = self.asked[member].clone();
        self.hear(member, &numbers, answer);
    }

    /// A member's answer to the questions of these numbers.
    fn hear(&mut self, member: usize, numbers: &[usize], answer: Answer) {
        let Answer { sent, by, replies } = answer;
        let objection = self.attendance.objection(member, by.as_ref());
        for (number, reply) in numbers.iter().zip(replies) {
            let reply = match objection {
                None => reply,
                Some(why) => Err(why.error(ErrorKind::Unavailable, &self.shared.members, member)),
            };
            self.questions[*number].hear(member, sent, reply);
        }
    }

    /// Has members raise their fences.
    async fn follow_up(&mut self) {
        let shared = self.shared.clone();
        for _ in 0..FOLLOW_UPS {
            let now = shared.clock.now();
            let mut asked = vec![Vec::new(); shared.members.len()];
            let mut requests = vec![Vec::new(); shared.members.len()];
            for (number, question) in self.questions.iter().enumerate() {
                for (member, request) in question.follow_up() {
                    asked[member].push(number);
                    requests[member].push(request);
                }
            }
            if requests.iter().all(Vec::is_empty) {
                return;
            }
            let mut fan = FanOut::new();
            for (index, requests) in requests.into_iter().enumerate() {
                if !requests.is_empty() {
                    let asking = shared.members[index].clone().ask(now, requests);
                    fan.ask(index, Box::pin(asking));
                }
            }
            let deadline = now.plus(shared.node_timeout);
            while let Some((member, answer)) = fan.next(&*shared.clock, deadline).await {
                self.hear(member, &asked[member], answer);
                if self.questions.iter().all(Question::is_agreed) {
                    break;
                }
            }
        }
    }

    fn results(&mut self) -> Vec<Result<Reply, Error>> {
        let (shared, sent) = (&self.shared, self.sent);
        let questions = self.questions.iter_mut();
        questions
            .map(|question| question.result(shared, sent))
            .collect()
    }

    /// Sees to what the answers leave to be done, and waits for what can be done at once.
    async fn settle(&mut self, results: &[Result<Reply, Error>]) {
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
                            let Acquire { owner, ttl, .. } = take.acquire;
                            let debt = self.debt(&take.name, owner, ttl);
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
                Question::Keep(keep) => self.conclude(keep, outcome, &mut afterwards),
                Question::Undo(undo) => {
                    if let Action::Cancel(cancel) = &undo.request.action {
                        let held = shared.end(cancel.owner, None, End::GivenUp);
                        let ttl = held.map_or(Ttl::DEFAULT, |held| held.ttl);
                        for member in undo.answers.silent_members() {
                            self.take_back(member, &undo.request.name, cancel.owner, ttl);
                        }
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
        self.settled = true;
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
            (Action::ForceRelease(_), None) => {
                // The holder may not hear of it and go on.
                afterwards.released(keep, keep.rest(outcome, None));
                return self.end_the_rest(keep, &keep.rest(outcome, None));
            }
            (Action::Release(_) | Action::ForceRelease(_), _) => {
                let fence = Some(keep.fence);
                let held = shared.end(keep.owner, fence, End::Released);
                let rest = keep.rest(outcome, held);
                self.end_the_rest(keep, &rest);
                afterwards.released(keep, rest);
                return;
            }
            (_, Some(Outcome::NotHeld { .. })) => self.give_up(keep),
            (Action::Convert(_), _) => return afterwards.converted(keep),
            _ => {}
        }
        afterwards.nothing();
    }

    /// Has members end what they have not said to be over.
    fn end_the_rest(&self, keep: &Keep, rest: &Rest) {
        let unconfirmed = keep.unconfirmed(rest);
        for member in unconfirmed.filter(|member| !self.first.waits_for(*member)) {
            let debt = self.debt(&keep.request.name, keep.owner, rest.ttl);
            let fence = rest.fence;
            self.shared.owe(member, Debt { fence, ..debt });
        }
    }

    /// Its holder is told that it is lost, and lost is final: the votes that are left only keep others out.
    fn give_up(&self, keep: &Keep) {
        let Some(held) = self.shared.end(keep.owner, Some(keep.fence), End::GivenUp) else {
            return;
        };
        for member in 0..self.shared.members.len() {
            if keep.voice(member) != Some(Voice::No) {
                self.take_back(member, &keep.request.name, keep.owner, held.ttl);
            }
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
            let debt = self.debt(&take.name, take.acquire.owner, take.acquire.ttl);
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

    fn take_back(&self, member: usize, name: &LockName, owner: OwnerId, ttl: Ttl) {
        self.shared.owe(member, self.debt(name, owner, ttl));
    }

    fn debt(&self, name: &LockName, owner: OwnerId, ttl: Ttl) -> Debt {
        self.shared.debt(name, owner, ttl, self.sent)
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

impl Question {
    /// Whether no follow-up is needed (any more).
    fn is_agreed(&self) -> bool {
        match self {
            Self::Take(take) => take.course() != Course::Disagreeing,
            _ => true,
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

    /// A vote that was asked for at `sent` and is to be taken back.
    pub(super) fn debt(&self, name: &LockName, owner: OwnerId, ttl: Ttl, sent: Moment) -> Debt {
        let now = self.clock.now();
        Debt {
            name: name.clone(),
            owner,
            fence: None,
            due: now,
            again: Some(sent.plus(self.adrift())),
            until: now.plus(ttl.duration() + self.adrift()),
            paid: None,
        }
    }

    /// The latest that a request sent at `now` may be carried out, by the member's clock.
    pub(super) fn not_after(
        &self,
        member: usize,
        now: Moment,
        limit: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let member = &self.members[member];
        let ours = member.clock_at(now.plus(self.adrift()));
        let theirs = limit.and_then(|limit| {
            let passed = now.since(self.epoch.moment(limit));
            let reading = member.clock_at(self.epoch.moment(limit).max(now))?;
            let micros = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
            Some(Timestamp::from_micros(
                reading.as_micros().saturating_sub(micros),
            ))
        });
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        }
    }
}
