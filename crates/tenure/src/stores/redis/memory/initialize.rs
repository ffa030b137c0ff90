//! What `tenure doctor --init` does: a person says that a server is new, so that nobody has to wait.
//! Where something speaks against that, it is said, and nothing is done.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tenure_core::{Cause, Error, ErrorKind, Recovery};

use super::super::connection::Link;
use super::super::errors::Failure;
use super::super::sentinel::Epoch;
use super::judge::{greeting, new_life};
use super::look::{Look, look};
use super::meet::{self, TRIES, interference};
use super::record::Beginning;
use super::settle::settle;
use super::take_back::take_back;
use super::{AT_ONCE, Part};
use crate::initialize::{Assurance, Initialized};

/// What was found at a server, or at a node of a cluster.
#[derive(Debug)]
pub(in crate::stores) struct Examined {
    /// What lets nobody in, as it was seen.
    pub(super) closed: Vec<(Part, Look)>,
    /// Whether something of it lets people in.
    pub(in super::super) is_in_use: bool,
    /// What speaks against its being new.
    pub(in crate::stores) against: Option<String>,
    /// That whoever held a lock before it was started may not have come back yet.
    pub(in crate::stores) young: Option<String>,
}

impl Examined {
    /// Whether everything is open.
    pub(in crate::stores) fn is_open(&self) -> bool {
        self.closed.is_empty()
    }

    /// The same, with this as a further reason against opening it.
    pub(in super::super) fn unless(mut self, why: Option<String>) -> Self {
        self.against = self.against.or(why.filter(|_| !self.closed.is_empty()));
        self
    }
}

/// Opens all of these servers, or none, and says what became of each. `examine` looks at all of them;
/// `refusal` says why none is to be opened, to those of which nothing else does, at the first look or later.
///
/// What is opened is what was looked at: whatever changes in between is looked at again. If something
/// speaks against it only then, what had been opened is closed again.
///
/// # Errors
/// Whatever keeps us from it.
pub(in super::super) async fn open_together<'a>(
    links: &[&'a Link],
    assurance: Assurance,
    examine: impl Fn() -> BoxFuture<'a, Result<Vec<Examined>, Error>>,
    refusal: impl Fn(&[Examined], First) -> Option<String>,
) -> Result<Vec<Initialized>, Error> {
    let mut found: Option<Vec<Examined>> = None;
    for _ in 0..TRIES {
        let now = match examine().await {
            Ok(now) => now,
            Err(error) => {
                // All are opened or none, also if one of them cannot be looked at any more.
                if assurance == Assurance::New {
                    take_back(links, found.as_deref().unwrap_or_default()).await?;
                }
                return Err(error);
            }
        };
        let first = First(found.is_none());
        if let (Assurance::New, Some(why)) = (assurance, refusal(&now, first)) {
            take_back(links, found.as_deref().unwrap_or_default()).await?;
            let before = found.as_ref().unwrap_or(&now);
            let refused = |(now, before): (&Examined, &Examined)| match before.is_open() {
                true => Initialized::WasOpen,
                false => Initialized::Refused(now.against.as_ref().unwrap_or(&why).clone()),
            };
            return Ok(now.iter().zip(before).map(refused).collect());
        }
        let opened = Box::pin(open_all(links, &now)).await;
        let found = found.get_or_insert(now);
        match opened {
            Ok(true) => {
                let outcome = |found: &Examined| match found.is_open() {
                    true => Initialized::WasOpen,
                    false => Initialized::Opened,
                };
                return Ok(found.iter().map(outcome).collect());
            }
            Ok(false) => {}
            Err(error) => {
                if assurance == Assurance::New {
                    take_back(links, found).await?;
                }
                return Err(error);
            }
        }
    }
    Err(interference().error())
}

/// Whether nothing was opened yet.
#[derive(Clone, Copy, Debug)]
pub(in crate::stores) struct First(pub(in crate::stores) bool);

/// Looks at these parts of one server.
///
/// # Errors
/// Whatever keeps us from looking.
pub(in super::super) async fn examine(link: &Link, parts: &[Part]) -> Result<Examined, Failure> {
    if link.options.caution.recovery == Recovery::Off {
        return Err(Failure::new(
            ErrorKind::Configuration,
            "with recovery=off nothing is recorded, and a server that forgot lets everybody in anyway",
        ));
    }
    let mut closed = Vec::new();
    for parts in parts.chunks(AT_ONCE) {
        let deadline = link.deadline();
        let live = link.live(deadline).await?;
        // Whoever says hello first writes down what speaks for something having been there.
        for met in Box::pin(meet::meet(link, &live, parts, deadline)).await {
            met?;
        }
        let looks = look(link, &live, parts, deadline).await?;
        let looks = looks.ok_or_else(|| hidden(link, parts[0]))?;
        for (part, look) in parts.iter().zip(looks) {
            let look = look?;
            if !is_open(&look) {
                closed.push((*part, look));
            }
        }
    }
    let against = closed
        .iter()
        .find_map(|(_, look)| trace(look).or_else(|| replaced(link, look)));
    Ok(Examined {
        is_in_use: closed.len() < parts.len(),
        against: against.map(str::to_owned),
        young: closed.iter().find_map(|(_, look)| youth(look)),
        closed,
    })
}

