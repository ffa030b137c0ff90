//! For how long a hold may be relied upon: a primary that was replaced and does not know it goes on
//! granting and renewing, so its word alone is not enough.
//!
//! - A grant counts only after a majority of the sentinels has confirmed the primary, asked *after*
//!   the grant had arrived.
//! - No hold is relied upon for longer than `max_ttl` after the last confirmation was asked for.
//! - The life of a primary begins only after a majority has named it (`memory::look`), so it lets
//!   nobody in until `max_ttl` after the last question that could have confirmed another.
//! - A life belongs to one [`Configuration`], and only that one confirms it: a primary that comes back after
//!   another had its place begins another life.
//!
//! Two majorities share a sentinel, and none goes back to a configuration that it has left: see
//! `docs/decisions/009-sentinel.md`.

use std::collections::HashSet;
use std::sync::{MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Error, ErrorKind, Moment, PushedGrant, Reply, Request};

use super::super::errors::Failure;
use super::super::options::Address;
use super::super::relying::{Held, PATIENCE, Reliance, prolongs};
use super::Sentinels;
use super::ask::{Sentinel, View};
use super::configuration::{Configuration, Epoch};
use super::verdict::{Verdict, outdated};
use crate::clock::bounded;

/// A majority confirmed that this was the primary.
#[derive(Clone, Debug)]
pub(super) struct Confirmed {
    configuration: Configuration,
    /// When they were asked.
    asked: Moment,
}

impl Sentinels {
    /// Why this request must not be sent, if it must not.
    pub(in super::super) fn refusal(&self, request: &Request) -> Option<Error> {
        self.reliance().refusal(request)
    }

    fn reliance(&self) -> Reliance {
        Reliance(self.max_ttl)
    }

    /// Whether the last confirmation should be renewed beside these requests.
    pub(in super::super) fn is_due(&self, batch: &[Request], relied_on: &Configuration) -> bool {
        let due = || {
            let last = self.last(relied_on);
            self.reliance().is_due(last, self.clock.now())
        };
        batch.iter().any(prolongs) && due()
    }

    /// Renews the last confirmation, without waiting for long. If that fails, holds last for as
    /// long as the last one allows.
    pub(in super::super) async fn refresh(&self, relied_on: &Configuration) -> Option<Failure> {
        let now = self.clock.now();
        let confirming = self.confirm(relied_on, now, now.plus(PATIENCE));
        let confirmed = bounded(&*self.clock, PATIENCE * 2, confirming).await;
        confirmed?.err()
    }

    /// Shortens what a life of this configuration has answered to what may be relied upon, and answers what
    /// kept grants from being confirmed. `began` is from before the requests were sent.
    pub(in super::super) async fn vouch(
        &self,
        relied_on: &Configuration,
        began: Moment,
        deadline: Moment,
        replies: &mut [Result<Reply, Error>],
    ) -> Option<Failure> {
        let granted = |reply: &Result<Reply, Error>| {
            let reply = reply.as_ref().ok();
            reply.is_some_and(|reply| Held::of(&reply.outcome) == Some(Held::Granted))
        };
        let mut failure = None;
        if replies.iter().any(granted) {
            let arrived = self.clock.now();
            failure = self.confirm(relied_on, arrived, deadline).await.err();
        }
        let left = self.reliance().left(self.last(relied_on), began);
        for result in replies {
            let Ok(reply) = result else { continue };
            let failed = match Held::shortened(reply, left) {
                Some(Held::Granted) => failure.as_ref(),
                Some(Held::Prolonged) => None,
                None => continue,
            };
            if let Some(failure) = failed {
                *result = Err(failure.error());
            } else if left.is_zero() {
                *result = Err(outdated(relied_on, &self.service).error());
            }
        }
        failure
    }

    /// The same for a grant that was pushed; `None` if it cannot be relied upon.
    pub(in super::super) async fn vouch_for_push(
        &self,
        relied_on: &Configuration,
        grant: PushedGrant,
        deadline: Moment,
    ) -> Option<PushedGrant> {
        self.confirm(relied_on, self.clock.now(), deadline)
            .await
            .ok()?;
        Some(self.reliance().pushed(grant))
    }

