//! [`Errand`]: a release or cancellation that nobody waits for, tried until it is done or no longer
//! matters, and [`Errands`]: all of them, which travel together.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{
    Action, BoxFuture, Cancel, Lease, LockName, Moment, OwnerId, Release, Request, Retry, Shard,
    Timestamp, Ttl,
};

use super::BATCH;
use super::departures::Departures;
use crate::hold::Hold;
use crate::link::{CALL_LIMIT, Link};
use crate::random;

/// Something to be undone at the store.
#[derive(Debug)]
pub(crate) struct Errand {
    request: Request,
    /// Not before the store's clock has reached this.
    due: Timestamp,
    /// After this long, what is to be undone has ended by itself.
    matters_for: Duration,
    times: Times,
    /// It is run once more after the last renewal of this has landed: a store that recovers takes one that arrives later for a
    /// holder that comes back.
    hold: Option<Arc<Hold>>,
}

/// How often an errand is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    /// Once more a moment later: what it undoes may still be on its way, with nothing in it that
    /// would make it too late.
    Twice,
}

impl Errand {
    /// Ends a hold.
    pub(crate) fn release(hold: &Arc<Hold>) -> Self {
        Self {
            due: hold.kept_until(),
            hold: Some(hold.clone()),
            ..Self::give_back(hold.name.clone(), hold.lease, hold.longest_ttl())
        }
    }

    /// Ends a hold that nobody has, and for which no longer ttl than this was asked.
    pub(crate) fn give_back(name: LockName, lease: Lease, ttl: Ttl) -> Self {
        let Lease { owner, fence } = lease;
        Self {
            request: Action::Release(Release { owner, fence }).on(name),
            due: AT_ONCE,
            matters_for: crate::acquire::longest(ttl),
            times: Times::Once,
            hold: None,
        }
    }

    /// Removes the place in the queue or the grant of an attempt that was given up.
    pub(crate) fn cancel(name: LockName, owner: OwnerId, ttl: Ttl, times: Times) -> Self {
        let request = Action::Cancel(Cancel { owner }).on(name);
        Self {
            request,
            due: AT_ONCE,
            matters_for: ttl.duration() + crate::acquire::ALIVE_FOR,
            times,
            hold: None,
        }
    }
}

/// Calls under way at once, for each shard of the store; what comes meanwhile joins the next one.
const CALLS: usize = 4;
/// Every clock has reached this.
const AT_ONCE: Timestamp = Timestamp::from_micros(0);
/// How long to wait before an errand that failed is tried again.
const PAUSE: Duration = Duration::from_millis(250);

/// The errands of a client. However many there are, and however long the store is down, few calls
/// are under way at once.
pub(super) struct Errands {
    link: Arc<Link>,
    ready: Departures<Open>,
    calls: FuturesUnordered<BoxFuture<'static, (Shard, Vec<Open>)>>,
    /// Those that failed or are to be repeated, until then.
    pauses: FuturesUnordered<BoxFuture<'static, Vec<Open>>>,
}

/// An errand that is not done, and until when it matters.
struct Open {
    request: Request,
    due: Timestamp,
    until: Moment,
    times: Times,
    hold: Option<Arc<Hold>>,
    /// It was done while a renewal of this was on its way.
    lands: Option<Arc<Hold>>,
}

impl Open {
    /// Whether a renewal may arrive after it.
    fn is_early(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.is_in_flight())
    }
}

impl Errands {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            ready: Departures::new(CALLS),
            calls: FuturesUnordered::new(),
            pauses: FuturesUnordered::new(),
        }
    }

    pub(super) fn add(&mut self, errand: Errand) {
        self.queue(Open {
            request: errand.request,
            due: errand.due,
            until: self.link.now().plus(errand.matters_for),
            times: errand.times,
            hold: errand.hold,
            lands: None,
        });
    }

    fn queue(&mut self, open: Open) {
        let shard = self.link.store().shard(&open.request.name);
        self.ready.add(shard, open);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.pauses.is_empty()
    }

    /// Sends off what waits, as far as calls are free.
    pub(super) fn send(&mut self) {
        while let Some((shard, batch)) = self.ready.depart(BATCH) {
            let link = self.link.clone();
            let calling = async move { (shard, call(link, batch).await) };
            self.calls.push(Box::pin(calling));
        }
    }

    /// Goes on; returns when there may be something to [`send`](Self::send). Never returns while
    /// nothing is under way.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn progress(&mut self) {
        tokio::select! {
            biased;
            Some((shard, again)) = self.calls.next() => {
                self.ready.arrived(shard);
                self.pause(again);
            }
            Some(rested) = self.pauses.next() => {
                rested.into_iter().for_each(|open| self.queue(open));
            }
            else => std::future::pending().await,
        }
    }

    fn pause(&mut self, again: Vec<Open>) {
        let mut later = Vec::new();
        for mut open in again {
            match open.lands.take() {
                Some(hold) => self.pauses.push(Box::pin(async move {
                    hold.landed().await;
                    vec![open]
                })),
                None => later.push(open),
            }
        }
        if !later.is_empty() {
            let pause = self.link.clock().sleep(random::jittered(PAUSE));
            self.pauses.push(Box::pin(async move {
                pause.await;
                later
            }));
        }
    }

    /// Goes on until all are done.
    pub(super) async fn finish(mut self) {
        self.send();
        while !self.is_empty() {
            self.progress().await;
            self.send();
        }
    }
}

/// One call; answers what has to be done again.
async fn call(link: Arc<Link>, batch: Vec<Open>) -> Vec<Open> {
    let (batch, mut again) = only_due(&link, batch).await;
    if batch.is_empty() {
        return again;
    }
    let requests: Vec<Request> = batch.iter().map(|open| open.request.clone()).collect();
    let early: Vec<bool> = batch.iter().map(Open::is_early).collect();
    let answers = link.ask_all(&requests, CALL_LIMIT).await;
    let now = link.now();
    for ((mut open, early), answer) in batch.into_iter().zip(early).zip(answers) {
        let repeated = match answer {
            Ok(_) => {
                open.lands = open.hold.take().filter(|_| early);
                let times = std::mem::replace(&mut open.times, Times::Once);
                times == Times::Twice || open.lands.is_some()
            }
            Err(error) => error.retry() == Retry::Later,
        };
        if repeated && now < open.until {
            again.push(open);
        }
    }
    again
}

/// Those that may be run now, and those that may not yet. If one has to wait for the store's clock, the store is
/// asked for it: the server that will run it may be another one than the last that answered.
async fn only_due(link: &Link, batch: Vec<Open>) -> (Vec<Open>, Vec<Open>) {
    let Some(waits) = batch.iter().find(|open| open.due > AT_ONCE) else {
        return (batch, Vec::new());
    };
    let look = [Action::Inspect.on(waits.request.name.clone())];
    let answer = link.ask_all(&look, CALL_LIMIT).await.pop();
    let clock = answer.and_then(Result::ok).map_or(AT_ONCE, |it| it.now);
    let now = link.now();
    let (due, early): (Vec<_>, Vec<_>) = batch.into_iter().partition(|open| open.due <= clock);
    // Later it has ended by itself.
    let again = early.into_iter().filter(|open| now < open.until);
    (due, again.collect())
}
