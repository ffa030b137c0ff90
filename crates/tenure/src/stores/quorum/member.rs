//! [`Member`]: one store of a quorum, and what is known of it: its clock, its identity, what it still
//! has to be told.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{
    Action, BoxFuture, Error, ErrorKind, LockName, Moment, Reply, Request, Store, Timestamp,
};

use super::debts::Debts;
use super::epoch::Reading;
use crate::clock::Clock;

/// What a quorum asks of a server beyond what every [`Store`] does.
pub(in crate::stores) trait Server: Send + Sync + fmt::Debug {
    /// What tells this server from every other, for as long as it runs; `None` if it does not say.
    fn identity(&self) -> BoxFuture<'_, Result<Option<String>, Error>>;

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
    calls: AtomicUsize,
    /// Whether somebody is getting to know it.
    meeting: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    reading: Option<Reading>,
    franchise: Franchise,
}

/// Whether a member may give new votes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Franchise {
    /// Nobody knows yet which server this is: it might be one that votes already.
    #[default]
    Unknown,
    /// It may; this is its identity, if it has one.
    Votes(Option<String>),
    /// It is the same server as the member with this label.
    Duplicate(String),
}

/// What a member answered, and when it was asked.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) sent: Moment,
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
            calls: AtomicUsize::new(0),
            meeting: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    /// Asks; always answers one result per request, and takes as long as the store's own time-out.
    pub(super) async fn ask(self: Arc<Self>, sent: Moment, batch: Vec<Request>) -> Answer {
        let Some(_call) = Call::begin(&self) else {
            let replies = batch.iter().map(|_| Err(overdue(&self.label)));
            return Answer {
                sent,
                replies: replies.collect(),
            };
        };
        let mut replies = self.store.apply(&batch).await;
        if replies.len() != batch.len() {
            replies = batch.iter().map(|_| Err(miscounted())).collect();
        }
        if let Some(reply) = replies.iter().flatten().next() {
            self.read(Reading {
                sent,
                now: reply.now,
            });
        }
        let lost = |error: &Error| error.kind() == ErrorKind::Unavailable;
        if replies.iter().any(|reply| reply.as_ref().is_err_and(lost)) && self.server.is_some() {
            // It may be another server behind the same address when it comes back.
            self.doubt();
        }
        Answer { sent, replies }
    }

    /// Learns who it is and what its clock shows.
    pub(super) async fn introduce(self: Arc<Self>) -> Result<Option<String>, Error> {
        let identity = match &self.server {
            Some(server) => server.identity().await?,
            None => None,
        };
        let name = LockName::new("hello")?;
        let sent = self.clock.now();
        let mut replies = self.store.apply(&[Action::Inspect.on(name)]).await;
        let reply = replies.pop().unwrap_or_else(|| Err(miscounted()))?;
        self.read(Reading {
            sent,
            now: reply.now,
        });
        Ok(identity)
    }

    /// What its clock shows at `moment`, as far as that is known.
    pub(super) fn clock_at(&self, moment: Moment) -> Option<Timestamp> {
        let reading = self.known().reading?;
        Some(reading.at(moment))
    }

    pub(super) fn franchise(&self) -> Franchise {
        self.known().franchise.clone()
    }

    pub(super) fn votes(&self) -> bool {
        matches!(self.known().franchise, Franchise::Votes(_))
    }

    pub(super) fn enfranchise(&self, franchise: Franchise) {
        self.known().franchise = franchise;
    }

    /// Whether nobody else is getting to know it now.
    pub(super) fn begin_meeting(&self) -> bool {
        !self.meeting.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end_meeting(&self) {
        self.meeting.store(false, Ordering::Release);
    }

    fn doubt(&self) {
        let mut known = self.known();
        if matches!(known.franchise, Franchise::Votes(_)) {
            known.franchise = Franchise::Unknown;
        }
    }

    fn read(&self, reading: Reading) {
        let mut known = self.known();
        if known.reading.is_none_or(|old| old.sent <= reading.sent) {
            known.reading = Some(reading);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the calls that are under way.
struct Call<'a>(&'a Member);

impl<'a> Call<'a> {
    fn begin(member: &'a Member) -> Option<Self> {
        let free = |calls: usize| (calls < CALLS).then_some(calls + 1);
        let counted = member
            .calls
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, free);
        // Made only if it was counted: dropping it counts it off.
        counted.is_ok().then(|| Self(member))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
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
