//! One slot of a node was found to have forgotten, or may have: most likely its neighbours have, too. They
//! begin to wait now and not when somebody first asks for them.

use tenure_core::{Moment, Record, Timestamp};

use super::super::connection::{Link, Live};
use super::super::errors::Failure;
use super::judge::{Judged, judge};
use super::look::look;
use super::settle::settle;
use super::{AT_ONCE, Part};

/// Goes through the slots of the node in the background, from this one on, until there are some that
/// remember: somebody else has been there.
pub(super) fn begin(link: &Link, slot: u16) {
    let me = link.me.clone();
    tokio::spawn(async move {
        let Some(link) = me.upgrade() else { return };
        let mut parts = parts_of(&link);
        let first = parts.partition_point(|it| *it < Some(slot));
        parts.rotate_left(first);
        for parts in parts.chunks(AT_ONCE) {
            let deadline = link.deadline();
            let Ok(live) = link.live(deadline).await else {
                return;
            };
            // What fails here is noticed again by whoever asks for it.
            if !matches!(sweep(&link, &live, parts, deadline).await, Ok(1..)) {
                return;
            }
        }
    });
}

/// Begins the lives of these parts that have to; answers how many.
///
/// # Errors
/// If the server cannot be asked.
pub(super) async fn sweep(
    link: &Link,
    live: &Live,
    parts: &[Part],
    deadline: Moment,
) -> Result<usize, Failure> {
    let Some(looks) = look(link, live, parts, deadline).await? else {
        return Ok(0);
    };
    let looked = parts.iter().zip(looks);
    let begins = looked.filter_map(|(part, look)| match judge(link, *part, look.ok()?).ok()? {
        Judged::Begins(look, beginning) => Some((*part, *look, beginning)),
        Judged::Met(_) => None,
    });
    let begins: Vec<_> = begins.collect();
    settle(link, live, &begins, deadline).await
}

/// The records of all slots of a node; a slot without a record has none.
pub(in super::super) struct Survey {
    /// The node's clock.
    pub(in super::super) now: Timestamp,
    /// By slot, those that say who wrote them. `false`: somebody else did.
    pub(in super::super) records: Vec<(u16, Record, bool)>,
    pub(in super::super) slots: usize,
}

impl Survey {
    /// Those that let nobody in, also because nobody has said hello yet.
    pub(in super::super) fn closed(&self) -> impl Iterator<Item = &Record> {
        let closed =
            |(_, record, its): &&(u16, Record, bool)| !its || !record.phase(self.now).is_open();
        self.records
            .iter()
            .filter(closed)
            .map(|(_, record, _)| record)
    }
}

/// Looks at all slots of the node at the other end of `link`, without those that are elsewhere by now; `None` if it
/// does not tell who it is.
///
/// # Errors
/// If it cannot be asked, or does not serve them.
pub(in super::super) async fn survey(link: &Link) -> Result<Option<Survey>, Failure> {
    let mut survey = Survey {
        now: Timestamp::from_micros(0),
        records: Vec::new(),
        slots: 0,
    };
    for parts in parts_of(link).chunks(AT_ONCE) {
        let deadline = link.deadline();
        let live = link.live(deadline).await?;
        let Some(looks) = look(link, &live, parts, deadline).await? else {
            return Ok(None);
        };
        for (part, look) in parts.iter().zip(looks) {
            let look = match look {
                Ok(look) => look,
                Err(failure) if failure.is_elsewhere() => continue,
                Err(failure) => return Err(failure),
            };
            let Some(slot) = part else { continue };
            survey.now = look.now;
            survey.slots += 1;
            let its = |record: &Record| record.is_of(&look.seen);
            let record = look.record.map(|record| (*slot, its(&record), record));
            survey
                .records
                .extend(record.map(|(slot, its, record)| (slot, record, its)));
        }
    }
    Ok(Some(survey))
}

/// The slots of a node.
pub(in super::super) fn parts_of(link: &Link) -> Vec<Part> {
    let member = link.options.keys.member();
    let slots = member.map_or_else(Vec::new, |member| member.slots.of(member.node));
    slots.into_iter().map(Some).collect()
}
