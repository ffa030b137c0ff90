//! Release and force-release: the hold ends, and the same step lets in the next.

use super::Step;
use crate::{Fence, ForceRelease, ForcedRelease, LockState, Outcome, OwnerId, Phase, Release};

pub(super) fn release(state: &mut LockState, request: &Release, step: &mut Step<'_>) -> Outcome {
    let outcome = end(state, request.owner, request.fence, step);
    step.admit(state, None);
    outcome
}

pub(super) fn force_release(
    state: &mut LockState,
    request: &ForceRelease,
    step: &mut Step<'_>,
) -> Outcome {
    let outcome = end(state, request.owner, request.fence, step);
    if outcome == Outcome::Released {
        state.forced = Some(ForcedRelease {
            owner: request.owner,
            fence: request.fence,
            by: request.by.clone(),
            reason: request.reason.clone(),
            at: step.now,
        });
    }
    step.admit(state, None);
    outcome
}

/// The answer to somebody who asks about a hold that is not there.
pub(super) fn not_held(
    state: &LockState,
    owner: OwnerId,
    fence: Fence,
    step: &Step<'_>,
) -> Outcome {
    let forced = state.forced.clone();
    let forced = forced.filter(|forced| forced.owner == owner && forced.fence == fence);
    match step.phase {
        Phase::Recovering { until } if forced.is_none() => Outcome::Forgotten { until },
        _ => Outcome::NotHeld { forced },
    }
}

fn end(state: &mut LockState, owner: OwnerId, fence: Fence, step: &Step<'_>) -> Outcome {
    let before = state.holders.len();
    state
        .holders
        .retain(|holder| holder.owner != owner || holder.fence != fence);
    if state.holders.len() < before {
        Outcome::Released
    } else {
        not_held(state, owner, fence, step)
    }
}
