//! Locks that are held already: seen, prolonged, given back, taken away.

use std::time::Duration;

use tenure::core::{
    Lease, Listing, LockName, Moment, Recovering, Snapshot, Timestamp, Ttl, Validity,
};

use super::Session;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};

impl Session {
    /// What is known about one lock, and the store's time then.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn inspect(&self, name: &LockName) -> Result<(Timestamp, Snapshot)> {
        self.ask(self.tenure.inspect(name.as_str())).await
    }

    /// All locks with this prefix.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn list(&self, prefix: &str) -> Result<Listing> {
        self.ask(self.tenure.list(prefix)).await
    }

    /// For how long holders may be missing from what is shown of this lock, or of any, because the store
    /// recovers from a loss.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn recovering(&self, name: Option<&LockName>) -> Result<Option<Recovering>> {
        let name = name.map(LockName::as_str);
        self.ask(self.tenure.recovering(name)).await
    }

    /// Prolongs a lease; answers how long it lasts now.
    ///
    /// # Errors
    /// 79 if it is lost.
    pub async fn renew(&self, name: &LockName, lease: Lease, ttl: Ttl) -> Result<Duration> {
        self.ask(self.tenure.renew_lease(name.as_str(), lease, ttl))
            .await
            .map_err(or_released)
    }

    /// Gives a lease back.
    ///
    /// # Errors
    /// 79 if it was lost before.
    pub async fn release(&self, name: &LockName, lease: Lease) -> Result<()> {
        self.ask(self.tenure.release_lease(name.as_str(), lease))
            .await
            .map_err(or_released)
    }

    /// Takes a lock away from a holder.
    ///
    /// # Errors
    /// 79 if the holder has left meanwhile.
    pub async fn force_release(&self, name: &LockName, lease: Lease, reason: &str) -> Result<()> {
        self.ask(self.tenure.force_release(name.as_str(), lease, reason))
            .await
    }

    /// How long a lease can be relied upon still; `None` if it is lost, or may be by now.
    ///
    /// # Errors
    /// If the store cannot be asked, which is never "lost".
    pub async fn left_of(&self, name: &LockName, lease: Lease) -> Result<Option<Duration>> {
        let asked = self.clock().now();
        let (now, snapshot) = self.inspect(name).await?;
        let hold = snapshot
            .holders
            .iter()
            .find(|holder| holder.owner == Some(lease.owner) && holder.fence == Some(lease.fence));
        let expiry = hold.and_then(|holder| holder.expiry);
        Ok(expiry.and_then(|expiry| left(asked, now, expiry, self.clock().now())))
    }
}

/// What is left here and now of a lease until `expiry`, if the store was `asked` and answered at its
/// time `then`: the answer may have been long on its way.
fn left(asked: Moment, then: Timestamp, expiry: Timestamp, now: Moment) -> Option<Duration> {
    let left = Validity::of_reply(asked, then, expiry).remaining(now);
    (!left.is_zero()).then_some(left)
}

// A store forgets a lease that was given back, so it cannot tell this from an expired one.
fn or_released(failure: Failure) -> Failure {
    match failure.code {
        Code::Lost => failure.fact(
            "or",
            "it was released already, or is not a lease of this lock",
        ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_long_on_its_way_counts_from_before_the_question() {
        let second = Duration::from_secs(1);
        let asked = Moment::from_nanos(5_000_000_000);
        let then = Timestamp::from_micros(900_000_000);
        let left_after = |passed| left(asked, then, then.plus(second * 10), asked.plus(passed));
        let at_once = left_after(Duration::ZERO).expect("ten seconds less the margin");
        assert!(at_once < second * 10 && at_once > second * 9);
        assert_eq!(left_after(second * 4), Some(at_once - second * 4));
        assert_eq!(
            left_after(second * 10),
            None,
            "somebody else may have it by now"
        );
    }
}
