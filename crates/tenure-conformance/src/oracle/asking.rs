//! What the words of a trace mean at the moment when they are asked.

use std::time::Duration;

use tenure_core::{
    Acquire, Action, Ballot, Cancel, Convert, Fence, ForceRelease, Party, Release, Renew,
    Timestamp, Vote, Waiting,
};

use super::replay::Replay;
use super::trace::{Ask, Choice, Hold, Limit, PEERS, What};
use crate::peer::{bid, ttl};

impl Replay<'_> {
    /// The action that `ask` means now.
    pub(super) fn action(&self, ask: &Ask) -> Action {
        let owner = self.owners[ask.owner];
        match ask.what {
            What::Acquire { .. } => Action::Acquire(self.acquire(ask)),
            What::Renew {
                hold,
                ttl: length,
                detach,
            } => Action::Renew(Renew {
                owner,
                fence: self.fence(ask, hold),
                ttl: ttl(length),
                detach,
                terms: None,
            }),
            What::Convert(hold) => Action::Convert(Convert {
                owner,
                fence: self.fence(ask, hold),
            }),
            What::Release(hold) => Action::Release(Release {
                owner,
                fence: self.fence(ask, hold),
            }),
            What::Force(hold) => Action::ForceRelease(ForceRelease {
                owner,
                fence: self.fence(ask, hold),
                by: Party::new("operator", "", "desk", 1),
                reason: format!("because of {}", ask.owner),
            }),
            What::Cancel => Action::Cancel(Cancel { owner }),
            What::Inspect => Action::Inspect,
            What::Vote {
                mode,
                ttl: length,
                ballot,
                limit,
            } => Action::Vote(Vote {
                owner,
                mode,
                ttl: ttl(length),
                party: bid().party,
                not_after: self.not_after(limit),
                ballot: self.ballot(ask, ballot),
            }),
        }
    }

    fn acquire(&self, ask: &Ask) -> Acquire {
        let What::Acquire {
            mode,
            ttl: length,
            alive_for,
            anchored,
            limit,
        } = ask.what
        else {
            unreachable!("called for an acquire only");
        };
        let peer = &self.stage.peers[ask.owner % PEERS];
        let listens = ask.owner % PEERS != PEERS - 1;
        let waiting = alive_for.map_or(Waiting::No, |millis| Waiting::Queue {
            inbox: peer.inbox.clone(),
            alive_for: Duration::from_millis(millis),
        });
        Acquire {
            owner: self.owners[ask.owner],
            mode,
            ttl: ttl(length),
            waiting,
            anchor: (anchored && listens).then(|| peer.inbox.clone()),
            not_after: self.not_after(limit),
            ..bid()
        }
    }

    fn not_after(&self, limit: Limit) -> Option<Timestamp> {
        match limit {
            Limit::None => None,
            Limit::Past => Some(Timestamp::from_micros(
                self.now.as_micros().saturating_sub(1),
            )),
            Limit::Future => Some(self.now.plus(Duration::from_secs(600))),
        }
    }

    fn ballot(&self, ask: &Ask, choice: Choice) -> Ballot {
        let fence = |hold, by| Fence::from_u64(self.fence(ask, hold).as_u64() + by);
        match choice {
            Choice::New { ahead } => Ballot::New {
                proposal: Fence::from_u64(self.now.as_micros().saturating_add_signed(ahead)),
            },
            Choice::Raise { hold, by } => Ballot::Raise {
                to: fence(hold, by),
            },
            Choice::Held { hold, by } => Ballot::Held {
                fence: fence(hold, by),
            },
        }
    }

    fn fence(&self, ask: &Ask, hold: Hold) -> Fence {
        let shadow = &self.locks[ask.lock];
        let current = shadow.state.holder(self.owners[ask.owner]);
        match (hold, current) {
            (Hold::Current, Some(holder)) => holder.fence,
            (Hold::Current | Hold::Last, _) => shadow.fences[ask.owner],
            (Hold::Invented, _) => Fence::from_u64(self.now.as_micros() + 7),
        }
    }
}
