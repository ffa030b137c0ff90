#![doc = include_str!("docs.md")]

mod afterwards;
mod agreement;
mod attendance;
mod debts;
mod diagnose;
mod electorate;
mod epoch;
mod failures;
mod fan_out;
mod guarantees;
mod holds;
#[cfg(feature = "redis")]
mod initialize;
mod keep;
mod listing;
mod look;
mod meet;
mod member;
mod mending;
#[cfg(test)]
mod model;
#[cfg(feature = "redis")]
mod options;
mod question;
mod rings;
mod rivals;
mod round;
#[cfg(feature = "redis")]
mod servers;
mod settle;
mod spent;
mod take;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_core::{
    Acquire, BoxFuture, Error, ErrorKind, Fence, Finding, Guarantees, Inbox, Listener, Listing,
    LockName, Moment, Recovering, Reply, Request, Shard, Spelled, Store, Timestamp,
};
use tokio::runtime::Handle;

use crate::clock::Clock;
use electorate::Electorate;
use epoch::Epoch;
use holds::Holds;
use member::Member;
use rings::Rings;
use spent::Spent;

pub use guarantees::{MAJORITY, UNANIMOUS};

/// A lock on several stores: whoever has the votes of so many that nobody else can have as many holds
/// it. See the [module](self) for what that promises and what breaks it.
#[derive(Debug)]
pub struct QuorumStore {
    shared: Arc<Shared>,
}

/// How many of the stores have to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// More than half: Redlock.
    Majority,
    /// All of them to take a lock, any of them to keep it: write-all.
    All,
}

/// How a quorum is used.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many have to agree.
    pub rule: Rule,
    /// How long one of the stores is waited for.
    pub node_timeout: Duration,
}

impl Settings {
    /// How long one of the stores is waited for unless something else is said.
    pub const NODE_TIMEOUT: Duration = Duration::from_millis(50);
    /// How long one of the stores may be waited for at most: a call to all of them, with a second question and
    /// what is taken back, has to end before whoever asked gives it up.
    pub const LONGEST_NODE_TIMEOUT: Duration = Duration::from_secs(1);

    /// This rule, and otherwise what is usual.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self {
            rule,
            node_timeout: Self::NODE_TIMEOUT,
        }
    }
}

impl QuorumStore {
    /// A quorum of these stores, each with a label for people. They must be independent of each
    /// other: nothing here can tell whether two of them are the same.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for fewer than three (under [`Rule::All`] two) or outside a tokio
    /// runtime; whatever keeps so many from answering that no lock could be kept.
    pub async fn connect(
        stores: Vec<(String, Arc<dyn Store>)>,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let members = stores
            .into_iter()
            .map(|(label, store)| Member::new(label, store, None, clock.clone()));
        Self::of(members.collect(), settings, clock).await
    }

    async fn of(
        members: Vec<Member>,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let count = members.len();
        let electorate = match settings.rule {
            Rule::Majority if count < 3 => return Err(too_few(count, 3)),
            Rule::All if count < 2 => return Err(too_few(count, 2)),
            Rule::Majority => Electorate::majority(count),
            Rule::All => Electorate::unanimous(count),
        };
        if settings.node_timeout > Settings::LONGEST_NODE_TIMEOUT {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "a node_timeout of {} is too long: choose {} at most",
                    Spelled(settings.node_timeout),
                    Spelled(Settings::LONGEST_NODE_TIMEOUT)
                ),
            ));
        }
        let runtime = Handle::try_current().map_err(|cause| {
            Error::new(ErrorKind::Configuration, "a quorum needs a tokio runtime").because(cause)
        })?;
        let members: Vec<_> = members.into_iter().map(Arc::new).collect();
        let epoch = meet::everybody(&members, electorate, &settings, &clock).await?;
        let shared = Shared {
            rings: Rings::new(clock.clone(), runtime.clone()),
            members,
            electorate,
            rule: settings.rule,
            node_timeout: settings.node_timeout,
            epoch,
            clock,
            runtime,
            holds: Holds::default(),
            spent: Spent::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}

impl Store for QuorumStore {
    fn guarantees(&self) -> Guarantees {
        match self.shared.rule {
            Rule::Majority => MAJORITY,
            Rule::All => UNANIMOUS,
        }
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(round::apply(&self.shared, batch))
    }

    fn shard(&self, _name: &LockName) -> Shard {
        Shard::WHOLE
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        Box::pin(listing::list(&self.shared, prefix))
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(meet::listen(&self.shared, inbox, listener))
    }

    fn recovering<'a>(
        &'a self,
        name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        Box::pin(diagnose::recovering(&self.shared, name))
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        Box::pin(diagnose::diagnose(&self.shared))
    }
}

/// What the store and its background tasks share.
#[derive(Debug)]
struct Shared {
    members: Vec<Arc<Member>>,
    electorate: Electorate,
    rule: Rule,
    node_timeout: Duration,
    epoch: Epoch,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    holds: Holds,
    spent: Spent,
    rings: Rings,
}

/// How much longer than it is waited for a request may be under way, and be carried out.
const ADRIFT: Duration = Duration::from_millis(500);
/// How long a clock is known from one reading: rates differ by up to 0.1 %, and this much of that is less than the clocks of
/// servers may be apart.
const CLOCK_READ: Duration = Duration::from_secs(300);

impl Shared {
    /// How long after it was sent a request for a vote may be carried out.
    fn adrift(&self) -> Duration {
        self.node_timeout + ADRIFT
    }

    /// The same for the most patient client: how much later than the first an end that is reported has reached enough members.
    fn longest_adrift() -> Duration {
        Settings::LONGEST_NODE_TIMEOUT + ADRIFT
    }

    /// The fence to propose: the time by the clocks of all members, where none that is far off counts. One that was not read
    /// lately is carried on: without it, the lower of two that were read first would decide alone.
    fn proposal(&self, now: Moment) -> Fence {
        let clocks = self.members.iter();
        let clocks = clocks.filter_map(|member| member.clock_at(now));
        let median = agreement::median(clocks.map(Timestamp::as_micros).collect());
        Fence::from_u64(median.unwrap_or(1))
    }

    /// Whether this can be asked of a quorum at all.
    fn check(&self, acquire: &Acquire) -> Result<(), Error> {
        question::offered(acquire.mode)?;
        if self.spent.contains(acquire.owner) {
            return Err(Error::new(
                ErrorKind::Protocol,
                "votes of this owner are still being taken back: ask as another one",
            ));
        }
        let ttl = acquire.ttl.duration();
        if self.node_timeout > ttl / 2 {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "a ttl of {} is too short for a node_timeout of {}: a round may take that \
                     long and must leave half of the ttl. Choose a ttl of at least {}, or a shorter \
                     node_timeout",
                    Spelled(ttl),
                    Spelled(self.node_timeout),
                    Spelled(in_tenths(self.node_timeout * 2))
                ),
            ));
        }
        Ok(())
    }
}

/// From a second on rounded up to a tenth, which is as exact as it is spelled: what is said to be enough is.
fn in_tenths(time: Duration) -> Duration {
    if time < Duration::from_secs(1) {
        return time;
    }
    let tenths = time.as_nanos().div_ceil(100_000_000);
    Duration::from_millis(100) * u32::try_from(tenths).unwrap_or(u32::MAX)
}

fn too_few(count: usize, least: usize) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!(
            "too few servers ({count}): with fewer than {least} nothing is gained over a single one. Name \
             {least} or more, or use one server with redis://"
        ),
    )
}
