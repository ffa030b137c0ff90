//! Inspect: look, and change nothing. Also what a busy caller is told about who is in the way.

use super::acquire::count;
use super::{Liveness, Step};
use crate::{
    Contention, Holder, HolderView, LockState, Outcome, Phase, SHOWN_HOLDERS, Snapshot, Timestamp,
    Waiter, WaiterView,
};

pub(super) fn inspect(state: &LockState, now: Timestamp, liveness: &dyn Liveness) -> Outcome {
    let step = Step {
        now,
        phase: Phase::ALWAYS_OPEN,
        liveness,
        handovers: Vec::new(),
    };
    let mut current = state.clone();
    step.expire(&mut current);
    Outcome::State(Snapshot {
        kind: current.kind(),
        last_fence: current.last_fence,
        holders: current.holders.iter().map(view).collect(),
        waiters: current.queue.iter().map(waiter_view).collect(),
    })
}

pub(super) fn contention(state: &LockState, phase: Phase) -> Contention {
    Contention {
        holders: state.holders.iter().take(SHOWN_HOLDERS).map(view).collect(),
        holder_count: count(state.holders.len()),
        waiter_count: count(state.queue.len()),
        next_expiry: state.holders.iter().map(|holder| holder.expiry).min(),
        recovering: phase.recovering_until(),
        // The store knows; who decides about one lock does not.
        restless: false,
    }
}

fn view(holder: &Holder) -> HolderView {
    HolderView {
        owner: Some(holder.owner),
        mode: holder.mode,
        fence: Some(holder.fence),
        since: Some(holder.since),
        expiry: Some(holder.expiry),
        party: holder.party.clone(),
    }
}

fn waiter_view(waiter: &Waiter) -> WaiterView {
    WaiterView {
        owner: waiter.owner,
        mode: waiter.mode,
        since: waiter.since,
        party: waiter.party.clone(),
    }
}
