//! Sentinel: which server is the primary now ([`Sentinels::primaries`]), when to look again
//! (`watch`), and for how long a hold on it may be relied upon (`confirm`).
//!
//! Finding needs no majority, because the server itself says whether it is a primary; relying on
//! it does.

mod ask;
mod configuration;
mod confirm;
mod service;
mod verdict;
mod watch;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tenure_core::{ErrorKind, Finding, Moment, Severity};

use super::errors::Failure;
use super::options::Address;
use crate::clock::{Clock, bounded};
use ask::Sentinel;
use confirm::Confirmed;

pub(super) use configuration::{Configuration, Epoch};
pub(super) use service::Service;
pub(super) use watch::watch;

/// How long a sentinel may take to name the primary, unless a majority has named it before.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The sentinels of one service.
pub(super) struct Sentinels {
    service: Service,
    sentinels: Vec<Sentinel>,
    clock: Arc<dyn Clock>,
    /// Nobody relies on a hold for longer than this after a confirmation.
    max_ttl: Duration,
    /// The last confirmation.
    confirmed: Mutex<Option<Confirmed>>,
    /// Held while they are asked, so that one answer serves all who wait.
    turn: tokio::sync::Mutex<()>,
}

impl Sentinels {
    pub(super) fn new(service: Service, max_ttl: Duration, clock: Arc<dyn Clock>) -> Self {
        let sentinels = service.sentinels.iter().cloned().map(Sentinel::new);
        Self {
            sentinels: sentinels.collect(),
            service,
            clock,
            max_ttl,
            confirmed: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Who may be the primary, the most often named first. Asks all at once and is content when a
    /// majority agrees; the dead and the slow cost [`ANSWER_TIMEOUT`] at most.
    ///
    /// # Errors
    /// If none of them names anybody: whatever kept them from it.
    pub(super) async fn primaries(&self) -> Result<Vec<Address>, Failure> {
        let mut asked: FuturesUnordered<_> = self
            .sentinels
            .iter()
            .map(|sentinel| self.named_by(sentinel))
            .collect();
        let mut named: Vec<(Address, usize)> = Vec::new();
        let mut failures = Vec::new();
        while let Some(answer) = asked.next().await {
            let address = match answer {
                Ok(address) => address,
                Err(failure) => {
                    failures.push(failure);
                    continue;
                }
            };
            match named.iter_mut().find(|(known, _)| *known == address) {
                Some((_, times)) => *times += 1,
                None => named.push((address, 1)),
            }
            if named
                .iter()
                .any(|(_, times)| *times >= self.service.majority())
            {
                break;
            }
        }
        if named.is_empty() {
            return Err(self.worst(&failures));
        }
        named.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        Ok(named.into_iter().map(|(address, _)| address).collect())
    }

    /// Looks at the sentinels as a worried operator would.
    pub(super) async fn findings(&self, primary: &Address, deadline: Moment) -> Vec<Finding> {
        let subject = "sentinels".to_owned();
        let (severity, detail) = match self.epoch_of(primary, deadline).await {
            Ok(epoch) => (
                Severity::Fine,
                format!("a majority confirms that {primary} is the primary, since epoch {epoch}"),
            ),
            Err(failure) => (Severity::Danger, failure.error().to_string()),
        };
        let mut findings = vec![Finding {
            severity,
            subject: subject.clone(),
            detail,
        }];
        if self.sentinels.len() < 3 {
            findings.push(Finding {
                severity: Severity::Warning,
                subject,
                detail: "the URL names fewer than three sentinels: name all, so that one of them \
                         may be down"
                    .into(),
            });
        }
        findings
    }

    /// What a person can do something about, if so many refuse for good that the others would not be enough.
    fn worst(&self, failures: &[Failure]) -> Failure {
        if let Some(refusal) = self.service.refusal(failures) {
            return refusal.clone();
        }
        let count = self.sentinels.len();
        let mut failures = failures.iter();
        let refusal = failures.find(|failure| failure.kind != ErrorKind::Unavailable);
        let message = match refusal {
            Some(refusal) => format!(
                "none of the {count} sentinels names a primary; one of them says: {}",
                refusal.error()
            ),
            None => format!(
                "none of the {count} sentinels answers: are they running, and are these their addresses?"
            ),
        };
        Failure::new(ErrorKind::Unavailable, message).at(&self.service)
    }

    async fn named_by(&self, sentinel: &Sentinel) -> Result<Address, Failure> {
        let asking = sentinel.primary(&self.service);
        match bounded(&*self.clock, ANSWER_TIMEOUT, asking).await {
            Some(Ok(Some((host, port)))) => Ok(self.service.server(host, port)),
            Some(Ok(None)) => Err(Failure::new(
                ErrorKind::Configuration,
                format!(
                    "the sentinels know of no service `{}`: the URL names it after the hosts, as \
                     in redis+sentinel://host1,host2,host3/mymaster",
                    self.service.name
                ),
            )
            .at(&sentinel.address)),
            Some(Err(failure)) => Err(failure),
            None => {
                sentinel.hang_up();
                Err(Failure::unconnected(ANSWER_TIMEOUT, &sentinel.address))
            }
        }
    }
}
