//! [`Lanes`]: requests that arrive while calls are under way travel together in the next one, those for
//! different shards of the store in different lanes.
//!
//! A store that has nothing to do gets a request at once, and there is no timer, so nobody ever waits
//! for company. Under load many requests share one call: one script call, one transaction, one fsync.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{Action, Cancel, Error, Moment, Request, Retry, Shard};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::link::{Answer, CALL_LIMIT, Link, closed, no_answer};

/// Calls under way at once: a swallowed reply must not hold up the rest, and the next batch is on
/// its way while the store works on the one before.
const CALLS: usize = 4;
/// Requests in one call: more would keep the store's other clients waiting.
const BATCH: usize = 64;

/// Shards beyond this many share lanes: they get in each other's way only while one of them hangs.
const LANES: usize = 16;

/// A lane for each shard of the store.
#[derive(Debug)]
pub(crate) struct Lanes {
    runtime: Handle,
    lanes: [Lane; LANES],
}

/// What waits for the next call, and how many calls are under way.
#[derive(Debug, Default)]
struct Lane {
    traffic: Mutex<Traffic>,
}

#[derive(Debug, Default)]
struct Traffic {
    calls: usize,
    queue: VecDeque<Queued>,
}

/// A request on its way, and where its answer goes. Nobody listens if the asker was dropped.
#[derive(Debug)]
struct Queued {
    request: Request,
    /// Time in the queue counts as time that the store takes to answer.
    deadline: Moment,
    answer: oneshot::Sender<Result<Answer, Error>>,
    /// It was refused in another lane: it is not sent on once more.
    again: bool,
}

impl Queued {
    fn again(
        link: &Link,
        request: Request,
        answer: oneshot::Sender<Result<Answer, Error>>,
    ) -> Self {
        Self {
            request,
            deadline: link.now().plus(CALL_LIMIT),
            answer,
            again: true,
        }
    }
}

/// The right to make one call; what has queued up meanwhile takes it over when it is dropped.
struct Slot {
    link: Arc<Link>,
    shard: Shard,
}

impl Lanes {
    /// Lanes whose batches travel on `runtime`.
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            lanes: Default::default(),
        }
    }

    /// Where what belongs to the client runs.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Asks alone if the way is free, else together with others.
    ///
    /// # Cancel safety
    /// As with the store itself: the request has been carried out, or not, or will be. An acquire
    /// must then not be repeated with the same owner: if it travelled with others, it is cancelled
    /// here after its call.
    pub(crate) async fn ask(link: &Arc<Link>, request: Request) -> Result<Answer, Error> {
        let shard = link.store().shard(&request.name);
        let (slot, request) = match link.lanes().of(shard).enter(link, shard, request) {
            Ok(entered) => entered,
            Err(answer) => return answer.await.unwrap_or_else(|_| Err(closed())),
        };
        let batch = [request];
        let mut answers = link.ask_all(&batch, CALL_LIMIT).await;
        drop(slot);
        let answer = answers.pop().unwrap_or_else(|| Err(closed()));
        let [request] = batch;
        let Some(elsewhere) = belongs_elsewhere(link, shard, &request, &answer) else {
            return answer;
        };
        let (asker, arrives) = oneshot::channel();
        let again = Queued::again(link, request, asker);
        link.lanes().go_on(link, elsewhere, again);
        arrives.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Sends a request on in the lane of another shard.
    fn go_on(&self, link: &Arc<Link>, shard: Shard, queued: Queued) {
        let mut traffic = self.of(shard).traffic();
        if traffic.calls >= CALLS || !traffic.queue.is_empty() {
            return traffic.queue.push_back(queued);
        }
        traffic.calls += 1;
        drop(traffic);
        let link = link.clone();
        self.runtime
            .spawn(carry(Slot { link, shard }, vec![queued]));
    }

    fn of(&self, shard: Shard) -> &Lane {
        &self.lanes[shard.number() % LANES]
    }
}

impl Lane {
    /// A slot and the request back if the way is free; else where the answer will arrive.
    fn enter(
        &self,
        link: &Arc<Link>,
        shard: Shard,
        request: Request,
    ) -> Result<(Slot, Request), oneshot::Receiver<Result<Answer, Error>>> {
        let mut traffic = self.traffic();
        if traffic.calls < CALLS && traffic.queue.is_empty() {
            traffic.calls += 1;
            let link = link.clone();
            return Ok((Slot { link, shard }, request));
        }
        let (answer, arrives) = oneshot::channel();
        traffic.queue.push_back(Queued {
            request,
            deadline: link.now().plus(CALL_LIMIT),
            answer,
            again: false,
        });
        Err(arrives)
    }

    /// The next batch for a slot that has become free; none gives the slot back.
    fn next(&self) -> Option<Vec<Queued>> {
        let mut traffic = self.traffic();
        let count = traffic.queue.len().min(BATCH);
        if count == 0 {
            traffic.calls -= 1;
            return None;
        }
        Some(traffic.queue.drain(..count).collect())
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let lanes = self.link.lanes();
        if let Some(batch) = lanes.of(self.shard).next() {
            let slot = Slot {
                link: self.link.clone(),
                shard: self.shard,
            };
            // On a runtime that has ended this drops the batch, whose askers are told.
            lanes.runtime.spawn(carry(slot, batch));
        }
    }
}

/// One call for many askers.
async fn carry(slot: Slot, batch: Vec<Queued>) {
    let now = slot.link.now();
    let (mut requests, mut askers, mut limit) = (Vec::new(), Vec::new(), CALL_LIMIT);
    for queued in batch {
        if queued.answer.is_closed() {
            continue; // Whoever is gone has asked for nothing.
        }
        if queued.deadline <= now {
            let _ = queued.answer.send(Err(no_answer(CALL_LIMIT)));
            continue;
        }
        limit = limit.min(queued.deadline.since(now));
        requests.push(queued.request);
        askers.push((queued.answer, queued.again));
    }
    if requests.is_empty() {
        return;
    }
    let answers = slot.link.ask_all(&requests, limit).await;
    let mut orphans = Vec::new();
    let link = &slot.link;
    for ((request, (asker, again)), answer) in requests.into_iter().zip(askers).zip(answers) {
        let elsewhere = belongs_elsewhere(link, slot.shard, &request, &answer);
        if let (Some(shard), false, false) = (elsewhere, again, asker.is_closed()) {
            let queued = Queued::again(link, request, asker);
            link.lanes().go_on(link, shard, queued);
        } else if asker.send(answer).is_err() {
            orphans.extend(cancellation(request));
        }
    }
    if !orphans.is_empty() {
        link.ask_all(&orphans, CALL_LIMIT).await;
    }
}

/// Where to ask again, if a request was refused because it is no longer for this shard.
fn belongs_elsewhere(
    link: &Link,
    shard: Shard,
    request: &Request,
    answer: &Result<Answer, Error>,
) -> Option<Shard> {
    let refused = |error: &Error| error.retry() == Retry::Later;
    if !answer.as_ref().is_err_and(refused) {
        return None;
    }
    let now = link.store().shard(&request.name);
    (now != shard).then_some(now)
}

/// Undoes an acquire whose asker is gone. The asker has cancelled it too, but that may have overtaken
/// the call which the acquire was part of.
fn cancellation(request: Request) -> Option<Request> {
    let Action::Acquire(acquire) = request.action else {
        return None;
    };
    let owner = acquire.owner;
    Some(Action::Cancel(Cancel { owner }).on(request.name))
}

#[cfg(test)]
mod tests;
