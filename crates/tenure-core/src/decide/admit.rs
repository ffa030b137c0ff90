//! Who gets in next: the rules that every step shares.
//!
//! Strict first come, first served; adjacent readers together, permits while they fit. Nobody
//! overtakes a waiter that can be reached, so nobody starves.

use std::time::Duration;

use super::{Handover, Step};
use crate::{Fence, Grant, Holder, Inbox, LockState, Mode, OwnerId, Party, Waiter};

/// Whether anybody who can be reached still waits after [`Step::admit`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    /// A newcomer that fits may have the lock.
    Clear,
    /// Somebody who came earlier waits for it.
    Awaited,
}

/// Who is to hold, and until when.
pub(super) struct Admission {
    pub(super) owner: OwnerId,
    pub(super) mode: Mode,
    pub(super) lasts: Duration,
    pub(super) anchor: Option<Inbox>,
    pub(super) party: Party,
}

impl Step<'_> {
    /// Forgets holds that have expired, waiters that fell silent, and both where the process is
    /// dead: a grant for a dead waiter would hold everybody up, and nobody would be told.
    pub(super) fn expire(&self, state: &mut LockState) {
        let alive = |anchor: &Option<Inbox>| {
            let anchor = anchor.as_ref();
            anchor.is_none_or(|anchor| self.liveness.alive(anchor))
        };
        let now = self.now;
        state
            .holders
            .retain(|holder| holder.expiry > now && alive(&holder.anchor));
        state
            .queue
            .retain(|waiter| waiter.alive_until > now && alive(&waiter.anchor));
    }

    /// Lets in waiters from the head of the queue, while they fit.
    ///
    /// `asking` is the owner of the request itself: it needs no push and no claim window, because
    /// the reply tells it.
    pub(super) fn admit(&mut self, state: &mut LockState, asking: Option<OwnerId>) -> Front {
        if !self.phase.is_open() {
            // Somebody whom the store forgot may hold it.
            return Front::Awaited;
        }
        let mut index = 0;
        while let Some(waiter) = state.queue.get(index) {
            let asks = Some(waiter.owner) == asking;
            if !asks && !self.liveness.reachable(&waiter.inbox) {
                index += 1;
                continue;
            }
            if !state.fits(waiter.mode) {
                return Front::Awaited;
            }
            let waiter = state.queue.remove(index).expect("looked up one line above");
            self.let_in(state, waiter, asks);
        }
        Front::Clear
    }

    fn let_in(&mut self, state: &mut LockState, waiter: Waiter, asks: bool) {
        let lasts = if asks {
            waiter.ttl.duration()
        } else {
            waiter.claim_window()
        };
        let Waiter {
            owner,
            mode,
            party,
            inbox,
            anchor,
            ..
        } = waiter;
        let grant = self.grant(
            state,
            Admission {
                owner,
                mode,
                lasts,
                anchor,
                party,
            },
        );
        if !asks {
            let Grant { fence, expiry } = grant;
            self.handovers.push(Handover {
                inbox,
                owner,
                fence,
                expiry,
            });
        }
    }

    /// Makes a holder, with the next fence.
    pub(super) fn grant(&self, state: &mut LockState, admission: Admission) -> Grant {
        let fence = state.last_fence.next(self.now);
        self.grant_as(state, admission, fence)
    }

    /// Makes a holder with this fence, which nobody has had. Those of its range are given to nobody
    /// else.
    pub(super) fn grant_as(
        &self,
        state: &mut LockState,
        admission: Admission,
        fence: Fence,
    ) -> Grant {
        let Admission {
            owner,
            mode,
            lasts,
            anchor,
            party,
        } = admission;
        let expiry = self.now.plus(lasts);
        state.last_fence = state.last_fence.max(fence.last_of_grant(mode));
        state.holders.push(Holder {
            owner,
            mode,
            fence,
            since: self.now,
            expiry,
            anchor,
            party,
        });
        Grant { fence, expiry }
    }
}
