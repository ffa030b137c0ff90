//! [`Hold`]: what guard and keeper share about one grant.
//!
//! Whether the hold is valid is decided by the clock and one atomic number, never by a flag that
//! some task would have to set in time: a starved or dead keeper cannot leave a guard believing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{Fence, Lease, LockName, Mode, Moment, OwnerId, Ttl, Validity};
use tokio::sync::watch;

use crate::standing::{Loss, Standing};

#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) name: LockName,
    pub(crate) owner: OwnerId,
    pub(crate) fence: Fence,
    pub(crate) renewing: Renewing,
    /// Past this the hold ends whatever the store says.
    limit: Option<Moment>,
    /// Until when it is valid, in nanoseconds of the client's clock; [`ENDED`] for ever after its end.
    valid_until: AtomicU64,
    terms: Mutex<Terms>,
    standing: watch::Sender<Standing>,
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
}

const ENDED: u64 = 0;

/// What a new hold is made of.
pub(crate) struct NewHold {
    pub(crate) name: LockName,
    pub(crate) owner: OwnerId,
    pub(crate) fence: Fence,
    pub(crate) mode: Mode,
    pub(crate) ttl: Ttl,
    pub(crate) validity: Validity,
    pub(crate) renewing: Renewing,
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
            owner: new.owner,
            fence: new.fence,
            renewing: new.renewing,
            limit: new.limit,
            valid_until: AtomicU64::new(until.as_nanos()),
            terms: Mutex::new(Terms {
                mode: new.mode,
                ttl: new.ttl,
            }),
            standing: watch::Sender::new(Standing::Held { valid_until: until }),
        }
    }

    pub(crate) fn lease(&self) -> Lease {
        Lease {
            owner: self.owner,
            fence: self.fence,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.terms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .mode
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.terms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .mode = mode;
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

    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Until when it is valid; `None` once it has ended.
    pub(crate) fn valid_until(&self) -> Option<Moment> {
        match self.valid_until.load(Ordering::Acquire) {
            ENDED => None,
            nanos => Some(Moment::from_nanos(nanos)),
        }
    }

    /// What is left at `now`; zero once it has ended. Notices the end of the lease by itself.
    pub(crate) fn remaining(&self, now: Moment) -> Duration {
        let Some(until) = self.valid_until() else {
            return Duration::ZERO;
        };
        if until > now {
            return until.since(now);
        }
        // Whoever sees the end first makes it final, so that a renewal confirmed late cannot
        // revive a hold that somebody was already told is gone.
        match self.swap(until, ENDED) {
            Ok(()) => {
                let limited = self.limit.is_some_and(|limit| limit <= now);
                let loss = if limited {
                    Loss::HeldTooLong
                } else {
                    Loss::Expired
                };
                self.standing.send_replace(Standing::Lost(loss));
                Duration::ZERO
            }
            Err(()) => self.remaining(now),
        }
    }

    /// A renewal was confirmed. Answers whether it still counts: after the end nothing does.
    pub(crate) fn confirm(&self, validity: Validity, now: Moment) -> bool {
        let capped = self
            .limit
            .map_or(validity.until, |limit| limit.min(validity.until));
        loop {
            if self.remaining(now).is_zero() {
                return false;
            }
            let Some(until) = self.valid_until() else {
                return false;
            };
            let later = capped.max(until);
            if self.swap(until, later.as_nanos()).is_ok() {
                self.publish(Standing::Held { valid_until: later });
                return true;
            }
        }
    }

    /// Renewal is overdue.
    pub(crate) fn endanger(&self) {
        if let Some(valid_until) = self.valid_until() {
            self.publish(Standing::Jeopardy { valid_until });
        }
    }

    /// The store says that it is gone.
    pub(crate) fn lose(&self, loss: Loss) {
        if self.valid_until.swap(ENDED, Ordering::AcqRel) != ENDED {
            self.standing.send_replace(Standing::Lost(loss));
        }
    }

    /// The holder gives it up; from here on it is not valid. Answers why it was over already.
    pub(crate) fn give_up(&self, now: Moment) -> Result<(), Loss> {
        self.remaining(now);
        if self.valid_until.swap(ENDED, Ordering::AcqRel) == ENDED {
            return match &*self.standing.borrow() {
                Standing::Lost(loss) => Err(loss.clone()),
                _ => Ok(()),
            };
        }
        self.standing.send_replace(Standing::Released);
        Ok(())
    }

    /// Why it is not valid any more; `None` while it is, or if it was released.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match &*self.standing.borrow() {
            Standing::Lost(loss) => Some(loss.clone()),
            _ => None,
        }
    }

    fn swap(&self, from: Moment, to: u64) -> Result<(), ()> {
        self.valid_until
            .compare_exchange(from.as_nanos(), to, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(drop)
    }

    /// Publishes unless the end was published meanwhile: the end is final.
    fn publish(&self, standing: Standing) {
        self.standing.send_if_modified(|current| {
            let over = matches!(current, Standing::Lost(_) | Standing::Released);
            let changes = !over && *current != standing;
            if changes {
                *current = standing;
            }
            changes
        });
    }
}
