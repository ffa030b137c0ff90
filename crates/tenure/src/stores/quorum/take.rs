//! [`Take`]: one acquire on its way through the quorum. Answers go in, a verdict comes out; nothing
//! here waits or sends.

use tenure_core::{
    Acquire, Action, Ballot, Contention, Error, ErrorKind, Fence, Grant, Kind, LockName, Mode,
    Moment, Outcome, Reply, Request, Spelled, Timestamp, Validity, Vote, Waiting,
};

use super::agreement::{Agreement, Voted, agreement};
use super::electorate::{Electorate, Poll, Standing, Voice};
use super::epoch::{Epoch, Reading};
use super::failures::Failures;
use super::rings::Obstacles;
use super::rivals::Rivals;

/// An acquire, and what the members have said to it.
#[derive(Debug)]
pub(super) struct Take {
    pub(super) name: LockName,
    pub(super) acquire: Acquire,
    electorate: Electorate,
    proposal: Fence,
    poll: Poll,
    votes: Vec<Voted>,
    rivals: Rivals,
    /// Where somebody else holds it, or a part of it.
    held_at: Vec<usize>,
    conflict: Option<Kind>,
    too_late: usize,
    failures: Failures,
}

/// By how much readers make room for each other when their votes are to agree on a fence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) by: u64,
    /// No fence is raised beyond this for the sake of it: fences must not run ahead of the clocks.
    pub(super) below: Fence,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Open,
    /// Enough votes, but they must agree on a fence.
    Disagreeing,
    Won {
        fence: Fence,
        until: Moment,
    },
    Lost,
}

impl Take {
    pub(super) fn new(
        name: LockName,
        acquire: Acquire,
        electorate: Electorate,
        proposal: Fence,
    ) -> Self {
        Self {
            name,
            acquire,
            electorate,
            proposal,
            poll: Poll::new(electorate.members, electorate.to_take),
            votes: Vec::new(),
            rivals: Rivals::new(electorate),
            held_at: Vec::new(),
            conflict: None,
            too_late: 0,
            failures: Failures::default(),
        }
    }

    /// What a member is asked first.
    pub(super) fn request(&self, not_after: Option<Timestamp>) -> Request {
        let proposal = self.proposal;
        self.vote(Ballot::New { proposal }, not_after)
    }

    /// Whom to ask what before they all agree. Other readers may get a fence between the vote and the raise, so all votes of one are
    /// raised to one that leaves `room`: who comes in between does not matter then.
    pub(super) fn raises(&self, room: Room) -> Vec<(usize, Request)> {
        let Agreement::Raise { mut to, members } = agreement(&self.votes, self.electorate.to_take)
        else {
            return Vec::new();
        };
        let mut lower: Vec<usize> = members;
        let roomy = Fence::from_u64(to.as_u64().saturating_add(room.by));
        if self.acquire.mode == Mode::Shared && roomy < room.below {
            to = roomy;
            let votes = self.votes.iter().filter(|vote| vote.fence < to);
            lower = votes.map(|vote| vote.member).collect();
        }
        let raise = |member| (member, self.vote(Ballot::Raise { to }, None));
        lower.into_iter().map(raise).collect()
    }

    /// The request for a vote that goes with this acquire.
    pub(super) fn vote(&self, ballot: Ballot, not_after: Option<Timestamp>) -> Request {
        let acquire = &self.acquire;
        let vote = Vote {
            owner: acquire.owner,
            mode: acquire.mode,
            ttl: acquire.ttl,
            party: acquire.party.clone(),
            not_after,
            ballot,
        };
        Action::Vote(vote).on(self.name.clone())
    }

    /// A member's answer. To a vote that was to be raised, it replaces the one before.
    pub(super) fn hear(&mut self, member: usize, sent: Moment, answer: Result<Reply, Error>) {
        self.votes.retain(|vote| vote.member != member);
        let voice = match answer {
            Ok(Reply { now, outcome }) => {
                let reading = Reading { sent, now };
                self.outcome(member, reading, outcome)
            }
            Err(error) => {
                self.failures.note(member, error);
                Voice::Silent
            }
        };
        self.poll.hear(member, voice);
    }

    fn outcome(&mut self, member: usize, reading: Reading, outcome: Outcome) -> Voice {
        match outcome {
            Outcome::Granted(Grant { fence, expiry }) => {
                let until = reading.end(expiry, self.acquire.ttl.duration());
                self.votes.push(Voted {
                    member,
                    fence,
                    until,
                });
                return Voice::Yes;
            }
            Outcome::Busy(contention) => {
                if contention.recovering.is_none() {
                    self.held_at.push(member);
                }
                self.rivals.add(member, reading, &contention);
            }
            Outcome::Conflict { in_force } => self.conflict = Some(in_force),
            Outcome::TooLate => self.too_late += 1,
            Outcome::NotHeld { .. } => {}
            _ => return Voice::Silent,
        }
        Voice::No
    }

