//! A connection to the chosen store: every call bounded, every error with the store's origin.

mod contact;

use std::future::Future;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tenure::core::{
    Error, ErrorKind, Finding, Guarantees, Lease, Listing, LockName, Mode, Moment, Retry, Snapshot,
    Timestamp, Ttl, Validity,
};
use tenure::{Attempt, Clock, Guard, Lock, OncePer, Tenure, WaitReport};
use tokio::sync::watch;

use self::contact::{Persistence, contact};
use crate::args::Count;
use crate::args::duration::Wait;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::complaints;
use crate::output::failure::{Failure, Result};
use crate::settings::lock::LockSettings;
use crate::settings::run::OnceSettings;
use crate::store_choice::StoreChoice;

/// How long the first contact, or a single question, may take: five seconds with the start and the
/// end of the process.
const CONTACT_LIMIT: Duration = Duration::from_millis(4_500);
/// Between two tries to reach the store.
const PAUSE: Duration = Duration::from_millis(100);
/// How long to see to it that nothing of ours is left in the store.
const SETTLE_LIMIT: Duration = Duration::from_secs(1);

/// Whether a hold ends when this process does, where the store can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// `run`: the hold is renewed for as long as we live, and not longer.
    DiesWithUs,
    /// `acquire`: the hold lasts for its ttl, whatever becomes of us.
    Outlives,
}

/// A connection to the chosen store.
#[derive(Debug)]
pub struct Session {
    tenure: Tenure,
    choice: StoreChoice,
}

impl Session {
    /// Connects; a store that refuses at once gets no second chance.
    ///
    /// # Errors
    /// 69 if the store does not answer within five seconds, 64 or 78 for a wrong URL, 77 if it
    /// refuses us.
    pub async fn open(choice: StoreChoice) -> Result<Self> {
        let contact = contact(&choice, CONTACT_LIMIT, Persistence::Once).await;
        Self::connected(contact, choice, silent)
    }

    /// Connects, trying again for a while: the store may just be starting. A short `wait` makes the
    /// while shorter, and none at all leaves a single try.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_patiently(choice: StoreChoice, wait: Wait, output: Output) -> Result<Self> {
        let persistence = match wait {
            Wait::AtMost(Duration::ZERO) => Persistence::Once,
            _ => Persistence::Repeat(output),
        };
        let short = wait
            .limit()
            .filter(|wait| !wait.is_zero() && *wait < CONTACT_LIMIT);
        let limit = short.unwrap_or(CONTACT_LIMIT);
        let contact = contact(&choice, limit, persistence).await;
        Self::connected(contact, choice, |choice| match short {
            Some(wait) => complaints::wait_over(wait, choice),
            None => silent(choice),
        })
    }

    fn connected(
        contact: Option<std::result::Result<Tenure, Error>>,
        choice: StoreChoice,
        silent: impl FnOnce(&StoreChoice) -> Failure,
    ) -> Result<Self> {
        match contact {
            Some(Ok(tenure)) => Ok(Self { tenure, choice }),
            Some(Err(error)) => Err(complaints::of_error(&error, &choice)),
            None => Err(silent(&choice)),
        }
    }

    /// Which store, and who chose it.
    pub fn choice(&self) -> &StoreChoice {
        &self.choice
    }

    /// The clock of the client.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.tenure.clock()
    }

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

    /// Descriptors by which others see that the holder lives, for a process that is to outlive us.
    pub fn anchors(&self) -> Vec<OwnedFd> {
        self.tenure.anchors()
    }

    /// What the store promises.
    pub fn guarantees(&self) -> Guarantees {
        self.tenure.guarantees()
    }

    /// What is set up wrongly.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn diagnose(&self) -> Result<Vec<Finding>> {
        self.ask(self.tenure.diagnose()).await
    }

    /// How long a question takes: the median of five.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn round_trip(&self) -> Result<Duration> {
        let mut times = [Duration::ZERO; 5];
        for time in &mut times {
            let asked = self.clock().now();
            self.ask(self.tenure.inspect("tenure-doctor")).await?;
            *time = self.clock().now().since(asked);
        }
        times.sort_unstable();
        Ok(times[2])
    }

    /// Runs `work` for at most `limit`.
    ///
    /// # Errors
    /// Its own, or that the store did not answer.
    pub async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = std::result::Result<T, Error>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            result = work => result.map_err(|error| complaints::of_error(&error, &self.choice)),
            () = self.clock().sleep(limit) => Err(silent(&self.choice)),
        }
    }

    /// Returns when what was dropped before (a place in the queue, a guard) is gone from the store,
    /// or after a second.
    pub async fn settle(&self) {
        tokio::select! {
            () = self.tenure.settle() => {}
            () = self.clock().sleep(SETTLE_LIMIT) => {}
        }
    }

    async fn ask<T>(
        &self,
        question: impl Future<Output = std::result::Result<T, Error>>,
    ) -> Result<T> {
        self.within(CONTACT_LIMIT, question).await
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

fn silent(choice: &StoreChoice) -> Failure {
    let what = format!("{} does not answer", choice.url);
    choice.blame(Failure::new(Code::NoAnswer, what))
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
