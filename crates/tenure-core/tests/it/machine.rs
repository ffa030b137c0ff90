//! The properties: whatever is asked in whatever order, every rule of `rules.rs` holds after each
//! step.

use std::time::Duration;

use proptest::prelude::*;
use tenure_core::{Action, Decision, Fence, Timestamp, decide};

use crate::rules::{self, Taken};
use crate::support::Lock;
use crate::trace::{Ask, Pass, Past, Step, trace};

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_step_of_every_trace_keeps_the_rules(steps in trace()) {
        let mut lock = Lock::new();
        let mut past = Past::default();
        let mut highest = Fence::NONE;
        for step in &steps {
            take(&mut lock, &mut past, &mut highest, step)?;
        }
    }
}

fn take(
    lock: &mut Lock,
    past: &mut Past,
    highest: &mut Fence,
    step: &Step,
) -> Result<(), TestCaseError> {
    lock.now = later(lock, step.pass);
    past.happen(step.event, &mut lock.seen);
    let action = past.action(&step.ask, lock);
    if comes_from_a_dead_process(&action, lock) {
        return Ok(());
    }
    let before = lock.state.clone();
    let decision = decide(before.clone(), &action, lock.now, &lock.seen);
    let repeated = decide(decision.state.clone(), &action, lock.now, &lock.seen);
    let taken = Taken {
        before: &before,
        action: &action,
        now: lock.now,
        seen: &lock.seen,
        decision: &decision,
        repeated: &repeated,
        highest: *highest,
    };
    rules::check(&taken)
        .map_err(|broken| TestCaseError::fail(format!("{broken}\nin {taken:?}")))?;
    remember(past, &step.ask, action, &decision, highest);
    lock.state = decision.state;
    Ok(())
}

/// A store never decides for a process that it sees to be dead: see `Liveness::alive`.
fn comes_from_a_dead_process(action: &Action, lock: &Lock) -> bool {
    let Action::Acquire(acquire) = action else {
        return false;
    };
    let anchor = acquire.anchor.as_ref();
    anchor.is_some_and(|anchor| lock.seen.dead.contains(anchor))
}

fn remember(past: &mut Past, ask: &Ask, action: Action, decision: &Decision, highest: &mut Fence) {
    for holder in &decision.state.holders {
        if !past.fences.contains(&holder.fence) {
            past.fences.push(holder.fence);
        }
        *highest = holder.fence.last_of_grant(holder.mode).max(*highest);
    }
    if !matches!(ask, Ask::Again(_)) {
        past.requests.push(action);
    }
}

fn later(lock: &Lock, pass: Pass) -> Timestamp {
    let expiries = lock.state.holders.iter().map(|holder| holder.expiry);
    let silences = lock.state.queue.iter().map(|waiter| waiter.alive_until);
    let mut ends: Vec<_> = expiries.chain(silences).collect();
    ends.sort_unstable();
    match pass {
        Pass::Nothing => lock.now,
        Pass::Micros(number) => lock.now.plus(Duration::from_micros(number)),
        Pass::Millis(number) => lock.now.plus(Duration::from_millis(number)),
        Pass::ToNextEnd => ends.first().map_or(lock.now, |end| lock.now.max(*end)),
        Pass::PastAll => ends.last().map_or(lock.now, |end| {
            lock.now.max(end.plus(Duration::from_micros(1)))
        }),
        Pass::Back(millis) => {
            let back = lock.now.as_micros().saturating_sub(millis * 1_000);
            Timestamp::from_micros(back)
        }
    }
}