    /// Returns when a majority, asked at or after `since`, has confirmed what is relied on.
    async fn confirm(
        &self,
        relied_on: &Configuration,
        since: Moment,
        deadline: Moment,
    ) -> Result<(), Failure> {
        let Some(_turn) = self.turn(deadline).await else {
            return Err(unasked(&relied_on.primary));
        };
        if self.last(relied_on).is_some_and(|asked| asked >= since) {
            return Ok(());
        }
        let asked = self.clock.now();
        let confirmed = |verdict: &Verdict| verdict.confirms(relied_on.epoch);
        let verdict = self.ask_all(&relied_on.primary, deadline, confirmed).await;
        if !confirmed(&verdict) {
            return Err(verdict.unconfirmed(relied_on, &self.service));
        }
        self.note(relied_on.clone(), asked);
        Ok(())
    }

    /// In which epoch a majority, asked now, names `primary`.
    pub(in super::super) async fn epoch_of(
        &self,
        primary: &Address,
        deadline: Moment,
    ) -> Result<Epoch, Failure> {
        let agreed = |verdict: &Verdict| verdict.agreed().is_some();
        let Some(_turn) = self.turn(deadline).await else {
            return Err(unasked(primary));
        };
        let asked = self.clock.now();
        let verdict = self.ask_all(primary, deadline, agreed).await;
        let named = Configuration {
            primary: primary.clone(),
            epoch: verdict.agreed(),
        };
        let Some(epoch) = named.epoch else {
            return Err(verdict.unconfirmed(&named, &self.service));
        };
        self.note(named, asked);
        Ok(epoch)
    }

    /// One asks at a time. Whoever does not come to it asks nobody: it would hang up on those who are being asked.
    async fn turn(&self, deadline: Moment) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let left = deadline.since(self.clock.now());
        bounded(&*self.clock, left, self.turn.lock()).await
    }

    /// When the last confirmation was asked for.
    fn last(&self, relied_on: &Configuration) -> Option<Moment> {
        let confirmed = self.confirmed();
        let last = confirmed.as_ref();
        let last = last.filter(|last| last.configuration.is(relied_on));
        last.map(|last| last.asked)
    }

    fn note(&self, configuration: Configuration, asked: Moment) {
        *self.confirmed() = Some(Confirmed {
            configuration,
            asked,
        });
    }

    fn confirmed(&self) -> MutexGuard<'_, Option<Confirmed>> {
        self.confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all sentinels about this primary, until that is enough.
    async fn ask_all(
        &self,
        primary: &Address,
        deadline: Moment,
        enough: impl Fn(&Verdict) -> bool,
    ) -> Verdict {
        let mut verdict = Verdict::new(&self.service);
        let (Address::Tcp { host, port } | Address::Tls { host, port }) = primary else {
            return verdict;
        };
        let mut asked: FuturesUnordered<_> = self
            .sentinels
            .iter()
            .map(|sentinel| self.view(sentinel, deadline))
            .collect();
        // Who has answered: one with two addresses has one voice.
        let mut met = HashSet::new();
        while let Some(answer) = asked.next().await {
            match answer {
                Some(Ok(view)) if met.insert(view.id.clone()) => verdict.hear(&view, host, *port),
                Some(Err(failure)) => verdict.miss(failure),
                _ => continue,
            }
            if enough(&verdict) {
                break;
            }
        }
        verdict
    }

    async fn view(&self, sentinel: &Sentinel, deadline: Moment) -> Option<Result<View, Failure>> {
        let left = deadline.since(self.clock.now());
        let view = bounded(&*self.clock, left, sentinel.look(&self.service)).await;
        if view.is_none() {
            sentinel.hang_up();
        }
        view
    }
}

fn unasked(primary: &Address) -> Failure {
    let message = "the sentinels were not asked in time whether this is the primary: an earlier question waits for their answers";
    Failure::new(ErrorKind::Unavailable, message).at(primary)
}
