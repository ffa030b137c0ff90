//! Vote: a voice in a quorum. Like an acquire that never queues, with a fence that all members of the
//! quorum agree on; and the way in which a holder gets a lost voice back.
//!
//! While recovering, a store gives no new vote, and none that it inherited counts as one.

use super::Step;
use super::admit::{Admission, Front};
use super::inspect::contention;
use super::release::not_held;
use crate::{Ballot, Fence, Grant, Holder, LockState, Outcome, Vote};

pub(super) fn vote(state: &mut LockState, request: &Vote, step: &mut Step<'_>) -> Outcome {
    let front = step.admit(state, None);
    if let Some(index) = index_of(state, request) {
        return voted_before(state, index, request, step);
    }
    let absent = |state: &LockState, fence| not_held(state, request.owner, fence, step);
    if let Ballot::Raise { to } = request.ballot {
        return absent(state, to);
    }
    if request.not_after.is_some_and(|limit| limit < step.now) {
        return Outcome::TooLate;
    }
    if let Some(in_force) = state.kind().filter(|kind| *kind != request.mode.kind()) {
        return Outcome::Conflict { in_force };
    }
    let free = front == Front::Clear && state.fits(request.mode);
    match request.ballot {
        Ballot::New { proposal } if free => {
            let fence = at_least(state, proposal);
            give(state, request, fence, step)
        }
        // Somebody may have been voted for here since, but in vain: whoever asks was confirmed by enough others.
        Ballot::Held { fence } if free && may_have(state, request, fence) => {
            give(state, request, fence, step)
        }
        Ballot::Held { fence } => absent(state, fence),
        _ => Outcome::Busy(contention(state, step.phase)),
    }
}

/// Gives the vote with this fence.
fn give(state: &mut LockState, request: &Vote, fence: Fence, step: &Step<'_>) -> Outcome {
    let grant = step.grant_as(state, admission(request), fence);
    in_order(state);
    Outcome::Granted(grant)
}

/// Holders are kept in grant order, which is that of their fences.
fn in_order(state: &mut LockState) {
    state.holders.sort_by_key(|holder| holder.fence);
}

fn voted_before(state: &mut LockState, index: usize, request: &Vote, step: &Step<'_>) -> Outcome {
    let Holder {
        fence: current,
        expiry: until,
        ..
    } = state.holders[index];
    let (fence, expiry) = match request.ballot {
        // It may have ended since, and somebody else may have been voted for after it.
        Ballot::New { .. } | Ballot::Raise { .. } if !step.phase.is_open() => {
            return Outcome::Busy(contention(state, step.phase));
        }
        Ballot::Raise { to } if current < to => (raised(state, index, to), until),
        Ballot::New { .. } | Ballot::Raise { .. } => (current, until),
        Ballot::Held { fence } if current <= fence && may_have(state, request, fence) => {
            (fence, until.max(step.now.plus(request.ttl.duration())))
        }
        Ballot::Held { fence } => return not_held(state, request.owner, fence, step),
    };
    state.holders[index].fence = fence;
    state.holders[index].expiry = expiry;
    let mode = state.holders[index].mode;
    state.last_fence = state.last_fence.max(fence.last_of_grant(mode));
    in_order(state);
    Outcome::Granted(Grant { fence, expiry })
}

/// Whether a holder can come back with this fence: the hold was not ended by force, and the fence is
/// nobody else's.
fn may_have(state: &LockState, request: &Vote, fence: Fence) -> bool {
    let forced = state.forced.as_ref();
    let forced = forced.is_some_and(|it| it.owner == request.owner && it.fence == fence);
    let mut holders = state.holders.iter();
    !forced && holders.all(|holder| holder.owner == request.owner || holder.fence != fence)
}

/// The next fence of this name that is not below `wanted`.
fn at_least(state: &LockState, wanted: Fence) -> Fence {
    wanted.max(Fence::from_u64(state.last_fence.as_u64().saturating_add(1)))
}

/// `to`, unless somebody got a fence after this holder. What was set aside for the holder itself does
/// not count: nobody has been told of it yet.
fn raised(state: &LockState, index: usize, to: Fence) -> Fence {
    let Holder { fence, mode, .. } = state.holders[index];
    if state.last_fence == fence.last_of_grant(mode) {
        to
    } else {
        at_least(state, to)
    }
}

fn index_of(state: &LockState, request: &Vote) -> Option<usize> {
    let mut holders = state.holders.iter();
    holders.position(|holder| holder.owner == request.owner)
}

fn admission(request: &Vote) -> Admission {
    Admission {
        owner: request.owner,
        mode: request.mode,
        lasts: request.ttl.duration(),
        anchor: None,
        party: request.party.clone(),
    }
}
