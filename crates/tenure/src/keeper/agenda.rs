//! [`Agenda`]: the schedule that clients write to and the keeper works off.
//!
//! Most holds are released long before they would be renewed. The keeper therefore sleeps on when a
//! hold is added, unless that hold is due before it would wake up anyway.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::Moment;
use tokio::sync::Notify;

use super::schedule::Schedule;

#[derive(Debug, Default)]
pub(super) struct Agenda {
    plan: Mutex<Plan>,
    sooner: Notify,
}

#[derive(Debug, Default)]
struct Plan {
    schedule: Schedule,
    /// When the keeper looks again by itself, if at all.
    looks_again: Option<Moment>,
}

impl Agenda {
    /// Changes the schedule, and wakes the keeper if something is now due before it looks again.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Schedule) -> T) -> T {
        let mut plan = self.plan();
        let result = change(&mut plan.schedule);
        let sooner = match (plan.schedule.next(), plan.looks_again) {
            (Some(next), Some(looks_again)) => next < looks_again,
            (next, None) => next.is_some(),
            (None, _) => false,
        };
        drop(plan);
        if sooner {
            self.sooner.notify_one();
        }
        result
    }

    /// When the keeper has to look again; from here on it is told of whatever comes before that.
    pub(super) fn look_again(&self) -> Option<Moment> {
        let mut plan = self.plan();
        plan.looks_again = plan.schedule.next();
        plan.looks_again
    }

    /// Returns when something is due sooner than the keeper thought.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn sooner(&self) {
        self.sooner.notified().await;
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        // Every change is a push or a pop: a panic leaves the heap usable.
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tenure_core::Ttl;

    use super::super::schedule::{Due, tests::hold};
    use super::*;

    const NOW: Moment = Moment::from_nanos(1_000_000_000);

    fn at(seconds: u64) -> Moment {
        NOW.plus(Duration::from_secs(seconds))
    }

    fn add(agenda: &Agenda, seconds: u64) {
        agenda.change(|schedule| schedule.add(at(seconds), Due::Renewal, hold(Ttl::DEFAULT)));
    }

    #[test]
    fn the_keeper_is_woken_only_for_what_is_due_sooner() {
        let agenda = Agenda::default();
        add(&agenda, 10);
        assert!(agenda.sooner().now_or_never().is_some(), "the first");
        assert_eq!(agenda.look_again(), Some(at(10)));
        add(&agenda, 11);
        assert!(agenda.sooner().now_or_never().is_none(), "it can wait");
        add(&agenda, 9);
        assert!(agenda.sooner().now_or_never().is_some(), "it cannot");
    }
}
