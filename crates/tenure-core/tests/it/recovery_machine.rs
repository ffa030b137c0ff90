//! Properties of a lock in a store that recovers: whatever is asked in whatever order, nobody is let
//! in, and nothing is taken back but what a renewal names.

use proptest::prelude::*;
use tenure_core::{Action, Decision, LockState, Mode, Outcome, Phase, Terms, Timestamp, decide_in};

use crate::rules::{Checked, rule};
use crate::support::{Lock, permits, seconds};
use crate::trace::{Past, Step, trace};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_store_that_recovers_lets_nobody_in_whatever_is_asked(
        before in trace(),
        after in trace(),
        modes in prop::collection::vec(mode(), 1..8),
    ) {
        let mut lock = Lock::new();
        let mut past = Past::default();
        for step in &before {
            take(&mut lock, &mut past, step, None)?;
        }
        lock.phase = Phase::Recovering { until: lock.now.plus(seconds(1_000_000)) };
        for (step, mode) in after.iter().zip(modes.iter().cycle()) {
            take(&mut lock, &mut past, step, Some(*mode))?;
        }
    }
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Exclusive),
        Just(Mode::Shared),
        Just(permits(1, 2))
    ]
}

fn take(
    lock: &mut Lock,
    past: &mut Past,
    step: &Step,
    renewed_as: Option<Mode>,
) -> Result<(), TestCaseError> {
    past.happen(step.event, &mut lock.seen);
    let mut action = past.action(&step.ask, lock);
    if let (Action::Renew(renew), Some(mode)) = (&mut action, renewed_as) {
        let party = tenure_core::Party::default();
        renew.terms = Some(Terms { mode, party });
    }
    let decide = |state| decide_in(lock.phase, state, &action, lock.now, &lock.seen);
    let decision = decide(lock.state.clone());
    if !lock.phase.is_open() {
        let repeated = decide(decision.state.clone());
        check(&lock.state, &action, lock.now, &decision, &repeated).map_err(|broken| {
            TestCaseError::fail(format!("{broken}\nin {action:?}\nof {:?}", lock.state))
        })?;
    }
    for holder in &decision.state.holders {
        past.fences.push(holder.fence);
    }
    past.requests.push(action);
    lock.state = decision.state;
    Ok(())
}

fn check(
    before: &LockState,
    action: &Action,
    now: Timestamp,
    decision: &Decision,
    repeated: &Decision,
) -> Checked {
    let after = &decision.state;
    rule(decision.handovers.is_empty(), "somebody was let in")?;
    let granted = matches!(decision.outcome, Outcome::Granted(_));
    rule(!granted, "an acquire was answered with a grant")?;
    let known = |fence| before.holders.iter().any(|holder| holder.fence == fence);
    let mut new = after.holders.iter().filter(|holder| !known(holder.fence));
    match action {
        Action::Renew(renew) => rule(
            new.all(|holder| (holder.owner, holder.fence) == (renew.owner, renew.fence)),
            "something else was taken back than the renewal names",
        )?,
        _ => rule(new.next().is_none(), "a hold appeared")?,
    }
    rule(after.last_fence >= before.last_fence, "a fence went back")?;
    let highest = after.holders.iter().map(|holder| holder.fence).max();
    rule(highest <= Some(after.last_fence), "a fence above the last")?;
    rule(
        after
            .holders
            .is_sorted_by(|one, other| one.fence <= other.fence),
        "holders are not in grant order",
    )?;
    let mut owners: Vec<_> = after.holders.iter().map(|holder| holder.owner).collect();
    owners.extend(after.queue.iter().map(|waiter| waiter.owner));
    let count = owners.len();
    owners.sort_unstable();
    owners.dedup();
    rule(owners.len() == count, "an owner appears twice")?;
    no_later_hold_ends(before, action, now, after)?;
    rule(repeated.state == *after, "a repetition changed something")
}

/// A renewal may end what was granted earlier, never what was granted later.
fn no_later_hold_ends(
    before: &LockState,
    action: &Action,
    now: Timestamp,
    after: &LockState,
) -> Checked {
    let Action::Renew(renew) = action else {
        return Ok(());
    };
    let stays = |fence| after.holders.iter().any(|holder| holder.fence == fence);
    let mut later = before
        .holders
        .iter()
        .filter(|holder| holder.fence > renew.fence && holder.expiry > now);
    rule(
        later.all(|holder| stays(holder.fence) || holder.anchor.is_some()),
        "a renewal ended a later hold",
    )
}
