//! Random walks of a few owners on one name, followed by `decide`: who is let in, kept and let go. For
//! every store, also one without a single clock or a queue: it chooses fences and times by itself, as
//! long as fences grow.

use tenure_core::{
    Action, Cancel, Convert, Fence, ForceRelease, LockName, LockState, Mode, Outcome, OwnerId,
    Party, Release, Renew, Reply, Timestamp, decide,
};

use super::{Case, stories};
use crate::peer::{Peer, World, bid, shared, ttl};
use crate::random::{Dice, fresh, fresh_bytes};
use crate::subject::PATIENCE;

pub(crate) const CASES: &[Case] = stories!(walk:
    it_lets_in_keeps_and_lets_go_as_decide_does,
);

const WALKS: usize = 6;
const STEPS: usize = 40;

async fn it_lets_in_keeps_and_lets_go_as_decide_does(world: &World<'_>) {
    let peers = [world.peer().await, world.peer().await];
    for walk in 0..WALKS {
        let seed = fresh();
        let mut walker = Walker::new(world.name(&walk.to_string()));
        let mut dice = Dice::new(seed);
        for step in 0..STEPS {
            let place = usize::try_from(dice.below(4)).unwrap_or(0);
            let action = walker.action(place, &mut dice);
            let done = walker.step(&peers[place % 2], action).await;
            done.unwrap_or_else(|words| panic!("seed {seed}, step {step}: {words}"));
        }
    }
}

struct Walker {
    name: LockName,
    owners: [(OwnerId, Fence); 4],
    state: LockState,
    now: Timestamp,
    highest: Fence,
}

impl Walker {
    fn new(name: LockName) -> Self {
        Self {
            name,
            owners: [(); 4].map(|()| (OwnerId::from_bytes(fresh_bytes()), Fence::from_u64(7))),
            state: LockState::default(),
            now: Timestamp::from_micros(0),
            highest: Fence::NONE,
        }
    }

    fn action(&mut self, place: usize, dice: &mut Dice) -> Action {
        let (owner, fence) = self.owners[place];
        match dice.below(9) {
            0..=3 => {
                // Whoever asks again is somebody else: what is taken back late must not be theirs.
                if self.state.holder(owner).is_none() {
                    self.owners[place].0 = OwnerId::from_bytes(fresh_bytes());
                }
                let mut bid = if dice.once_in(2) { bid() } else { shared() };
                bid.owner = self.owners[place].0;
                Action::Acquire(bid)
            }
            4 => Action::Renew(Renew {
                owner,
                fence,
                ttl: ttl(90_000),
                detach: false,
                terms: None,
            }),
            5 => Action::Convert(Convert { owner, fence }),
            6 => Action::Release(Release { owner, fence }),
            7 if dice.once_in(2) => Action::ForceRelease(ForceRelease {
                owner,
                fence,
                by: Party::new("operator", "", "desk", 1),
                reason: "walk".to_owned(),
            }),
            7 => Action::Cancel(Cancel { owner }),
            _ => Action::Inspect,
        }
    }

    async fn step(&mut self, peer: &Peer<'_>, mut action: Action) -> Result<(), String> {
        for _ in 0..PATIENCE {
            let reply = peer.ask(&self.name, action.clone()).await;
            self.now = self.now.max(reply.now);
            let everyone = tenure_core::Everyone;
            let decision = decide(self.state.clone(), &action, self.now, &everyone);
            let (store, expected) = (&reply.outcome, &decision.outcome);
            if let (Action::Acquire(bid), Outcome::Busy(_), Outcome::Granted(_)) =
                (&mut action, store, expected)
            {
                // What another one let go is on its way to some servers.
                let owner = OwnerId::from_bytes(fresh_bytes());
                self.rename(bid.owner, owner);
                bid.owner = owner;
                peer.pause().await;
                continue;
            }
            if outline(store) != outline(expected) {
                return Err(format!(
                    "{action:?} of {:?}: {store:?}, and decide: {expected:?}",
                    self.state
                ));
            }
            let before = std::mem::replace(&mut self.state, decision.state);
            return self.granted(&before, &action, &reply);
        }
        Err("it stays busy where nobody holds it".to_owned())
    }

    /// Takes over the fence that the store has chosen.
    fn granted(
        &mut self,
        before: &LockState,
        action: &Action,
        reply: &Reply,
    ) -> Result<(), String> {
        let (Action::Acquire(bid), Outcome::Granted(grant)) = (action, &reply.outcome) else {
            return Ok(());
        };
        match before.holder(bid.owner) {
            // Of several servers, one that did not answer in time has not voted yet: its vote may have a later fence,
            // and raises that of the others.
            Some(held) if grant.fence < held.fence => {
                return Err("an earlier fence than before".to_owned());
            }
            None if grant.fence <= self.highest => {
                return Err("a fence that does not grow".to_owned());
            }
            _ => {}
        }
        self.highest = self.highest.max(grant.fence);
        for holder in &mut self.state.holders {
            if holder.owner == bid.owner {
                holder.fence = grant.fence;
            }
        }
        let last = grant.fence.last_of_grant(Mode::Exclusive);
        self.state.last_fence = self.state.last_fence.max(last);
        for (owner, fence) in &mut self.owners {
            if *owner == bid.owner {
                *fence = grant.fence;
            }
        }
        Ok(())
    }

    fn rename(&mut self, old: OwnerId, new: OwnerId) {
        for (owner, _) in &mut self.owners {
            if *owner == old {
                *owner = new;
            }
        }
    }
}

/// What an answer says, but for fences and times.
fn outline(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Granted(_) => "granted".to_owned(),
        Outcome::Busy(contention) => {
            let mut owners: Vec<_> = contention.holders.iter().map(|view| view.owner).collect();
            owners.sort_unstable();
            format!("busy with {owners:?}")
        }
        Outcome::Renewed { .. } => "renewed".to_owned(),
        Outcome::Converted { .. } => "converted".to_owned(),
        Outcome::NotHeld { forced } => format!("not held, forced: {}", forced.is_some()),
        Outcome::State(snapshot) => {
            let views = snapshot.holders.iter();
            let mut holders: Vec<_> = views.map(|view| (view.owner, view.mode)).collect();
            holders.sort_unstable_by_key(|(owner, _)| *owner);
            format!("held by {holders:?}")
        }
        other => format!("{other:?}"),
    }
}
