//! [`Hold`]: what guard and keeper share about one grant.
//!
//! Whether the hold is valid is decided by the clock and one atomic number, never by a flag that
//! some task would have to set in time: a starved or dead keeper cannot leave a guard believing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{Fence, Lease, LockName, Mode, Moment, Party, Renew, Timestamp, Ttl, Validity};
use tokio::sync::{Notify, watch};

use crate::standing::{Loss, Standing};

#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) name: LockName,
    /// What the store knows it by.
    pub(crate) lease: Lease,
    /// The fence of its holder: that of the lease or, if it was handed on, one of its range.
    pub(crate) fence: Fence,
    pub(crate) renewing: Renewing,
    pub(crate) party: Party,
    /// Past this the hold ends whatever the store says.
    limit: Option<Moment>,
    /// Until when it is valid, in nanoseconds of the client's clock; [`ENDED`] for ever after its end.
    valid_until: AtomicU64,
    /// It must not be given back before the store's clock has reached this, in microseconds.
    kept_until: AtomicU64,
    terms: Mutex<Terms>,
    standing: watch::Sender<Standing>,
    /// How many renewals are on their way, and who waits for their end.
    in_flight: AtomicUsize,
    landed: Notify,
}

/// A renewal on its way; dropped when it has been answered or given up.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) hold: Arc<Hold>,
}

/// What giving up a hold found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// It was valid until now.
    Now,
    /// It had been given up before.
    Before,
    /// It had been lost before.
    TooLate(Loss),
}

/// Whether the keeper renews it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewing {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug)]
struct Terms {
    mode: Mode,
    ttl: Ttl,
    /// A shorter ttl does not shorten what the store has already been asked for.
    longest: Ttl,
}

const ENDED: u64 = 0;

/// What a new hold is made of.
pub(crate) struct NewHold {
    pub(crate) name: LockName,
    pub(crate) lease: Lease,
    pub(crate) fence: Fence,
    pub(crate) mode: Mode,
    pub(crate) ttl: Ttl,
    pub(crate) validity: Validity,
    pub(crate) renewing: Renewing,
    pub(crate) party: Party,
    pub(crate) limit: Option<Moment>,
}

impl Hold {
    pub(crate) fn new(new: NewHold) -> Self {
        let until = new
            .limit
            .map_or(new.validity.until, |limit| limit.min(new.validity.until));
        // Zero would read as ended; a clock that shows zero has not begun yet.
        let until = Moment::from_nanos(until.as_nanos().max(1));
        Self {
            name: new.name,
            lease: new.lease,
            fence: new.fence,
            renewing: new.renewing,
            party: new.party,
            limit: new.limit,
            valid_until: AtomicU64::new(until.as_nanos()),
            kept_until: AtomicU64::new(0),
            terms: Mutex::new(Terms {
                mode: new.mode,
                ttl: new.ttl,
                longest: new.ttl,
            }),
            standing: watch::Sender::new(Standing::Held { valid_until: until }),
            in_flight: AtomicUsize::new(0),
            landed: Notify::new(),
        }
    }

