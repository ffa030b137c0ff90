//! The rules about what the caller is told: it must be so.

use tenure_core::{Acquire, Action, Fence, Grant, Mode, Outcome, OwnerId, Removed, Waiting};

use crate::rules::{Checked, Taken, could_join, renewed, rule};

pub(crate) fn the_answer_is_true(step: &Taken<'_>) -> Checked {
    let held = |owner: OwnerId, fence: Fence| {
        let mut holders = step.before.holders.iter();
        holders.find(|h| (h.owner, h.fence) == (owner, fence) && step.goes_on(h))
    };
    whoever_was_ended_by_force_is_told(step)?;
    match (step.action, &step.decision.outcome) {
        (Action::Acquire(acquire), outcome) => acquire_answers_true(step, acquire, outcome),
        (Action::Renew(r), Outcome::Renewed { expiry }) => {
            let holder = held(r.owner, r.fence).ok_or("renewed what is not held")?;
            let expected = renewed(step, holder, r);
            rule(*expiry == expected, "a renewal shortened, or fell short")
        }
        (Action::Convert(c), Outcome::Converted { expiry }) => {
            let holder = held(c.owner, c.fence).ok_or("converted what is not held")?;
            rule(*expiry == holder.expiry, "a conversion moved the expiry")
        }
        (Action::Convert(c), Outcome::Conflict { .. }) => {
            let holder = held(c.owner, c.fence).ok_or("a conflict without a hold")?;
            rule(
                matches!(holder.mode, Mode::Permits(_)),
                "refused to convert",
            )
        }
        (Action::Release(r), Outcome::Released) => {
            rule(held(r.owner, r.fence).is_some(), "released nothing")
        }
        (Action::ForceRelease(r), Outcome::Released) => {
            rule(held(r.owner, r.fence).is_some(), "released nothing")
        }
        (Action::Renew(r), Outcome::NotHeld { .. }) => {
            rule(held(r.owner, r.fence).is_none(), "denied a hold")
        }
        (Action::Convert(r), Outcome::NotHeld { .. }) => {
            rule(held(r.owner, r.fence).is_none(), "denied a hold")
        }
        (Action::Release(r), Outcome::NotHeld { .. }) => {
            rule(held(r.owner, r.fence).is_none(), "denied a hold")
        }
        (Action::ForceRelease(r), Outcome::NotHeld { .. }) => {
            rule(held(r.owner, r.fence).is_none(), "denied a hold")
        }
        (Action::Cancel(cancel), Outcome::Cancelled(removed)) => {
            cancel_leaves_nothing(step, cancel.owner, *removed)
        }
        _ => Err("an answer to another question"),
    }
}

fn whoever_was_ended_by_force_is_told(step: &Taken<'_>) -> Checked {
    let Outcome::NotHeld { forced } = &step.decision.outcome else {
        return Ok(());
    };
    let asked = match step.action {
        Action::Renew(r) => (r.owner, r.fence),
        Action::Convert(r) => (r.owner, r.fence),
        Action::Release(r) => (r.owner, r.fence),
        Action::ForceRelease(r) => (r.owner, r.fence),
        _ => return Err("an answer to another question"),
    };
    let last = step.before.forced.as_ref();
    let expected = last.filter(|last| (last.owner, last.fence) == asked);
    rule(forced.as_ref() == expected, "wrong word about force")
}

fn acquire_answers_true(step: &Taken<'_>, acquire: &Acquire, outcome: &Outcome) -> Checked {
    let owner = acquire.owner;
    let held_before = step.before.holder(owner).filter(|h| step.goes_on(h));
    let holds = step.after().holder(owner);
    let too_late = acquire.not_after.is_some_and(|limit| limit < step.now);
    match outcome {
        Outcome::Granted(Grant { fence, expiry }) => {
            let holder = holds.ok_or("granted, but not a holder")?;
            let same = (holder.fence, holder.expiry) == (*fence, *expiry);
            rule(same, "the grant is not the hold")?;
            if held_before.is_some() {
                return Ok(());
            }
            rule(!too_late, "granted after its time limit")?;
            let ttl = step.place(owner).filter(|_| acquire.waiting != Waiting::No);
            let ttl = ttl.map_or(acquire.ttl, |(_, waiter)| waiter.ttl);
            let full = *expiry == step.now.plus(ttl.duration());
            rule(full, "whoever asks gets a full ttl")
        }
        _ if held_before.is_some() => Err("a holder that asks again was denied its grant"),
        Outcome::TooLate => {
            rule(too_late, "refused before its time limit")?;
            let had_place = step.place(owner).is_some();
            let has_place = step.after().position(owner).is_some();
            rule(had_place || holds.is_none(), "too late, but took the lock")?;
            rule(had_place || !has_place, "too late, but took a place")
        }
        _ if too_late => Err("accepted after its time limit"),
        Outcome::Conflict { .. } => {
            let live_holder = step.before.holders.iter().find(|h| step.goes_on(h));
            let live_waiter = step.before.queue.iter().find(|w| step.still_waits(w));
            let in_force = live_holder.map(|h| h.mode).or(live_waiter.map(|w| w.mode));
            let in_force = in_force.ok_or("a conflict with nobody")?;
            rule(
                in_force.kind() != acquire.mode.kind(),
                "a conflict with the same kind",
            )
        }
        Outcome::Queued { ahead, contention } => {
            let position = step.after().position(owner).ok_or("queued, but no place")?;
            rule(position == *ahead as usize, "the place is not the place")?;
            let waiters = step.after().queue.len();
            rule(
                contention.waiter_count as usize == waiters,
                "waiters miscounted",
            )
        }
        Outcome::Busy(contention) => {
            rule(acquire.waiting == Waiting::No, "did not let it queue")?;
            let gone = step.after().position(owner).is_none() && holds.is_none();
            rule(gone, "busy, but left a trace")?;
            let in_the_way = !could_join(step.after(), acquire.mode) || step.is_awaited();
            rule(in_the_way, "busy, but nobody is in the way")?;
            let holders = step.after().holders.len();
            rule(
                contention.holder_count as usize == holders,
                "holders miscounted",
            )
        }
        _ => Err("an answer to another question"),
    }
}

fn cancel_leaves_nothing(step: &Taken<'_>, owner: OwnerId, removed: Removed) -> Checked {
    let after = step.after();
    let gone = after.holder(owner).is_none() && after.position(owner).is_none();
    rule(gone, "a cancelled owner still has something")?;
    let held = step.before.holder(owner).is_some_and(|h| step.goes_on(h));
    let expected = match (held, step.place(owner)) {
        (true, _) => Removed::Grant,
        (false, Some(_)) => Removed::Waiter,
        (false, None) => Removed::Nothing,
    };
    rule(removed == expected, "cancel lies about what there was")
}
