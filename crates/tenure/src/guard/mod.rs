//! [`Guard`]: a held lock. Its duty to give the lock back is in `duty.rs`.

mod asking;
mod duty;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Error, ErrorKind, Fence, Lease, LockName, Mode, Moment, Timestamp, Ttl};
use tokio::sync::watch;

use crate::acquire::Held;
use crate::client::Client;
use crate::hold::Hold;
use crate::standing::{Loss, Standing};

use asking::Asking;
pub(crate) use duty::Shared;
use duty::released;

/// A held lock, renewed in the background until it is released, dropped or lost.
///
/// # What is not guaranteed
/// A guard cannot stop your code. If this process is paused past the end of its lease, somebody else
/// may hold the lock when it wakes up. Ask [`ensure`](Self::ensure) before each important step, and
/// hand [`fence`](Self::fence) to the resource so that it can refuse what comes too late.
///
/// Dropping a guard releases in the background, as well as it can: errors are not seen, and if the
/// runtime is gone the lease simply ends after its ttl. [`release`](Self::release) tells the truth.
#[must_use = "the lock is released when the guard is dropped"]
#[clippy::has_significant_drop]
pub struct Guard {
    /// Shared by the guards of one re-entered hold; the last one releases.
    shared: Arc<Shared>,
}

impl Guard {
    pub(crate) fn new(client: &Arc<Client>, held: Held) -> Self {
        client.holds.add(&held.hold);
        Self {
            shared: Arc::new(Shared::new(client, held)),
        }
    }

    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The name of the lock.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.hold().name
    }

    /// The fencing token: pass it along with every write to the protected resource.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.hold().fence
    }

    /// In which way it is held.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.hold().mode()
    }

    /// Owner and fence, with which another process can renew or release this hold.
    ///
    /// The fence is the store's. That of the guard is higher if the lock came from another task of
    /// this process ([`Lock::local_handover`](crate::Lock::local_handover)); whoever asks for the
    /// lease will not hand it on.
    ///
    /// **Then an earlier holder had the lease's fence, too**: whoever takes over the lease needs
    /// [`fence`](Self::fence) beside it for the protected resource, or a lock that is never handed on
    /// ([`Lock::detached`](crate::Lock::detached)).
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.shared.keep();
        self.hold().lease
    }

    /// [`lease`](Self::lease) for those who only look: the hold may be handed on all the same.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn lease_at_a_glance(&self) -> Lease {
        self.hold().lease
    }

    /// How long the hold can still be relied upon if no renewal succeeds; zero once it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.hold().remaining(self.shared.client.link.now())
    }

    /// Until when it can be relied upon if no renewal succeeds; `None` once it is over.
    #[must_use]
    pub fn valid_until(&self) -> Option<Moment> {
        self.hold().valid_until()
    }

    /// Whether it can be relied upon right now. Reads the clock: the first call after a pause
    /// already tells the truth.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Like [`is_valid`](Self::is_valid), for use with `?`.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] that says why.
    pub fn ensure(&self) -> Result<(), Error> {
        asking::ensure(self.hold(), &self.shared.client.link)
    }

    /// Waits until the hold is lost, and says why. Never returns if this program gave it back
    /// instead ([`Tenure::release_all`](crate::Tenure::release_all)).
    ///
    /// Needs neither network nor keeper: it has its own timer on a clock that counts suspend.
    ///
    /// # Cancel safety
    /// Cancel safe; may be called again.
    pub async fn lost(&self) -> Loss {
        let mut standing = self.hold().standing();
        loop {
            if let Standing::Lost(loss) = &*standing.borrow_and_update() {
                return loss.clone();
            }
            let Some(until) = self.hold().valid_until() else {
                // Over, but why is only being written down; or released, and no change comes.
                let _ = standing.changed().await;
                continue;
            };
            tokio::select! {
                biased;
                _ = standing.changed() => {}
                () = self.shared.client.link.clock().sleep_until(until) => {
                    let _ = self.remaining();
                }
            }
        }
    }

    /// How the hold stands, as a channel that tells of every change.
    ///
    /// The channel is as fresh as the keeper; for a decision that matters ask
    /// [`ensure`](Self::ensure), which reads the clock.
    #[must_use]
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.hold().standing()
    }

    /// Prolongs the lease to `ttl` from now and uses that ttl for later renewals. Never shortens.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if the hold is over; [`ErrorKind::Unavailable`] if the store cannot be
    /// asked (the hold stands as before).
    ///
    /// # Cancel safety
    /// Cancel safe: once polled it goes on in the background, and the lease may or may not be prolonged. A loss that it finds is told.
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let ttl = Ttl::new(ttl)?;
        let asking = self.asking()?;
        self.shared.keep();
        self.hold().asks_for(ttl);
        asking.extend(ttl).await
    }

    /// Turns an exclusive hold into a shared one: same fence, and readers who wait next get in.
    /// From the first poll on, it counts as shared.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if the hold is over; [`ErrorKind::Conflict`] for permits, and while other
    /// guards of the same owner rely on the hold; [`ErrorKind::Unavailable`] if the store cannot be
    /// asked (repeat it).
    ///
    /// # Cancel safety
    /// Cancel safe: once polled it goes on in the background; the mode may or may not change at the store, and a repetition is
    /// harmless. A loss that it finds is told.
    pub async fn downgrade(&self) -> Result<(), Error> {
        let asking = self.asking()?;
        self.shared.keep();
        self.share()?;
        asking.convert().await
    }

    /// Gives the lock back, and tells whether that is what happened.
    ///
    /// From the first poll on, the hold counts as over. If it was re-entered, only the last guard
    /// gives it back. After [`Tenure::release_all`](crate::Tenure::release_all) it is fine, too. A hold
    /// that is handed on to another task here is not asked about at the store: if it was ended there
    /// by force a moment ago, only the next holder is told.
    ///
    /// A renewal that is under way is waited for, also that of an [`extend`](Self::extend) or [`downgrade`](Self::downgrade)
    /// that was dropped: for up to two seconds if the store does not answer it.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if it was over before: others may have held the lock meanwhile.
    /// [`ErrorKind::Unavailable`] if the store could not be told before the lease ended by itself.
    ///
    /// # Cancel safety
    /// Dropping the future goes on releasing in the background.
    pub async fn release(self) -> Result<(), Error> {
        let hold = self.shared.hold.clone();
        let now = self.shared.client.link.now();
        match Arc::into_inner(self.shared) {
            Some(shared) => shared.release().await,
            None if !hold.remaining(now).is_zero() => Ok(()),
            None => hold
                .loss()
                .map_or(Ok(()), |loss| Err(loss.error(&hold.name))),
        }
    }

    /// Leaves the lease in the store for exactly another `rest` (at least 100 ms) and forgets about
    /// it: nobody renews or releases it, and it outlives this process. Waits for renewals that are under way as
    /// [`release`](Self::release) does: one that came later would prolong it.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if the hold is over; [`ErrorKind::Conflict`] while other guards of the
    /// same owner rely on it; [`ErrorKind::Unavailable`] if the store could not be told before the
    /// lease ended by itself. After an error this guard is as if dropped.
    ///
    /// # Cancel safety
    /// Dropping the future releases in the background.
    pub async fn leave_for(self, rest: Duration) -> Result<Lease, Error> {
        let ttl = Ttl::new(rest.max(Ttl::MIN.duration()))?;
        self.ensure()?;
        let (name, lease) = (self.name().clone(), self.lease());
        match Arc::into_inner(self.shared) {
            Some(shared) => shared.leave(ttl).await.map(|()| lease),
            None => Err(Error::new(
                ErrorKind::Conflict,
                format!("other guards of this owner rely on {name:?}: release them first"),
            )),
        }
    }

    /// Forgets the hold without releasing it: from now on nobody renews it, and whoever has the
    /// returned lease can. If it was re-entered, it is renewed until the last of its guards is gone,
    /// and not released then either.
    #[must_use = "without the lease nobody can release the lock before its ttl has passed"]
    pub fn into_lease(self) -> Lease {
        let lease = self.lease();
        let now = self.shared.client.link.now();
        self.shared.hand_on();
        if let Some(shared) = Arc::into_inner(self.shared) {
            // Ends it here (the keeper lets go of it); the store is not told.
            shared.hold.give_up(now);
        }
        lease
    }

    /// When it is dropped, it is given back only when the store's clock has reached `until`.
    pub(crate) fn keep_until(&self, until: Timestamp) {
        self.hold().keep_until(until);
    }

    /// Waits until the hold is over, whatever the reason.
    pub(crate) async fn over(&self) -> Error {
        let mut standing = self.hold().standing();
        let released = standing.wait_for(|standing| *standing == Standing::Released);
        tokio::select! {
            biased;
            loss = self.lost() => loss.error(self.name()),
            // The sender is part of the hold, which we have: the channel cannot close.
            _ = released => self.released(),
        }
    }

    /// Counts as shared from here on, unless somebody relies on its being exclusive.
    fn share(&self) -> Result<(), Error> {
        let hold = self.hold();
        // Whoever enters again is counted first, and looks at the mode then.
        let alone = || Arc::strong_count(&self.shared) == 1;
        match hold.share(alone) {
            Mode::Permits(_) => Err(asking::not_a_writer(hold, hold.mode().kind())),
            Mode::Exclusive => Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "other guards of this owner rely on writing {:?}: release them first",
                    hold.name
                ),
            )),
            Mode::Shared => Ok(()),
        }
    }

    fn asking(&self) -> Result<Asking, Error> {
        Asking::about(&self.shared.hold, &self.shared.client.link)
    }

    fn released(&self) -> Error {
        released(self.hold())
    }

    fn hold(&self) -> &Hold {
        &self.shared.hold
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", self.name())
            .field("fence", &self.fence())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
