//! [`Question`]: one request of a batch on its way through the quorum, whatever it is about.

use tenure_core::{Action, Error, ErrorKind, Fence, Mode, Moment, OwnerId, Renew, Reply, Request};

use super::Shared;
use super::keep::Keep;
use super::look::{Look, Undo};
use super::take::{Room, Take};

/// One request of a batch.
#[derive(Debug)]
pub(super) enum Question {
    /// Refused without asking anybody.
    Refused(Option<Error>),
    Take(Box<Take>),
    Keep(Box<Keep>),
    Undo(Undo),
    Look(Look),
}

impl Question {
    pub(super) fn new(request: &Request, shared: &Shared, now: Moment) -> Self {
        let electorate = shared.electorate;
        let keep = |owner: OwnerId, fence: Fence| {
            let held = shared.holds.get(owner, now);
            // Noted before anything is sent: whoever asks may be gone before the answers are here.
            match (&request.action, &held) {
                (Action::Renew(Renew { detach, ttl, .. }), Some(held)) => {
                    held.notes.is_to_last(*ttl);
                    if *detach {
                        held.notes.leave();
                    }
                }
                (Action::Convert(_), Some(held)) => {
                    for member in 0..electorate.members {
                        held.notes.converted(member, false);
                    }
                }
                _ => {}
            }
            let keep = Keep::new(request.clone(), (owner, fence), held, electorate);
            Self::Keep(Box::new(keep))
        };
        match &request.action {
            Action::Acquire(acquire) => {
                if let Err(error) = shared.check(acquire) {
                    return Self::Refused(Some(error));
                }
                let (name, proposal) = (request.name.clone(), shared.proposal(now));
                Self::Take(Box::new(Take::new(
                    name,
                    acquire.clone(),
                    electorate,
                    proposal,
                )))
            }
            Action::Renew(renew) => keep(renew.owner, renew.fence),
            Action::Convert(convert) => keep(convert.owner, convert.fence),
            Action::Release(release) => keep(release.owner, release.fence),
            Action::ForceRelease(release) => keep(release.owner, release.fence),
            Action::Cancel(_) => Self::Undo(Undo::new(request.clone(), electorate)),
            Action::Inspect => Self::Look(Look::new(request.clone(), electorate)),
            Action::Vote(_) => Self::Refused(Some(Error::new(
                ErrorKind::Unsupported,
                "a quorum is not a member of another quorum",
            ))),
        }
    }

    /// What this member is asked, if anything.
    pub(super) fn request(&self, shared: &Shared, member: usize, now: Moment) -> Option<Request> {
        match self {
            Self::Refused(_) => None,
            Self::Take(take) => {
                let not_after = shared.not_after(member, now, take.acquire.not_after);
                Some(take.request(not_after))
            }
            Self::Keep(keep) => Some(keep.request.clone()),
            Self::Undo(undo) => Some(undo.request.clone()),
            Self::Look(look) => Some(look.request.clone()),
        }
    }

    /// Whom to ask what once the first answers are in; see [`Take::raises`].
    pub(super) fn follow_up(&self, room: Room) -> Vec<(usize, Request)> {
        match self {
            Self::Take(take) => take.raises(room),
            _ => Vec::new(),
        }
    }

    pub(super) fn hear(&mut self, member: usize, sent: Moment, answer: Result<Reply, Error>) {
        match self {
            Self::Refused(_) => {}
            Self::Take(take) => take.hear(member, sent, answer),
            Self::Keep(keep) => keep.hear(member, sent, answer),
            Self::Undo(undo) => undo.hear(member, answer),
            Self::Look(look) => look.hear(member, sent, answer),
        }
    }

    /// What is heard next was answered long after it was asked.
    pub(super) fn is_late(&mut self) {
        match self {
            Self::Keep(keep) if !keep.is_decided() => keep.is_late(),
            _ => {}
        }
    }

    /// A member that is not asked.
    pub(super) fn skip(&mut self, member: usize) {
        match self {
            Self::Refused(_) => {}
            Self::Take(take) => take.skip(member),
            Self::Keep(keep) => keep.skip(member),
            Self::Undo(undo) => undo.answers.skip(member),
            Self::Look(look) => look.answers.skip(member),
        }
    }

    /// Nobody waits for further answers.
    pub(super) fn close(&mut self) {
        match self {
            Self::Refused(_) => {}
            Self::Take(take) => take.close(),
            Self::Keep(keep) => keep.close(),
            Self::Undo(undo) => undo.answers.close(),
            Self::Look(look) => look.answers.close(),
        }
    }

    /// Whether there is nothing to gain by waiting for further answers.
    pub(super) fn is_decided(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Take(take) => take.is_decided(),
            Self::Keep(keep) => keep.is_decided(),
            Self::Undo(undo) => undo.answers.is_complete(),
            Self::Look(look) => look.answers.is_complete(),
        }
    }

    /// Whether there is little to gain by waiting for members that are hung, and others lose by it.
    pub(super) fn is_in_the_way(&self) -> bool {
        matches!(self, Self::Take(take) if take.is_in_the_way())
    }

    pub(super) fn result(&mut self, shared: &Shared, sent: Moment) -> Result<Reply, Error> {
        let epoch = shared.epoch;
        match self {
            Self::Refused(error) => Err(error.take().unwrap_or_else(|| {
                Error::new(
                    ErrorKind::Protocol,
                    "asked twice for the result of one request",
                )
            })),
            Self::Take(take) => take.result(sent, shared.clock.now(), epoch),
            Self::Keep(keep) => keep.result(sent, epoch),
            Self::Undo(undo) => undo.result(sent, epoch),
            Self::Look(look) => look.result(sent, epoch),
        }
    }
}

/// Whether a majority can give this at all.
pub(super) fn offered(mode: Mode) -> Result<(), Error> {
    match mode {
        Mode::Exclusive | Mode::Shared => Ok(()),
        Mode::Permits(_) => Err(Error::new(
            ErrorKind::Unsupported,
            "a quorum has no semaphores: majorities do not bound a sum (with three servers and two \
             permits, three clients could each have two servers). Use a single store for them",
        )),
    }
}