    /// A request that prolongs it, with all that a store that forgot needs to take it back.
    pub(crate) fn renewal(&self, ttl: Ttl) -> Renew {
        Renew {
            owner: self.lease.owner,
            fence: self.lease.fence,
            ttl,
            detach: false,
            terms: Some(tenure_core::Terms {
                mode: self.mode(),
                party: self.party.clone(),
            }),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.terms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .mode
    }

    /// Makes an exclusive hold a shared one if nobody else relies on it, `alone`. Answers how it is held then. Nobody sees
    /// it shared before that is sure.
    pub(crate) fn share(&self, alone: impl FnOnce() -> bool) -> Mode {
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        if terms.mode == Mode::Exclusive && alone() {
            terms.mode = Mode::Shared;
        }
        terms.mode
    }

    pub(crate) fn ttl(&self) -> Ttl {
        self.terms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .ttl
    }

    pub(crate) fn set_ttl(&self, ttl: Ttl) {
        self.terms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .ttl = ttl;
    }

    /// The store is about to be asked for this ttl, and may act even if it does not answer.
    pub(crate) fn asks_for(&self, ttl: Ttl) {
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        terms.longest = terms.longest.max(ttl);
    }

    /// The longest ttl that the store was ever asked for.
    pub(crate) fn longest_ttl(&self) -> Ttl {
        self.terms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .longest
    }

    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Until when it is valid; `None` once it has ended.
    pub(crate) fn valid_until(&self) -> Option<Moment> {
        match self.valid_until.load(Ordering::SeqCst) {
            ENDED => None,
            nanos => Some(Moment::from_nanos(nanos)),
        }
    }

    /// Until when it is valid, if all is well with it: it has not ended, and no renewal is overdue.
    pub(crate) fn stands_until(&self) -> Option<Moment> {
        match *self.standing.borrow() {
            Standing::Held { valid_until } => Some(valid_until),
            _ => None,
        }
    }

    /// What is left at `now`; zero once it has ended. Notices the end of the lease by itself.
    pub(crate) fn remaining(&self, now: Moment) -> Duration {
        loop {
            let Some(until) = self.valid_until() else {
                return Duration::ZERO;
            };
            if until > now {
                return until.since(now);
            }
            let limited = self.limit.is_some_and(|limit| limit <= until);
            let loss = if limited {
                Loss::HeldTooLong
            } else {
                Loss::Expired
            };
            // Whoever sees the end first makes it final, so that a renewal confirmed late cannot
            // revive a hold that somebody was already told is gone.
            if self.end(until, Standing::Lost(loss)) {
                return Duration::ZERO;
            }
        }
    }

    /// A renewal was confirmed. Answers whether it still counts: after the end nothing does.
    pub(crate) fn confirm(&self, validity: Validity, now: Moment) -> bool {
        let capped = self
            .limit
            .map_or(validity.until, |limit| limit.min(validity.until));
        while !self.remaining(now).is_zero() {
            let Some(until) = self.valid_until() else {
                return false;
            };
            let later = capped.max(until);
            if self.advance(
                until,
                later.as_nanos(),
                Standing::Held { valid_until: later },
            ) {
                return true;
            }
        }
        false
    }

    /// Renewal is overdue.
    pub(crate) fn endanger(&self) {
        while let Some(until) = self.valid_until() {
            let jeopardy = Standing::Jeopardy { valid_until: until };
            if self.advance(until, until.as_nanos(), jeopardy) {
                return;
            }
        }
    }

    /// The store says that it is gone.
    pub(crate) fn lose(&self, loss: &Loss) {
        while let Some(until) = self.valid_until() {
            if self.end(until, Standing::Lost(loss.clone())) {
                return;
            }
        }
    }

    /// The holder gives it up; from here on it is not valid.
    pub(crate) fn give_up(&self, now: Moment) -> GivenUp {
        while !self.remaining(now).is_zero() {
            if let Some(until) = self.valid_until()
                && self.end(until, Standing::Released)
            {
                return GivenUp::Now;
            }
        }
        self.loss().map_or(GivenUp::Before, GivenUp::TooLate)
    }

    /// When it is dropped, it is given back only when the store's clock has reached `until`.
    pub(crate) fn keep_until(&self, until: Timestamp) {
        self.kept_until
            .fetch_max(until.as_micros(), Ordering::SeqCst);
    }

    /// Before this, by the store's clock, it must not be given back.
    pub(crate) fn kept_until(&self) -> Timestamp {
        Timestamp::from_micros(self.kept_until.load(Ordering::SeqCst))
    }

    /// Why it is not valid any more; `None` while it is, or if it was released.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match &*self.standing.borrow() {
            Standing::Lost(loss) => Some(loss.clone()),
            _ => None,
        }
    }

    /// Marks that a renewal is on its way until the answer is dropped; `None` if there is nothing
    /// to renew any more.
    pub(crate) fn depart(self: &Arc<Self>) -> Option<Flight> {
        // First the mark, then the look: whoever ends the hold does it the other way round, so one
        // of the two sees the other.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let flight = Flight { hold: self.clone() };
        self.valid_until().is_some().then_some(flight)
    }

    /// Whether a renewal of this hold, which has ended, is still on its way: what it will find out
    /// nobody is told any more.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) > 0
    }

    /// Waits until no renewal of this hold, which has ended, is on its way any more.
    pub(crate) async fn landed(&self) {
        loop {
            let mut landed = std::pin::pin!(self.landed.notified());
            landed.as_mut().enable();
            if !self.is_in_flight() {
                return;
            }
            landed.await;
        }
    }

    fn end(&self, until: Moment, standing: Standing) -> bool {
        self.advance(until, ENDED, standing)
    }

    /// Changes number and standing together, if the number is still `from`: whoever sees that the
    /// hold has ended can also read why.
    fn advance(&self, from: Moment, to: u64, standing: Standing) -> bool {
        let mut advanced = false;
        self.standing.send_if_modified(|current| {
            advanced = self
                .valid_until
                .compare_exchange(from.as_nanos(), to, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok();
            let changed = advanced && *current != standing;
            if changed {
                *current = standing;
            }
            changed
        });
        advanced
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.hold.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.hold.landed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::OwnerId;

    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn hold(until: Moment) -> Arc<Hold> {
        Arc::new(Hold::new(NewHold {
            name: LockName::new("x").unwrap(),
            lease: Lease {
                owner: OwnerId::from_bytes([7; 16]),
                fence: Fence::from_u64(1),
            },
            fence: Fence::from_u64(1),
            mode: Mode::Exclusive,
            ttl: Ttl::DEFAULT,
            validity: Validity { until },
            renewing: Renewing::Yes,
            party: Party::default(),
            limit: None,
        }))
    }

    /// Threads that renew, look and give up all at once: whoever is told that it is over can read
    /// why, and nobody sees it alive afterwards.
    #[test]
    fn the_end_is_seen_once_with_its_reason_and_for_good() {
        for round in 0..300 {
            let hold = hold(at(100));
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let renewed = Validity { until: at(200) };
                        let counted = hold.confirm(renewed, at(99 + round % 3));
                        assert!(counted || hold.valid_until().is_none());
                    });
                    scope.spawn(|| {
                        let over = hold.remaining(at(150)).is_zero();
                        if over {
                            assert_eq!(hold.valid_until(), None);
                            assert_eq!(hold.loss(), Some(Loss::Expired));
                        }
                    });
                }
            });
            if let Some(until) = hold.valid_until() {
                assert_eq!(until, at(200));
                assert_eq!(hold.give_up(at(150)), GivenUp::Now);
                assert_eq!(hold.give_up(at(150)), GivenUp::Before);
                assert!(!hold.confirm(Validity { until: at(300) }, at(150)));
            } else {
                assert_eq!(hold.give_up(at(150)), GivenUp::TooLate(Loss::Expired));
            }
        }
    }

    #[test]
    fn a_renewal_never_shortens() {
        let hold = hold(at(100));
        assert!(hold.confirm(Validity { until: at(50) }, at(10)));
        assert_eq!(hold.valid_until(), Some(at(100)));
    }

    #[test]
    fn jeopardy_passes_with_the_next_confirmation() {
        let hold = hold(at(100));
        hold.endanger();
        let valid_until = at(100);
        assert_eq!(
            *hold.standing().borrow(),
            Standing::Jeopardy { valid_until }
        );
        assert!(hold.confirm(Validity { until: valid_until }, at(10)));
        assert_eq!(*hold.standing().borrow(), Standing::Held { valid_until });
    }

    #[tokio::test]
    async fn what_has_ended_departs_no_more_and_what_has_departed_is_waited_for() {
        let hold = hold(at(100));
        let flight = hold.depart().unwrap();
        hold.give_up(at(10));
        let mut landed = Box::pin(hold.landed());
        assert!(futures_util::poll!(landed.as_mut()).is_pending());
        drop(flight);
        landed.await;
        assert!(hold.depart().is_none());
        hold.landed().await;
    }
}
