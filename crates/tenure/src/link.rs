//! [`Link`]: how the client asks its store. Takes the time before each request is sent, bounds every
//! call, and remembers the store's clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    Action, Error, ErrorKind, LockName, Moment, Outcome, Request, Shard, Spelled, Store, Timestamp,
    Validity,
};
use tokio::runtime::Handle;

use crate::clock::{Clock, bounded};
use crate::combine::Lanes;

#[derive(Debug)]
pub(crate) struct Link {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    lanes: Lanes,
    /// What the clock of each shard said last.
    seen: Mutex<Vec<Option<Seen>>>,
}

/// What the clock of a shard said between two moments of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) sent: Moment,
    pub(crate) received: Moment,
    pub(crate) now: Timestamp,
}

pub(crate) type Anchor = (Moment, Timestamp);

/// A reply together with the moment before its request was sent.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) sent: Moment,
    pub(crate) now: Timestamp,
    pub(crate) outcome: Outcome,
}

impl Answer {
    /// How long a hold until `expiry` may be relied upon: never longer than `asked_for`. The expiry
    /// is further away if the store's clock was set back, and comes near again if that is undone.
    pub(crate) fn validity(&self, expiry: Timestamp, asked_for: Duration) -> Validity {
        let expiry = expiry.min(self.now.plus(asked_for));
        Validity::of_reply(self.sent, self.now, expiry)
    }
}

/// How long one call may take before its outcome counts as unknown.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(2);

/// How long looking at the whole store, opening it or beginning to listen to it may take.
const LOOK_LIMIT: Duration = Duration::from_secs(20);

impl Link {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, runtime: Handle) -> Self {
        Self {
            store,
            clock,
            lanes: Lanes::new(runtime),
            seen: Mutex::default(),
        }
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Asks, together with whoever else asks at the same time.
    ///
    /// # Cancel safety
    /// See [`Lanes::ask`].
    pub(crate) async fn ask(
        self: &Arc<Self>,
        name: &LockName,
        action: Action,
    ) -> Result<Answer, Error> {
        Lanes::ask(self, action.on(name.clone())).await
    }

    /// Asks a batch as it is, at once; always answers one result per request.
    pub(crate) async fn ask_all(
        &self,
        batch: &[Request],
        limit: Duration,
    ) -> Vec<Result<Answer, Error>> {
        let sent = self.clock.now();
        let replies = match bounded(&*self.clock, limit, self.store.apply(batch)).await {
            Some(replies) if replies.len() == batch.len() => replies,
            Some(replies) => {
                let count = replies.len();
                return batch
                    .iter()
                    .map(|_| Err(wrong_count(batch.len(), count)))
                    .collect();
            }
            None => return batch.iter().map(|_| Err(no_answer(limit))).collect(),
        };
        let answers: Vec<_> = replies
            .into_iter()
            .map(|reply| {
                reply.map(|reply| Answer {
                    sent,
                    now: reply.now,
                    outcome: reply.outcome,
                })
            })
            .collect();
        let asked = answers.iter().zip(batch);
        if let Some((now, request)) = asked
            .into_iter()
            .find_map(|(answer, request)| Some((answer.as_ref().ok()?.now, request)))
        {
            let received = self.clock.now();
            let seen = Seen {
                sent,
                received,
                now,
            };
            self.remember(self.store.shard(&request.name), seen);
        }
        answers
    }

    /// Runs something slower than a request, which must end all the same.
    pub(crate) async fn patiently<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        patiently(&*self.clock, work).await
    }

    /// The latest that the store's clock can show when a request about `name` that is sent now is
    /// carried out within the limit of a call; `None` before the first reply.
    pub(crate) fn not_after(&self, name: &LockName) -> Option<Timestamp> {
        let Seen { sent, now, .. } = self.seen(name)?;
        let elapsed = self.clock.now().since(sent);
        Some(now.plus(elapsed + elapsed / 1000 + CALL_LIMIT))
    }

    /// What the clock said last by which a lock of this name is kept; `None` before the first reply.
    pub(crate) fn seen(&self, name: &LockName) -> Option<Seen> {
        let shard = self.store.shard(name);
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.get(shard.number())?
    }

    fn remember(&self, shard: Shard, newer: Seen) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() <= shard.number() {
            seen.resize(shard.number() + 1, None);
        }
        let seen = &mut seen[shard.number()];
        if seen.is_none_or(|known| known.sent <= newer.sent) {
            *seen = Some(newer);
        }
    }
}

/// Runs something slower than a request, which must end all the same.
pub(crate) async fn patiently<T>(
    clock: &dyn Clock,
    work: impl Future<Output = T>,
) -> Result<T, Error> {
    let answer = bounded(clock, LOOK_LIMIT, work).await;
    answer.ok_or_else(|| no_answer(LOOK_LIMIT))
}

pub(crate) fn no_answer(limit: Duration) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "the store did not answer within {}; whether it acted is unknown",
            Spelled(limit)
        ),
    )
}

/// The client outlived its runtime.
pub(crate) fn closed() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the runtime that this client was connected on has ended; connect again on a living one",
    )
}

fn wrong_count(asked: usize, answered: usize) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the store answered {answered} of {asked} requests: a bug in the store"),
    )
}

/// An answer that does not belong to the request.
pub(crate) fn out_of_place(action: &str, outcome: &Outcome) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the store answered {action} with {outcome:?}"),
    )
}
