//! [`Keep`]: one renewal, conversion or release on its way through the quorum. Answers go in, a verdict
//! comes out; nothing here waits or sends.

use tenure_core::{
    Action, Error, ErrorKind, Fence, ForcedRelease, Kind, Moment, Outcome, OwnerId, Renew, Reply,
    Request, Ttl,
};

use super::agreement::latest;
use super::debts::Lasting;
use super::electorate::{Electorate, Poll, Standing, Voice};
use super::epoch::{Epoch, Reading};
use super::failures::Failures;
use super::holds::Held;

/// What is left to do after a release at members that have not confirmed it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub(super) lasting: Lasting,
    /// `None` if the hold has surely ended: then every vote of its owner can go. A member that knows no
    /// such hold may have a vote with another fence, or get one by a request that is still under way.
    pub(super) fence: Option<Fence>,
}

/// A request about a hold, and what the members have said to it.
#[derive(Debug)]
pub(super) struct Keep {
    pub(super) request: Request,
    pub(super) owner: OwnerId,
    pub(super) fence: Fence,
    /// What is known of the hold, if this process took it.
    pub(super) held: Option<Held>,
    electorate: Electorate,
    poll: Poll,
    /// Until when each vote lasts that was prolonged.
    ends: Vec<(usize, Moment)>,
    forced: Option<(ForcedRelease, Reading)>,
    conflict: Option<Kind>,
    /// Some recover from a loss of data and do not know it; until when.
    forgotten: Option<Moment>,
    failures: Failures,
    /// Answers came so late that what they say together is not sure.
    late: bool,
}

impl Keep {
    pub(super) fn new(
        request: Request,
        (owner, fence): (OwnerId, Fence),
        held: Option<Held>,
        electorate: Electorate,
    ) -> Self {
        let forced = held.as_ref().and_then(|held| held.notes.forced());
        Self {
            request,
            owner,
            fence,
            held,
            electorate,
            poll: Poll::new(electorate.members, electorate.to_keep),
            ends: Vec::new(),
            forced,
            conflict: None,
            forgotten: None,
            failures: Failures::default(),
            late: false,
        }
    }

    /// So much time has passed since it was sent that its holder may have got back at one member what another has ended. What is
    /// ended by force does not come back.
    pub(super) fn is_late(&mut self) {
        self.late = matches!(self.request.action, Action::Release(_));
    }

    pub(super) fn hear(&mut self, member: usize, sent: Moment, answer: Result<Reply, Error>) {
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
        let expiry = match outcome {
            Outcome::Renewed { expiry } | Outcome::Converted { expiry } => expiry,
            Outcome::Granted(grant) if grant.fence == self.fence => grant.expiry,
            Outcome::Released => return Voice::Yes,
            Outcome::NotHeld { forced } => {
                let forced = forced.map(|forced| (forced, reading));
                self.forced = self.forced.take().or(forced);
                return Voice::No;
            }
            Outcome::Conflict { in_force } => {
                self.conflict = Some(in_force);
                return Voice::No;
            }
            Outcome::Forgotten { until } => {
                self.forgotten = Some(reading.here(until));
                return Voice::Silent;
            }
            Outcome::Granted(_) | Outcome::Busy(_) | Outcome::TooLate => return Voice::No,
            _ => return Voice::Silent,
        };
        self.ends.push((member, reading.here(expiry)));
        Voice::Yes
    }

    pub(super) fn close(&mut self) {
        self.poll.close();
    }

    pub(super) fn skip(&mut self, member: usize) {
        self.poll.hear(member, Voice::Silent);
    }

    pub(super) fn is_decided(&self) -> bool {
        match self.standing() {
            Standing::Open => false,
            // Whoever was told that it is free must be able to take it.
            Standing::Reached if self.ends_it() || self.leaves_it() => {
                self.poll.count(Voice::Yes) >= self.electorate.to_take || self.poll.open() == 0
            }
            _ => true,
        }
    }

    fn standing(&self) -> Standing {
        let over = self.held.as_ref().is_some_and(Held::is_over);
        match self.poll.standing() {
            // What was ended by force at one member is not kept by the others, nor what was released meanwhile.
            _ if !self.ends_it() && self.forced.is_some() => Standing::Refused,
            Standing::Reached if !self.ends_it() && over => Standing::Refused,
            Standing::Reached if self.ends_it() && !self.is_by_holder() => self.ended(),
            standing => standing,
        }
    }

