//! Acquire: mine already → the same grant; too late → nothing; free and nobody before me → take it;
//! else queue up, or say who is in the way. While recovering, never a grant; afterwards, never one from before.

use super::Step;
use super::admit::{Admission, Front};
use super::inspect::contention;
use crate::{Acquire, Grant, Holder, LockState, Outcome, Waiter, Waiting};

pub(super) fn acquire(state: &mut LockState, request: &Acquire, step: &mut Step<'_>) -> Outcome {
    if let Some(holder) = state.holder(request.owner) {
        if !step.phase.is_open() {
            return inherited(state, request, step);
        }
        if !step.is_from_before(holder) {
            let grant = grant_by(holder);
            // Others' holds may have ended at this step, so this one, too, serves the queue.
            step.admit(state, None);
            return Outcome::Granted(grant);
        }
    }
    if request.not_after.is_some_and(|limit| limit < step.now) {
        step.admit(state, None);
        return Outcome::TooLate;
    }
    if let Some(grant) = grant_anew(state, request, step) {
        step.admit(state, None);
        return Outcome::Granted(grant);
    }
    if let Some(in_force) = state.kind().filter(|kind| *kind != request.mode.kind()) {
        if !step.phase.is_open() {
            // What is stored may be older than what it is in use as by now.
            return inherited(state, request, step);
        }
        step.admit(state, None);
        return Outcome::Conflict { in_force };
    }
    join(state, request, step);
    let front = step.admit(state, Some(request.owner));
    if let Some(holder) = state.holder(request.owner) {
        return Outcome::Granted(grant_by(holder));
    }
    match state.position(request.owner) {
        Some(ahead) => Outcome::Queued {
            ahead: count(ahead),
            contention: contention(state, step.phase),
        },
        None if front == Front::Clear && state.fits(request.mode) => {
            Outcome::Granted(step.grant(state, admission(request)))
        }
        None => Outcome::Busy(contention(state, step.phase)),
    }
}

/// The store has something from before it forgot: a hold of the asking owner, or holders of another kind. It may have ended since, and
/// somebody else may have held the lock after it: only a renewal by its valid holder confirms it.
fn inherited(state: &LockState, request: &Acquire, step: &Step<'_>) -> Outcome {
    let contention = contention(state, step.phase);
    match request.waiting {
        Waiting::No => Outcome::Busy(contention),
        Waiting::Queue { .. } => Outcome::Queued {
            ahead: count(state.queue.len()),
            contention,
        },
    }
}

/// Grants anew what the asking owner has already, from before the store forgot; `None` if it has nothing.
///
/// Somebody else may have held it since, where this store was not asked, and with a higher fence. It is not ended, as
/// the request may be an old one, and the owner may rely on the hold by now: then it is kept for as long.
fn grant_anew(state: &mut LockState, request: &Acquire, step: &Step<'_>) -> Option<Grant> {
    let mut holders = state.holders.iter();
    let index = holders.position(|holder| holder.owner == request.owner)?;
    let before = state.holders.remove(index);
    let rest = before.expiry.since(step.now);
    let wanted = admission(request);
    let admission = Admission {
        mode: before.mode,
        lasts: wanted.lasts.max(rest),
        ..wanted
    };
    Some(step.grant(state, admission))
}

/// What a holder was told.
fn grant_by(holder: &Holder) -> Grant {
    Grant {
        fence: holder.fence,
        expiry: holder.expiry,
    }
}

/// Takes or keeps the place in the queue; a request that does not wait gives its place up.
fn join(state: &mut LockState, request: &Acquire, step: &Step<'_>) {
    let Waiting::Queue { inbox, alive_for } = &request.waiting else {
        state.queue.retain(|waiter| waiter.owner != request.owner);
        return;
    };
    let alive_until = step.now.plus(*alive_for);
    if let Some(waiter) = state
        .queue
        .iter_mut()
        .find(|waiter| waiter.owner == request.owner)
    {
        waiter.alive_until = waiter.alive_until.max(alive_until);
        return;
    }
    state.queue.push_back(Waiter {
        owner: request.owner,
        mode: request.mode,
        ttl: request.ttl,
        since: step.now,
        alive_for: *alive_for,
        alive_until,
        inbox: inbox.clone(),
        anchor: request.anchor.clone(),
        party: request.party.clone(),
    });
}

fn admission(request: &Acquire) -> Admission {
    Admission {
        owner: request.owner,
        mode: request.mode,
        lasts: request.ttl.duration(),
        anchor: request.anchor.clone(),
        party: request.party.clone(),
    }
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
