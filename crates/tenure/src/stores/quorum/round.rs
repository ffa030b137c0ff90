//! One batch, from question to answer: ask everybody and follow up where they disagree. The deciding is
//! done by the questions; this file sends and waits. What the answers leave to be done is in `settle`.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Action, Error, ErrorKind, Fence, Moment, Reply, Request};

use super::Shared;
use super::attendance::Attendance;
use super::fan_out::FanOut;
use super::look::Look;
use super::member::{Answer, Member};
use super::question::Question;
use super::take::{Course, Room};
use crate::random;

/// How often members are asked to agree on a fence, and how often at most if that takes no time.
const FOLLOW_UPS: u32 = 3;
const QUICK_FOLLOW_UPS: u32 = 8;
/// By how much readers make room for each other at first; fences are microseconds.
const ROOM: Duration = Duration::from_micros(64);
/// How far that may take them ahead of the clocks: much less than a server that forgot them waits.
const AHEAD: Duration = Duration::from_secs(1);

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
    round.look_closer().await;
    let results = round.results();
    round.settle(&results).await;
    results
}

/// A batch that is under way. Dropping it before it is settled takes all its votes back.
pub(super) struct Round {
    pub(super) shared: Arc<Shared>,
    pub(super) sent: Moment,
    pub(super) questions: Vec<Question>,
    attendance: Attendance,
    /// The first questions, of which some members' answers may be outstanding.
    pub(super) first: FanOut,
    /// Which questions each member was asked, in order.
    pub(super) asked: Vec<Vec<usize>>,
    pub(super) settled: bool,
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
        let hangs = |member: &Arc<Member>| member.hangs(self.sent, shared.node_timeout);
        let hung: Vec<bool> = shared.members.iter().map(hangs).collect();
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
            let mut open = self.questions.iter().filter(|it| !it.is_decided());
            // Of a crowd, somebody would have a vote at any time, and nobody enough.
            let gives_way = open.all(Question::is_in_the_way)
                && self.first.waits_only_for(|member| hung[member]);
            let deadline = if gives_way { self.sent } else { deadline };
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
        let late = self.shared.clock.now() > self.sent.plus(self.shared.adrift());
        for (number, reply) in numbers.iter().zip(replies) {
            if late {
                self.questions[*number].is_late();
            }
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
        for number in 0..QUICK_FOLLOW_UPS {
            let now = shared.clock.now();
            if number >= FOLLOW_UPS && now > self.sent.plus(shared.node_timeout) {
                return;
            }
            let room = Room {
                by: micros(random::up_to(ROOM * (1 << number))) + 1,
                below: Fence::from_u64(shared.proposal(now).as_u64().saturating_add(micros(AHEAD))),
            };
            let mut asked = vec![Vec::new(); shared.members.len()];
            let mut requests = vec![Vec::new(); shared.members.len()];
            for (number, question) in self.questions.iter().enumerate() {
                for (member, request) in question.follow_up(room) {
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

    /// Where somebody has too few votes to be a holder, members may have forgotten those that it lacks. They are asked at once
    /// for all, because everybody in the batch waits for it.
    async fn look_closer(&mut self) {
        let shared = self.shared.clone();
        let mut unsure: Vec<&mut Look> = Vec::new();
        for question in &mut self.questions {
            match question {
                Question::Look(look) if look.is_unsure() => unsure.push(look),
                _ => {}
            }
        }
        let name = match &unsure[..] {
            [] => return,
            [look] => Some(look.request.name.clone()),
            _ => None,
        };
        let members = 0..shared.members.len();
        let answered =
            members.filter(|it| unsure.iter().any(|look| look.answers.has_answered(*it)));
        let limit = shared.node_timeout;
        for member in shared.forgetful(answered, name.as_ref(), limit).await {
            unsure.iter_mut().for_each(|look| look.forgot(member));
        }
    }

    fn results(&mut self) -> Vec<Result<Reply, Error>> {
        let (shared, sent) = (&self.shared, self.sent);
        let questions = self.questions.iter_mut();
        questions
            .map(|question| question.result(shared, sent))
            .collect()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
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
