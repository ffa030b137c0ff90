//! Reinstate: while recovering, a holder whose lease is still valid gets back what the store forgot.
//!
//! That nobody is let in makes it safe: whoever renews was valid when it sent the renewal, so whatever
//! is stored beside it and cannot be held together with it has ended, unless it was granted later.
//! The fences tell: the higher one wins.

use super::Step;
use crate::{Holder, LockState, Mode, Outcome, Renew, Terms, Timestamp};

pub(super) fn reinstate(
    state: &mut LockState,
    request: &Renew,
    terms: &Terms,
    step: &Step<'_>,
) -> Outcome {
    let forced = state.forced.clone();
    let forced = forced.filter(|it| it.owner == request.owner && it.fence == request.fence);
    if forced.is_some() || was_succeeded(state, request, terms.mode) {
        return Outcome::NotHeld { forced };
    }
    state
        .holders
        .retain(|holder| holder.owner != request.owner && go_together(terms.mode, holder.mode));
    // A store that went back in time may still have its holder in the queue.
    state.queue.retain(|waiter| waiter.owner != request.owner);
    let place = state
        .holders
        .partition_point(|holder| holder.fence < request.fence);
    let expiry = step.now.plus(request.ttl.duration());
    let granted = Timestamp::from_micros(request.fence.as_u64());
    state.holders.insert(
        place,
        Holder {
            owner: request.owner,
            mode: terms.mode,
            fence: request.fence,
            // A fence is the time of its grant, if the clock has not gone back.
            since: granted.min(step.now),
            expiry,
            anchor: None,
            party: terms.party.clone(),
        },
    );
    // It may have been exclusive before, and then handed on.
    let last = request.fence.last_of_grant(Mode::Exclusive);
    state.last_fence = state.last_fence.max(last);
    Outcome::Renewed { expiry }
}

/// A store that went back in time may still have a reader as the writer that it was.
pub(super) fn confirm_mode(holder: &mut Holder, terms: &Terms) {
    if terms.mode == Mode::Shared && holder.mode == Mode::Exclusive {
        holder.mode = Mode::Shared;
    }
}

/// Whether the store has seen a later grant that this hold cannot have lived to see, or has given
/// its fence to somebody else.
fn was_succeeded(state: &LockState, request: &Renew, mode: Mode) -> bool {
    // What is left of its own range was given to nobody else.
    if mode == Mode::Exclusive && state.last_fence > request.fence.last_of_grant(mode) {
        return true;
    }
    let mut holders = state.holders.iter();
    holders.any(|holder| {
        let own = holder.owner == request.owner;
        let instead = own || !go_together(mode, holder.mode);
        instead && holder.fence > request.fence || !own && holder.fence == request.fence
    })
}

/// Whether the two can be held at the same time. Permits always count as such: a store that went
/// back in time may show some that were given back since, and whoever renews has its own by right.
fn go_together(one: Mode, other: Mode) -> bool {
    one != Mode::Exclusive && other != Mode::Exclusive && one.kind() == other.kind()
}
