//! [`Attempt`]: one try to get a hold, which leaves nothing behind if it is given up.

use std::sync::Arc;

use tenure_core::{Error, Fence, Lease, Moment, OwnerId, Timestamp, Validity};

use super::{Anchor, Hold, NewHold, Wanted};
use crate::client::Client;
use crate::keeper::{Errand, Times};
use crate::mailbox::Slot;
use crate::random;

/// Exists before the first byte is sent, so that dropping the future that owns it at *any* await
/// cancels whatever the store may have done for it.
pub(super) struct Attempt {
    pub(super) client: Arc<Client>,
    pub(super) wanted: Wanted,
    pub(super) owner: OwnerId,
    pub(super) slot: Arc<Slot>,
    /// The send time and store time of the last reply, which anchors a pushed grant.
    pub(super) anchor: Option<Anchor>,
    leftovers: Leftovers,
    /// Whether anything was asked as this owner.
    asked: bool,
    /// A request that no `not_after` keeps from being carried out late was never answered.
    adrift: bool,
}

/// Whether the store may know of this attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leftovers {
    None,
    Possible,
}

impl Attempt {
    pub(super) fn new(client: &Arc<Client>, wanted: &Wanted) -> Result<Self, Error> {
        let owner = random::owner_id()?;
        Ok(Self {
            client: client.clone(),
            wanted: wanted.clone(),
            owner,
            slot: client.mailbox.open(owner, wanted.name.clone()),
            anchor: None,
            leftovers: Leftovers::None,
            asked: false,
            adrift: false,
        })
    }

    /// From now on asks as somebody else, and what was asked so far is cancelled. For a store without a
    /// queue: what it takes back of one question, however late, must not be of the next one.
    pub(super) fn start_over(&mut self) -> Result<(), Error> {
        let fresh = random::owner_id()?;
        self.give_up();
        self.owner = fresh;
        self.slot = self.client.mailbox.open(fresh, self.wanted.name.clone());
        self.leftovers = Leftovers::None;
        self.asked = false;
        self.adrift = false;
        Ok(())
    }

    /// Whether anything was asked as this owner.
    pub(super) fn has_asked(&self) -> bool {
        self.asked
    }

    /// A request is about to be sent.
    pub(super) fn sent(&mut self, not_after: Option<Timestamp>) {
        self.leftovers = Leftovers::Possible;
        self.asked = true;
        self.adrift |= not_after.is_none();
    }

    /// It was answered. An earlier one may still be adrift, but was sent before this one.
    pub(super) fn answered(&mut self, anchor: Anchor) {
        self.anchor = Some(anchor);
        self.adrift = false;
    }

    /// The store has said that it keeps nothing of this attempt.
    pub(super) fn settled(&mut self) {
        self.leftovers = Leftovers::None;
    }

    /// Turns a grant into a hold that is kept; `None` if it is worth nothing any more. It was
    /// confirmed in full by a request sent at `confirmed`, or has to be renewed soon.
    pub(super) fn hold(
        &mut self,
        fence: Fence,
        validity: Validity,
        confirmed: Option<Moment>,
    ) -> Result<Option<Arc<Hold>>, Error> {
        let now = self.client.link.now();
        if validity.until <= now {
            return Ok(None);
        }
        let wanted = &self.wanted;
        let hold = Arc::new(Hold::new(NewHold {
            name: wanted.name.clone(),
            lease: Lease {
                owner: self.owner,
                fence,
            },
            fence,
            mode: wanted.mode,
            ttl: wanted.ttl,
            validity,
            renewing: wanted.renewing,
            party: wanted.party.clone(),
            limit: wanted.hold_at_most.map(|limit| now.plus(limit)),
        }));
        self.client.keeper.keep(hold.clone(), now, confirmed)?;
        self.leftovers = Leftovers::None;
        Ok(Some(hold))
    }

    /// Cancels whatever the store may have done for it.
    fn give_up(&mut self) {
        self.client.mailbox.close(self.owner);
        if self.leftovers == Leftovers::Possible {
            let Wanted { name, ttl, .. } = &self.wanted;
            let times = if self.adrift {
                Times::Twice
            } else {
                Times::Once
            };
            let errand = Errand::cancel(name.clone(), self.owner, *ttl, times);
            self.client.keeper.run(errand);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.give_up();
    }
}