    /// A member that is not asked.
    pub(super) fn skip(&mut self, member: usize) {
        self.poll.hear(member, Voice::Silent);
    }

    /// Nobody waits for further answers.
    pub(super) fn close(&mut self) {
        self.poll.close();
    }

    pub(super) fn course(&self) -> Course {
        match self.poll.standing() {
            Standing::Open => Course::Open,
            Standing::Reached => match agreement(&self.votes, self.electorate.to_take) {
                Agreement::Agreed { fence, until } => Course::Won { fence, until },
                _ => Course::Disagreeing,
            },
            // Whether somebody holds it or nobody could get it makes a difference to whoever waits,
            // and the answers that tell are a moment away.
            Standing::Refused if self.poll.open() > 0 && !self.rivals.surely_hold() => Course::Open,
            Standing::Refused | Standing::OutOfReach => Course::Lost,
        }
    }

    /// Whether there is nothing to gain by waiting for further answers now.
    pub(super) fn is_decided(&self) -> bool {
        self.course() != Course::Open
    }

    /// Whether it keeps others from a vote that it will hardly get enough of: somebody else has one, too.
    pub(super) fn is_in_the_way(&self) -> bool {
        self.poll.count(Voice::Yes) > 0 && self.poll.count(Voice::No) > 0
    }

    /// How `member` voted.
    pub(super) fn voice(&self, member: usize) -> Option<Voice> {
        self.poll.voice(member)
    }

    /// The members whose vote has another fence than the one that was agreed on, and which.
    pub(super) fn strays(&self, fence: Fence) -> impl Iterator<Item = (usize, Fence)> + '_ {
        let strays = self.votes.iter().filter(move |vote| vote.fence != fence);
        strays.map(|vote| (vote.member, vote.fence))
    }

    /// What has to change before it can be had, if whoever asks wants to be told: `outcome` is what it is told
    /// now. After a race that nobody won it asks again by itself.
    pub(super) fn obstacles(&self, outcome: Option<&Outcome>) -> Option<Obstacles> {
        let waits = matches!(self.acquire.waiting, Waiting::Queue { .. });
        let blocked = matches!(
            outcome,
            Some(Outcome::Busy(Contention { holder_count, recovering, .. }))
                if *holder_count > 0 || recovering.is_some()
        );
        let refusing = self.poll.members(Voice::No);
        let members = refusing.map(|member| (member, self.held_at.contains(&member)));
        let yes = self.poll.count(Voice::Yes);
        (waits && blocked).then(|| Obstacles {
            members: members.collect(),
            lacking: self.electorate.to_take.saturating_sub(yes).max(1),
        })
    }

    /// What whoever asked is told. A grant that is worth nothing any more is none.
    pub(super) fn result(
        &mut self,
        sent: Moment,
        now: Moment,
        epoch: Epoch,
    ) -> Result<Reply, Error> {
        let said = |outcome| {
            Ok(Reply {
                now: epoch.timestamp(sent),
                outcome,
            })
        };
        if let Course::Won { fence, until } = self.course() {
            let expiry = epoch.timestamp(until);
            let validity = Validity::of_reply(sent, epoch.timestamp(sent), expiry);
            if validity.until > now {
                return said(Outcome::Granted(Grant { fence, expiry }));
            }
            return Err(self.too_slow());
        }
        if self.course() == Course::Disagreeing {
            // Others came in between again and again, so nobody can have it now: a race that nobody won.
            return said(Outcome::Busy(Contention::default()));
        }
        let needed = self.electorate.to_take;
        let answered = self.poll.count(Voice::Yes) + self.poll.count(Voice::No);
        let refused = self.poll.standing() == Standing::Refused;
        if !refused && (answered < needed || self.poll.count(Voice::No) == 0) {
            let members = self.electorate.members;
            return Err(self.failures.too_few("take", answered, needed, members));
        }
        if self.too_late > self.electorate.members - needed {
            return said(Outcome::TooLate);
        }
        if let Some(in_force) = self.conflict {
            return said(Outcome::Conflict { in_force });
        }
        let free = self.poll.count(Voice::Yes);
        let silent = self.poll.count(Voice::Silent) + self.poll.open();
        said(Outcome::Busy(self.rivals.contention(epoch, silent, free)))
    }

    fn too_slow(&self) -> Error {
        Error::new(
            ErrorKind::Unavailable,
            format!(
                "the servers answer too slowly for a ttl of {}: choose a longer one",
                Spelled(self.acquire.ttl.duration())
            ),
        )
    }
}
