//! [`All`]: several locks at once, all or nothing.

use std::time::Duration;

use futures_util::future::{join_all, select_all};
use tenure_core::{Error, ErrorKind, LockName};

use crate::acquire::Wait;
use crate::client::Tenure;
use crate::guard::Guard;
use crate::lock::Lock;
use crate::standing::Loss;

/// Several mutexes that are described but not yet held.
#[derive(Clone, Debug)]
#[must_use = "locks do nothing until they are acquired"]
pub struct All {
    tenure: Tenure,
    names: Vec<String>,
    ttl: Option<Duration>,
    wait: Option<Duration>,
}

/// Several held mutexes; each is renewed on its own, and all are given back together.
#[derive(Debug)]
#[must_use = "the locks are released when the guards are dropped"]
pub struct AllGuard {
    guards: Vec<Guard>,
}

impl All {
    pub(crate) fn new(tenure: Tenure, mut names: Vec<String>) -> Self {
        names.sort();
        names.dedup();
        Self {
            tenure,
            names,
            ttl: None,
            wait: None,
        }
    }

    /// As [`Lock::ttl`](crate::Lock::ttl), for each.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long to wait at most, for all of them together.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Takes all of them, one after the other in sorted order; if one cannot be had, those already
    /// taken are given back.
    ///
    /// # Errors
    /// As [`Lock::acquire`](crate::Lock::acquire) of the first that fails, or [`ErrorKind::Lost`]
    /// if one that was already held got lost while waiting for another.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future at any point leaves no lock and no queue place behind.
    pub async fn acquire(self) -> Result<AllGuard, Error> {
        if self.names.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "name at least one lock",
            ));
        }
        // A bad name is found before the first lock is taken, not after a long wait.
        for name in &self.names {
            if LockName::new(name)?.is_reserved() {
                return Err(Error::new(ErrorKind::InvalidInput, LockName::RESERVED));
            }
        }
        let clock = self.tenure.clock().clone();
        let started = clock.now();
        let mut all = AllGuard {
            guards: Vec::with_capacity(self.names.len()),
        };
        for name in &self.names {
            let passed = clock.now().since(started);
            let guard = tokio::select! {
                biased;
                guard = self.lock(name, passed).acquire() => guard?,
                (lost, loss) = all.lost() => return Err(loss.error(lost)),
            };
            all.guards.push(guard);
        }
        all.ensure()?;
        Ok(all)
    }

    fn lock(&self, name: &str, passed: Duration) -> Lock {
        let mut lock = self.tenure.lock(name);
        if let Some(ttl) = self.ttl {
            lock = lock.ttl(ttl);
        }
        if let Some(wait) = self.wait {
            lock = lock.waiting(Wait::For(wait).less(passed));
        }
        lock
    }
}

impl AllGuard {
    /// The guards, sorted by name.
    #[must_use = "they stay held"]
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The guard of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Guard> {
        self.guards
            .iter()
            .find(|guard| guard.name().as_str() == name)
    }

    /// Whether all of them can be relied upon right now.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.guards.iter().all(Guard::is_valid)
    }

    /// Like [`is_valid`](Self::is_valid), for use with `?`.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] of the first that is not valid.
    pub fn ensure(&self) -> Result<(), Error> {
        self.guards.iter().try_for_each(Guard::ensure)
    }

    /// Waits until one of them is lost, and says which and why.
    pub async fn lost(&self) -> (&LockName, Loss) {
        if self.guards.is_empty() {
            // While the first is being acquired.
            return std::future::pending().await;
        }
        let waits = self.guards.iter().map(|guard| Box::pin(guard.lost()));
        let (loss, index, _) = select_all(waits).await;
        (self.guards[index].name(), loss)
    }

    /// Gives all of them back.
    ///
    /// # Errors
    /// The first error of [`Guard::release`]; the others are given back all the same.
    ///
    /// # Cancel safety
    /// Dropping the future goes on releasing in the background.
    pub async fn release(self) -> Result<(), Error> {
        let releases = self.guards.into_iter().map(Guard::release);
        join_all(releases).await.into_iter().collect()
    }
}
