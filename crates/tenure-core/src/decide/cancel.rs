//! Cancel: whatever the owner has here goes, its place in the queue or the grant that raced with us.

use super::Step;
use crate::{Cancel, LockState, Outcome, Removed};

pub(super) fn cancel(state: &mut LockState, request: &Cancel, step: &mut Step<'_>) -> Outcome {
    let (holders, waiters) = (state.holders.len(), state.queue.len());
    state.holders.retain(|holder| holder.owner != request.owner);
    state.queue.retain(|waiter| waiter.owner != request.owner);
    let removed = if state.holders.len() < holders {
        Removed::Grant
    } else if state.queue.len() < waiters {
        Removed::Waiter
    } else {
        Removed::Nothing
    };
    step.admit(state, None);
    Outcome::Cancelled(removed)
}
