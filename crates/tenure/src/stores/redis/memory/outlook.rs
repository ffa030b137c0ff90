//! What whoever says hello would find, for those who only look: nothing is written, and nothing begins.

use tenure_core::{ErrorKind, Phase, Record, Recovering, Recovery, Timestamp};

use super::super::connection::Link;
use super::super::errors::Failure;
use super::judge::{Judged, judge};
use super::look::{Look, look};
use super::meet::{Met, written};
use super::record::Beginning;
use super::{AT_ONCE, Part};

/// How a part of a server stands.
#[derive(Debug)]
pub(in super::super) struct Outlook {
    /// The record of its life, or what would be recorded if somebody said hello now.
    pub(in super::super) record: Record,
    pub(in super::super) basis: Basis,
    /// What the server's clock shows.
    pub(in super::super) now: Timestamp,
}

/// What the record of an [`Outlook`] is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Basis {
    /// Its life has begun, and goes on.
    Begun,
    /// It begins with the first who asks for a lock.
    Foreseen,
    /// Somebody has written it, perhaps to another start of the server, or to another server: this user may not see.
    Hearsay,
}

impl Outlook {
    /// For how long nobody is let in; `None` if it is open.
    pub(in super::super) fn recovering(&self) -> Option<Recovering> {
        let left = match self.record.phase(self.now) {
            Phase::Open { .. } => return None,
            Phase::Recovering { until } => until.since(self.now),
        };
        Some(match self.basis {
            Basis::Foreseen => Recovering::OnceAsked(left),
            Basis::Begun | Basis::Hearsay => Recovering::Left(left),
        })
    }

    fn of_beginning(look: &Look, beginning: Beginning) -> Self {
        let now = look.now;
        let began = std::iter::once(now).chain(beginning.earlier);
        Self {
            record: Record {
                life: beginning.life,
                run: look.seen.run.clone(),
                line: look.seen.line.clone(),
                until: now.plus(beginning.wait),
                max_ttl: beginning.max_ttl,
                durable: beginning.durable,
                cause: beginning.cause,
                began: began.take(tenure_core::LIVES_KEPT).collect(),
            },
            basis: Basis::Foreseen,
            now,
        }
    }
}

/// For how long any of these parts lets nobody in, because it may have forgotten something. Slots that have
/// moved meanwhile are left out.
///
/// # Errors
/// If they cannot be asked, none of them is there any more, or the server cannot know.
pub(in super::super) async fn recovering(
    link: &Link,
    parts: &[Part],
) -> Result<Option<Recovering>, Failure> {
    if link.options.caution.recovery == Recovery::Off {
        return Ok(None);
    }
    let (mut longest, mut moved) = (None, Vec::new());
    for parts in parts.chunks(AT_ONCE) {
        for outlook in outlooks(link, parts).await? {
            let left = match outlook {
                Ok(outlook) => outlook.and_then(|outlook| outlook.recovering()),
                Err(failure) if failure.is_elsewhere() => {
                    moved.push(failure);
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            longest = longest.max(left);
        }
    }
    match moved.pop() {
        Some(failure) if moved.len() + 1 == parts.len() => Err(failure),
        _ => Ok(longest),
    }
}

/// How these parts stand, each; `None` where there is no record and this user may not see whether there should be.
///
/// # Errors
/// If the server cannot be asked, or is a replica: that has the record of another server, and cannot know whether it
/// has everything.
pub(in super::super) async fn outlooks(
    link: &Link,
    parts: &[Part],
) -> Result<Vec<Result<Option<Outlook>, Failure>>, Failure> {
    let deadline = link.deadline();
    let live = link.live(deadline).await?;
    let Some(looks) = look(link, &live, parts, deadline).await? else {
        let now = super::super::listing::time(link).await?;
        let met = written(link, &live, parts, deadline).await.into_iter();
        let outlook = |met: Met| {
            Some(Outlook {
                record: met.record?,
                basis: Basis::Hearsay,
                now,
            })
        };
        return Ok(met.map(|met| Ok(met?.and_then(outlook))).collect());
    };
    let outlook = |(part, look): (&Part, Result<Look, Failure>)| {
        let look = look?;
        if look.is_replica {
            return Err(replica());
        }
        let now = look.now;
        Ok(match judge(link, *part, look)? {
            Judged::Met(met) => met.record.map(|record| Outlook {
                record,
                basis: Basis::Begun,
                now,
            }),
            Judged::Begins(look, beginning) => Some(Outlook::of_beginning(&look, beginning)),
        })
    };
    Ok(parts.iter().zip(looks).map(outlook).collect())
}

fn replica() -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        "this server is a replica, and whether it has all that its primary granted only that one knows",
    )
}