async fn open_all(links: &[&Link], examined: &[Examined]) -> Result<bool, Error> {
    let mut all = true;
    for (link, examined) in links.iter().zip(examined) {
        let failed = |failure: Failure| failure.at(&link.options.address).error();
        all &= open(link, examined).await.map_err(failed)?;
    }
    Ok(all)
}

/// Opens what was closed, if everything is still as it was seen; `false` if not.
async fn open(link: &Link, examined: &Examined) -> Result<bool, Failure> {
    let mut begun = 0;
    for closed in examined.closed.chunks(AT_ONCE) {
        let opening = |(part, look): &(Part, Look)| {
            let beginning = beginning(link, *part, look, Duration::ZERO, Cause::Vouched)?;
            Ok((*part, look.clone(), beginning))
        };
        let begins = closed.iter().map(opening).collect::<Result<Vec<_>, _>>()?;
        let deadline = link.deadline();
        let live = link.live(deadline).await?;
        begun += settle(link, &live, &begins, deadline).await?;
    }
    Ok(begun == examined.closed.len())
}

/// What is written down where a person has spoken.
pub(super) fn beginning(
    link: &Link,
    part: Part,
    look: &Look,
    wait: Duration,
    cause: Cause,
) -> Result<Beginning, Failure> {
    let greeting = greeting(link, part, &look.seen.run);
    Ok(Beginning {
        life: new_life()?,
        wait,
        cause,
        max_ttl: greeting.max_ttl,
        durable: look.seen.keeps_everything(&greeting),
        earlier: Vec::new(),
    })
}

fn is_open(look: &Look) -> bool {
    let record = look.record.as_ref();
    record.is_some_and(|record| record.is_of(&look.seen) && record.phase(look.now).is_open())
}

/// That another server was the primary before: that this one is new says nothing about the locks of the service.
fn replaced(link: &Link, look: &Look) -> Option<&'static str> {
    link.sentinels.as_ref()?;
    let place = look.place.as_ref().ok()?.as_deref()?;
    let before = Epoch::parse(place).is_some_and(|epoch| !epoch.is_first());
    before.then_some(
        "its sentinels have replaced the primary of this service before (their config-epoch is not 0): whoever held a \
         lock on another server may hold it still",
    )
}

/// What speaks against its being new, of the record.
fn trace(look: &Look) -> Option<&'static str> {
    match &look.record {
        // We had said hello: somebody has taken it away since.
        None => evidence(Cause::Missed),
        Some(record) if !record.is_of(&look.seen) => evidence(Cause::Restarted),
        Some(record) => evidence(record.cause),
    }
}

fn evidence(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::Unknown | Cause::Vouched => None,
        Cause::Restarted => {
            Some("it has restarted since it was last used, and may have forgotten locks")
        }
        Cause::TookOver => Some(
            "it was a replica, was replaced for a while, or had a replica when it last stopped (which looks the \
             same): another server may have granted locks that never reached it",
        ),
        Cause::Wiped => Some(
            "data was wiped there (FLUSHALL, FLUSHDB, SWAPDB or evicted keys), and locks may have been among it",
        ),
        Cause::Missed => {
            Some("a client that had used it before found its record gone, so it has lost its data")
        }
    }
}

fn youth(look: &Look) -> Option<String> {
    let max_ttl = look.record.as_ref()?.max_ttl;
    let left = look.seen.until_earlier_leases_end(max_ttl);
    (!left.is_zero()).then(|| {
        format!(
            "it was started {} s ago. If that was a restart, whoever held a lock there before may still come \
             back for {} s: say it again then. If it is the first start of this server, nobody \
             holds anything, and you may say so now (--nothing-is-held)",
            look.seen.age.as_secs(),
            left.as_secs().max(1),
        )
    })
}

pub(super) fn hidden(link: &Link, part: Part) -> Failure {
    let key = link.options.keys.record(part);
    Failure::new(
        ErrorKind::Forbidden,
        format!(
            "this user may not call INFO, so whose record {key} is cannot be said: allow +info"
        ),
    )
}
