//! Taking what only one can have: a lock, a run that is counted, a number.

use std::ops::RangeInclusive;
use std::time::Duration;

use tenure::core::{Error, ErrorKind, Mode, Retry, Ttl};
use tenure::{Attempt, Guard, Lock, OncePer, WaitReport};
use tokio::sync::watch;

use super::{PAUSE, Session};
use crate::args::Count;
use crate::args::duration::Wait;
use crate::output::complaints;
use crate::output::failure::Result;
use crate::settings::lock::LockSettings;
use crate::settings::run::OnceSettings;

/// Whether a hold ends when this process does, where the store can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// `run`: the hold is renewed for as long as we live, and not longer.
    DiesWithUs,
    /// `acquire`: the hold lasts for its ttl, whatever becomes of us.
    Outlives,
}

impl Session {
    /// The longest lease that nobody else is given while it lasts, even if the store forgets it; `None`
    /// if the store makes no difference.
    pub fn longest_protected_lease(&self) -> Option<Ttl> {
        self.tenure.longest_protected_lease()
    }

    /// Takes a lock, waiting as `wait` says and reporting to `report`. The guard has most of its
    /// lease before it: a command may be started under it.
    ///
    /// # Errors
    /// The library's own, so that the caller can tell busy from the rest; a busy lock that was not
    /// waited for is reported to `report` as well.
    pub async fn acquire(
        &self,
        settings: &LockSettings,
        ttl: Ttl,
        tie: Tie,
        wait: Wait,
        report: watch::Sender<WaitReport>,
    ) -> std::result::Result<Guard, Error> {
        let began = self.clock().now();
        loop {
            let lock = self.lock(settings, ttl, tie);
            let wait = wait.less(self.clock().now().since(began));
            let guard = match wait {
                Wait::Forever => lock.report_to(report.clone()).acquire().await?,
                Wait::AtMost(Duration::ZERO) => match lock.try_acquire().await? {
                    Attempt::Acquired(guard) => guard,
                    Attempt::Busy(blocked) => {
                        report.send_modify(|report| report.blocked = Some(blocked));
                        return Err(Error::new(ErrorKind::Busy, "the lock is busy"));
                    }
                },
                Wait::AtMost(limit) => lock.wait(limit).report_to(report.clone()).acquire().await?,
            };
            if self.secured(&guard, ttl).await {
                return Ok(guard);
            }
        }
    }

    fn lock(&self, settings: &LockSettings, ttl: Ttl, tie: Tie) -> Lock {
        let name = settings.name.as_str();
        let lock = match settings.mode {
            Mode::Exclusive => self.tenure.lock(name),
            Mode::Shared => self.tenure.rwlock(name).read(),
            Mode::Permits(permits) => self.tenure.semaphore(name, permits.capacity()),
        };
        let party = &settings.party;
        let lock = lock
            .ttl(ttl.duration())
            .who(party.who())
            .label(party.label());
        match tie {
            Tie::DiesWithUs => lock,
            Tie::Outlives => lock.detached().no_renew(),
        }
    }

    /// Makes sure that most of the lease is left. A grant that was pushed to us lasts only for a
    /// short claim window until it is renewed, which is too little to start anything under.
    /// `false` if the window has passed.
    async fn secured(&self, guard: &Guard, ttl: Ttl) -> bool {
        while guard.remaining() < ttl.duration() * 2 / 3 {
            match guard.extend(ttl.duration()).await {
                Ok(()) => return true,
                Err(error) if error.retry() == Retry::Later => {
                    self.clock().sleep(PAUSE).await;
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// A run of this lock that is counted once per period.
    pub fn once_per(&self, lock: &LockSettings, ttl: Ttl, settings: &OnceSettings) -> OncePer {
        let once = self.tenure.once_per(lock.name.as_str(), settings.period);
        let once = once.ttl(ttl.duration()).who(lock.party.who());
        let once = if settings.sliding {
            once.sliding()
        } else {
            once.offset(settings.offset)
        };
        match settings.count {
            Count::Success => once,
            Count::Start => once.count_starts(),
        }
    }

    /// Numbers that nobody else gets: the next one, or a block.
    ///
    /// # Errors
    /// If the store cannot be asked until the wait has run out.
    pub async fn numbers(
        &self,
        name: &str,
        block: Option<u32>,
        wait: Wait,
    ) -> Result<RangeInclusive<u64>> {
        let sequence = self.tenure.sequence(name);
        let sequence = match wait {
            Wait::Forever => sequence,
            Wait::AtMost(limit) => sequence.wait(limit),
        };
        let numbers = match block {
            Some(count) => sequence.next_block(count).await,
            None => sequence.next().await.map(|number| number..=number),
        };
        numbers.map_err(|error| complaints::no_number(name, &error, wait.limit(), &self.choice))
    }
}