    /// How an end stands whose holder does not know of it: it must be one that no renewal can undo, so it must reach
    /// as many as it takes that the others are too few to keep it.
    fn ended(&self) -> Standing {
        if self.late {
            Standing::OutOfReach
        } else if self.poll.count(Voice::Yes) >= self.electorate.to_take {
            Standing::Reached
        } else if self.poll.open() > 0 {
            Standing::Open
        } else if self.poll.count(Voice::Silent) > 0 {
            Standing::OutOfReach
        } else {
            // Where it was not ended it was not held.
            Standing::Reached
        }
    }

    /// Whether it is the holder who asks.
    fn is_by_holder(&self) -> bool {
        let left = |held: &Held| held.notes.is_left();
        let held = self.held.as_ref().filter(|held| !left(held));
        held.is_some() && !matches!(self.request.action, Action::ForceRelease(_))
    }

    /// The members that say this.
    pub(super) fn members(&self, voice: Voice) -> impl Iterator<Item = usize> + '_ {
        self.poll.members(voice)
    }

    /// How `member` answered.
    pub(super) fn voice(&self, member: usize) -> Option<Voice> {
        self.poll.voice(member)
    }

    fn ends_it(&self) -> bool {
        matches!(
            self.request.action,
            Action::Release(_) | Action::ForceRelease(_)
        )
    }

    /// What a release leaves to be done, given what came of it and what was held here.
    pub(super) fn rest(&self, outcome: Option<&Outcome>, held: Option<&Held>) -> Rest {
        let ended = outcome == Some(&Outcome::Released) || held.is_some();
        Rest {
            // Whoever was told that it failed must not find it ended long after that.
            lasting: match ended {
                true => Lasting::of(held.or(self.held.as_ref())),
                false => Lasting::UpTo(Ttl::DEFAULT.duration()),
            },
            fence: (!ended).then_some(self.fence),
        }
    }

    /// Whether its holder leaves it behind.
    fn leaves_it(&self) -> bool {
        matches!(
            self.request.action,
            Action::Renew(Renew { detach: true, .. })
        )
    }

    /// Members that may still have what a release was to end.
    pub(super) fn unconfirmed(&self, rest: &Rest) -> impl Iterator<Item = usize> + '_ {
        let lost = rest.fence.is_none().then(|| self.poll.members(Voice::No));
        let silent = self.poll.members(Voice::Silent);
        silent.chain(lost.into_iter().flatten())
    }

    /// Until when enough votes last.
    pub(super) fn until(&self) -> Option<Moment> {
        let mut ends: Vec<_> = self.ends.iter().map(|(_, end)| *end).collect();
        latest(&mut ends, self.electorate.to_keep)
    }

    pub(super) fn result(&mut self, sent: Moment, epoch: Epoch) -> Result<Reply, Error> {
        let expiry = self.until().map(|until| epoch.timestamp(until));
        let outcome = match (self.standing(), &self.request.action, expiry) {
            (Standing::Reached, Action::Renew(_), Some(expiry)) => Outcome::Renewed { expiry },
            (Standing::Reached, Action::Convert(_), Some(expiry)) => Outcome::Converted { expiry },
            (Standing::Reached, ..) => Outcome::Released,
            (Standing::Refused, ..) => match self.conflict {
                Some(in_force) => Outcome::Conflict { in_force },
                None => Outcome::NotHeld {
                    forced: self.forced.take().map(|(forced, reading)| ForcedRelease {
                        at: epoch.timestamp(reading.here(forced.at)),
                        ..forced
                    }),
                },
            },
            (Standing::Open | Standing::OutOfReach, ..) => {
                if let Some(until) = self.forgotten.map(|until| epoch.timestamp(until)) {
                    let (now, outcome) = (epoch.timestamp(sent), Outcome::Forgotten { until });
                    return Ok(Reply { now, outcome });
                }
                return Err(self.too_few());
            }
        };
        Ok(Reply {
            now: epoch.timestamp(sent),
            outcome,
        })
    }

    fn too_few(&mut self) -> Error {
        let (yes, members) = (self.poll.count(Voice::Yes), self.electorate.members);
        let unknown = self.ends_it() && !self.is_by_holder();
        if unknown && self.late {
            return Error::new(
                ErrorKind::Unavailable,
                "the answers came too late to say that it is ended everywhere: ask again",
            );
        }
        let error = self.failures.too_few(
            self.request.action.word(),
            yes + self.poll.count(Voice::No),
            if unknown {
                self.electorate.to_take
            } else {
                self.electorate.to_keep
            },
            members,
        );
        if unknown && yes > 0 {
            return error.with("ended", format!("at {yes} of {members}: ask again"));
        }
        error
    }
}
