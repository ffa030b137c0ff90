//! [`Mending`]: giving back to members what they have lost of a hold that was renewed: their vote, or the word that it is
//! shared by now.
//!
//! A vote is asked for only when the hold was confirmed by enough members that still have theirs, and that a good while
//! after the one that is missing was found to be. Then it was not released from elsewhere: whoever does that
//! reaches so many within the longest node time-out that the others are too few to confirm it. So it takes two renewals, and both are
//! the holder's own: one in the background could prolong what its holder has left, or find that it is lost without
//! anybody being told.

use std::sync::Arc;

use tenure_core::{Action, Ballot, Convert, LockName, Mode, Moment, Outcome, Reply, Vote};

use super::Shared;
use super::electorate::Voice;
use super::epoch::Reading;
use super::holds::{Absence, Held};
use super::keep::Keep;

/// A hold that was confirmed by a renewal.
#[derive(Debug)]
pub(super) struct Mending {
    held: Held,
    name: LockName,
    /// How its votes are asked for.
    vote: Vote,
    /// When the renewal began.
    sent: Moment,
}

impl Mending {
    /// Nothing is mended but what this process holds, and says how.
    pub(super) fn of(keep: &Keep, sent: Moment) -> Option<Self> {
        let Action::Renew(renew) = &keep.request.action else {
            return None;
        };
        let held = keep.held.clone().filter(|held| !held.is_over())?;
        let terms = renew.terms.as_ref().filter(|_| !renew.detach)?;
        let vote = Vote {
            owner: keep.owner,
            mode: terms.mode,
            ttl: renew.ttl,
            party: terms.party.clone(),
            not_after: None,
            ballot: Ballot::Held { fence: keep.fence },
        };
        Some(Self {
            held,
            name: keep.request.name.clone(),
            vote,
            sent,
        })
    }
}

impl Shared {
    /// Sees to what the members lack by their answers so far.
    pub(super) fn mend(self: &Arc<Self>, mending: &Mending, keep: &Keep) {
        for member in keep.members(Voice::Yes) {
            mending.held.notes.found(member);
        }
        for member in keep.members(Voice::No) {
            self.mend_vote(mending, member);
        }
        if mending.vote.mode == Mode::Shared {
            for member in mending.held.notes.to_convert() {
                self.convert(mending, member);
            }
        }
    }

    /// The same for one that answered late.
    pub(super) fn mend_late(
        self: &Arc<Self>,
        mending: &Mending,
        member: usize,
        sent: Moment,
        reply: &Reply,
    ) {
        let notes = &mending.held.notes;
        match &reply.outcome {
            Outcome::NotHeld {
                forced: Some(forced),
            } => {
                let now = reply.now;
                notes.was_forced(forced.clone(), Reading { sent, now });
            }
            Outcome::NotHeld { forced: None } => self.mend_vote(mending, member),
            Outcome::Renewed { .. } => notes.found(member),
            _ => {}
        }
    }

    fn mend_vote(self: &Arc<Self>, mending: &Mending, member: usize) {
        let Mending { held, sent, .. } = mending;
        let now = self.clock.now();
        let late = now > sent.plus(self.adrift());
        if late || held.is_over() || held.notes.is_left() {
            return; // What was confirmed then says nothing about now.
        }
        match held
            .notes
            .absence(member, (*sent, now), Self::longest_adrift())
        {
            Absence::New => {}
            Absence::Lasting => {
                let vote = Vote {
                    not_after: self.not_after(member, now, None),
                    ..mending.vote.clone()
                };
                let request = Action::Vote(vote).on(mending.name.clone());
                // Without success it is asked for again in time.
                let asking = self.members[member].clone().ask(now, vec![request]);
                self.runtime.spawn(asking);
            }
        }
    }

    /// Tells a member that the hold is shared by now.
    fn convert(self: &Arc<Self>, mending: &Mending, member: usize) {
        let Vote { owner, .. } = mending.vote;
        let (held, fence) = (mending.held.clone(), mending.held.fence);
        let request = Action::Convert(Convert { owner, fence }).on(mending.name.clone());
        let asking = self.members[member]
            .clone()
            .ask(self.clock.now(), vec![request]);
        self.runtime.spawn(async move {
            let answer = asking.await.replies.into_iter().next();
            // One that is missing may come back by a question from before, as an exclusive one.
            if let Some(Ok(Reply {
                outcome: Outcome::Converted { .. },
                ..
            })) = answer
            {
                held.notes.converted(member, true);
            }
        });
    }
}
