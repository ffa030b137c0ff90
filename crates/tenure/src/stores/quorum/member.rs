//! [`Member`]: one store of a quorum, and what is known of it: its clock, and what it still has to be told.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{
    Action, BoxFuture, Error, ErrorKind, LockName, Moment, Reply, Request, Store, Timestamp,
};

use super::debts::Debts;
use super::epoch::Reading;
use crate::clock::Clock;

/// What tells a server from every other, for as long as it runs.
pub(in crate::stores) type Identity = Arc<str>;

/// Replies, and who gave all of them; `None` if it does not say.
pub(in crate::stores) type Identified = (Option<Identity>, Vec<Result<Reply, Error>>);

/// What a quorum asks of a server beyond what every [`Store`] does.
pub(in crate::stores) trait Server: Send + Sync + fmt::Debug {
    /// Decides a batch as the store does, and says who did. Where that is not sure there is no reply.
    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Identified>;

    /// Who would be asked now; `None` if nobody knows.
    fn identity(&self) -> Option<Identity>;

    /// From now on, push [`MaybeFree`](tenure_core::Push::MaybeFree) once when the holders of `name`
    /// change. Answers whether nobody holds it now; `None` if nothing will be pushed.
    fn watch<'a>(&'a self, name: &'a LockName) -> BoxFuture<'a, Result<Option<bool>, Error>>;
}

/// Calls under way at once. A member that hangs is not sent more and more.
const CALLS: usize = 64;

/// One store of a quorum.
#[derive(Debug)]
pub(super) struct Member {
    /// Where it is, for people.
    pub(super) label: String,
    pub(super) store: Arc<dyn Store>,
    pub(super) server: Option<Arc<dyn Server>>,
    pub(super) debts: Debts,
    clock: Arc<dyn Clock>,
    calls: Mutex<Calls>,
    /// What its clock showed last.
    reading: Mutex<Option<Reading>>,
}

/// What a member answered, when it was asked, and which server that was.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) sent: Moment,
    pub(super) by: Option<Identity>,
    pub(super) replies: Vec<Result<Reply, Error>>,
}

impl Member {
    pub(super) fn new(
        label: String,
        store: Arc<dyn Store>,
        server: Option<Arc<dyn Server>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            label,
            store,
            server,
            debts: Debts::default(),
            clock,
            calls: Mutex::default(),
            reading: Mutex::default(),
        }
    }

    /// Asks; always answers one result per request, and takes as long as the store's own time-out.
    pub(super) async fn ask(self: Arc<Self>, sent: Moment, batch: Vec<Request>) -> Answer {
        let Some(_call) = Call::begin(&self) else {
            let replies = batch.iter().map(|_| Err(overdue(&self.label)));
            return Answer {
                sent,
                by: None,
                replies: replies.collect(),
            };
        };
        let (by, mut replies) = match &self.server {
            Some(server) => server.apply(&batch).await,
            None => (None, self.store.apply(&batch).await),
        };
        if replies.len() != batch.len() {
            replies = batch.iter().map(|_| Err(miscounted())).collect();
        }
        if let Some(reply) = replies.iter().flatten().next() {
            self.calls().since = Some(self.clock.now());
            self.read(Reading {
                sent,
                now: reply.now,
            });
        }
        Answer { sent, by, replies }
    }

    /// Whether it owes answers and has given none for this long.
    pub(super) fn hangs(&self, now: Moment, patience: Duration) -> bool {
        let calls = self.calls();
        let since = calls.since.filter(|_| calls.count > 0);
        since.is_some_and(|since| now > since.plus(patience))
    }

    /// Learns who it is and what its clock shows.
    pub(super) async fn introduce(self: Arc<Self>) -> Result<Option<Identity>, Error> {
        let look = Action::Inspect.on(LockName::new("hello")?);
        let sent = self.clock.now();
        let Answer { by, replies, .. } = self.ask(sent, vec![look]).await;
        let replies: Result<Vec<Reply>, Error> = replies.into_iter().collect();
        replies.map(|_| by)
    }

    /// What its clock shows at `moment`, as far as that is known.
    pub(super) fn clock_at(&self, moment: Moment) -> Option<Timestamp> {
        let reading = (*self.reading())?;
        Some(reading.at(moment))
    }

    /// Whether its clock was read within this time.
    pub(super) fn was_read(&self, now: Moment, within: Duration) -> bool {
        self.reading()
            .is_some_and(|reading| now.since(reading.sent) <= within)
    }

    /// Which server it is now, as far as that is known.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.server.as_ref()?.identity()
    }

    fn read(&self, reading: Reading) {
        let mut last = self.reading();
        if last.is_none_or(|last| last.sent <= reading.sent) {
            *last = Some(reading);
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading(&self) -> MutexGuard<'_, Option<Reading>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls that are under way.
#[derive(Debug, Default)]
struct Calls {
    count: usize,
    /// When the first of them began, or one was answered.
    since: Option<Moment>,
}

/// One of the calls that are under way.
struct Call<'a>(&'a Member);

impl<'a> Call<'a> {
    fn begin(member: &'a Member) -> Option<Self> {
        let mut calls = member.calls();
        if calls.count == CALLS {
            return None;
        }
        if calls.count == 0 {
            calls.since = Some(member.clock.now());
        }
        calls.count += 1;
        Some(Self(member))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls().count -= 1;
    }
}

fn overdue(label: &str) -> Error {
    let message = format!("{label} was not asked: too many answers are overdue");
    Error::new(ErrorKind::Refused, message)
}

fn miscounted() -> Error {
    let message = "a store of the quorum answered too few or too many requests";
    Error::new(ErrorKind::Protocol, message)
}
