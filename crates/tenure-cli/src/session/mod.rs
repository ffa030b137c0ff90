//! A connection to the chosen store: every call bounded, every error with the store's origin.

mod contact;
mod leases;
mod take;

use std::future::Future;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tenure::core::{Error, Finding, Guarantees};
use tenure::{Clock, Tenure};

use self::contact::{Persistence, Purpose, contact};
pub use self::take::Tie;
use crate::args::duration::Wait;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::complaints;
use crate::output::failure::{Failure, Result};
use crate::store_choice::StoreChoice;

/// How long the first contact, or a single question, may take: five seconds with the start and the
/// end of the process.
const CONTACT_LIMIT: Duration = Duration::from_millis(4_500);
/// Between two tries to reach the store.
const PAUSE: Duration = Duration::from_millis(100);
/// How long to see to it that nothing of ours is left in the store.
const SETTLE_LIMIT: Duration = Duration::from_secs(1);

/// A connection to the chosen store.
#[derive(Debug)]
pub struct Session {
    tenure: Tenure,
    choice: StoreChoice,
}

impl Session {
    /// Connects to look first, which changes nothing; a store that refuses at once gets no second chance.
    ///
    /// # Errors
    /// 69 if the store does not answer within five seconds, 64 or 78 for a wrong URL, 77 if it
    /// refuses us.
    pub async fn open(choice: StoreChoice) -> Result<Self> {
        let contact = contact(&choice, Purpose::Look, CONTACT_LIMIT, Persistence::Once).await;
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
        let contact = contact(&choice, Purpose::Use, limit, persistence).await;
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

fn silent(choice: &StoreChoice) -> Failure {
    let what = format!("{} does not answer", choice.url);
    choice.blame(Failure::new(Code::NoAnswer, what))
}
