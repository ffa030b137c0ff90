//! Handing a hold on to the next task of the same process, without asking the store.
//!
//! Here is the decision whether that may be done ([`Progress`], [`Likeness`]), and what is handed on
//! ([`Baton`]). To whom is the gate's business. The store knows one hold, with one fence; those whom
//! it is handed on to have the further fences of its range ([`Fence::RANGE`]).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Error, Fence, Lease, LockName, Mode, Moment, Party, Ttl, Validity};

use crate::acquire::{Held, Wanted, claim_window};
use crate::client::Client;
use crate::gate::Run;
use crate::hold::{Hold, NewHold, Renewing};
use crate::keeper::Errand;

/// How long after the store's grant a hold may still be handed on: this is how long those who wait in
/// other processes are kept from their turn, beyond what the holders of this process need.
pub(crate) const LENGTH: Duration = Duration::from_millis(10);

/// What two tasks must agree on for one to take over the other's hold as it is at the store. The
/// party is among it so that others are told the truth about who holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Likeness {
    ttl: Ttl,
    party: Party,
}

impl Likeness {
    /// `None` for what is never handed on: only plain exclusive holds are, which are renewed, have
    /// no limit of their own and end with this process.
    pub(crate) fn of(wanted: &Wanted) -> Option<Self> {
        let plain = wanted.mode == Mode::Exclusive
            && wanted.renewing == Renewing::Yes
            && wanted.hold_at_most.is_none()
            && !wanted.detached;
        (plain && wanted.local_handover).then(|| Self {
            ttl: wanted.ttl,
            party: wanted.party.clone(),
        })
    }

    pub(crate) fn ttl(&self) -> Ttl {
        self.ttl
    }

    pub(crate) fn party(&self) -> &Party {
        &self.party
    }
}

/// How far the run of a hold from task to task has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// From this moment on it is not handed on.
    pub(crate) until: Moment,
    /// How often it has been handed on.
    pub(crate) handed: u32,
}

impl Progress {
    /// Of a hold that the store has just granted.
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            until: now.plus(LENGTH),
            handed: 0,
        }
    }

    pub(crate) fn is_over(&self, now: Moment) -> bool {
        now >= self.until
    }

    /// Whether a hold with this ttl that is surely valid until `end` may be handed on at `now`: the
    /// run is not over, a fence is left, and the next holder gets a good part of what the store
    /// itself would have given it.
    pub(crate) fn may_hand_on(&self, ttl: Ttl, end: Moment, now: Moment) -> bool {
        let fresh = ttl.duration().min(claim_window());
        !self.is_over(now) && self.handed + 1 < Fence::RANGE && end.since(now) >= fresh / 4
    }
}

/// What the store knows of a hold that is handed on.
pub(crate) struct Lent {
    pub(crate) client: Arc<Client>,
    pub(crate) name: LockName,
    pub(crate) lease: Lease,
    pub(crate) ttl: Ttl,
    pub(crate) party: Party,
    /// Until when it is surely valid.
    pub(crate) end: Moment,
}

/// Hands on what nobody holds any more. Gives it back if it has to go back to the store.
pub(crate) fn pass(lent: Box<Lent>, run: Run) -> Result<(), (Box<Lent>, Run)> {
    let Some(next) = run.next(lent.end, lent.client.link.now()) else {
        return Err((lent, run));
    };
    let Some(fence) = lent.lease.fence.handed_on(next.handed) else {
        return Err((lent, run)); // Never: the run would have been over.
    };
    next.take(Baton {
        fence,
        cargo: Some((lent, run)),
    });
    Ok(())
}

/// A hold on its way to the next task. Dropped on the way, it goes on to the one after that, or back
/// to the store. Nobody renews it meanwhile, so a task that never looks at it keeps others waiting
/// for its ttl and no longer.
pub(crate) struct Baton {
    fence: Fence,
    /// `None` once it has been taken.
    cargo: Option<(Box<Lent>, Run)>,
}

impl Baton {
    /// Makes a hold of it; `None` if it has ended meanwhile.
    pub(crate) fn take(mut self) -> Result<Option<Held>, Error> {
        let Some((lent, _)) = &self.cargo else {
            return Ok(None);
        };
        let now = lent.client.link.now();
        if lent.end <= now {
            return Ok(None);
        }
        let hold = Arc::new(Hold::new(NewHold {
            name: lent.name.clone(),
            lease: lent.lease,
            fence: self.fence,
            mode: Mode::Exclusive,
            ttl: lent.ttl,
            validity: Validity { until: lent.end },
            renewing: Renewing::Yes,
            party: lent.party.clone(),
            limit: None,
        }));
        // Like a pushed grant it is renewed soon, unless it is over by then.
        lent.client.keeper.keep(hold.clone(), now, None)?;
        let run = self.cargo.take().map(|(_, run)| run);
        Ok(Some(Held { hold, run }))
    }
}

impl Drop for Baton {
    fn drop(&mut self) {
        let Some((lent, run)) = self.cargo.take() else {
            return;
        };
        if let Err((lent, _run)) = pass(lent, run) {
            let errand = Errand::give_back(lent.name, lent.lease, lent.ttl);
            lent.client.keeper.run(errand);
        }
    }
}

impl fmt::Debug for Baton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Baton")
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a plain lock wants.
    pub(crate) fn likeness() -> Likeness {
        Likeness {
            ttl: Ttl::DEFAULT,
            party: Party::default(),
        }
    }

    const NOW: Moment = Moment::from_nanos(5_000_000_000);
    const MILLISECOND: Duration = Duration::from_millis(1);

    fn after(milliseconds: u32) -> Moment {
        NOW.plus(MILLISECOND * milliseconds)
    }

    #[test]
    fn a_run_lasts_ten_milliseconds_from_the_stores_grant() {
        let run = Progress::new(NOW);
        let end = NOW.plus(Duration::from_secs(29));
        assert!(run.may_hand_on(Ttl::DEFAULT, end, NOW));
        assert!(run.may_hand_on(Ttl::DEFAULT, end, after(9)));
        assert!(!run.may_hand_on(Ttl::DEFAULT, end, after(10)));
    }

    #[test]
    fn a_run_ends_with_the_last_fence_of_its_range() {
        let mut run = Progress::new(NOW);
        let end = NOW.plus(Duration::from_secs(29));
        let store = Fence::from_u64(1_000);
        let mut last = store;
        while run.may_hand_on(Ttl::DEFAULT, end, NOW) {
            run.handed += 1;
            let next = store.handed_on(run.handed).expect("one is left");
            assert!(next > last);
            last = next;
        }
        assert_eq!(last, store.last_of_grant(Mode::Exclusive));
        assert_eq!(store.handed_on(run.handed + 1), None);
    }

    #[test]
    fn what_ends_soon_is_not_handed_on() {
        let run = Progress::new(NOW);
        let second = Ttl::new(Duration::from_secs(1)).unwrap();
        assert!(run.may_hand_on(second, after(250), NOW));
        assert!(!run.may_hand_on(second, after(249), NOW));
        assert!(!run.may_hand_on(second, NOW, after(1)), "ended already");
        // A pushed grant lasts for its claim window only, however long its ttl.
        let year = Ttl::new(Duration::from_secs(360 * 86_400)).unwrap();
        assert!(run.may_hand_on(year, NOW.plus(claim_window()), after(9)));
    }
}
