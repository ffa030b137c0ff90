//! [`Picture`]: one play as rows of bars and marks, before it is drawn. Times are in nanoseconds from its
//! beginning.

use std::collections::BTreeSet;

use super::words;
use crate::timeline::{Belief, Event, What, beliefs, lifetimes, overlaps, truths};

/// A look at the store may be as late as this, in nanoseconds.
const LATE: u64 = 60_000_000;

/// One play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) length: u64,
    pub(super) rows: Vec<Row>,
    /// What is worth saying, in order; its number is its place, counted from one.
    pub(super) remarks: Vec<Remark>,
    /// When two believed that they hold it, and should not have.
    pub(super) overlaps: Vec<Span>,
    /// Everything that happened, in words.
    pub(super) account: Vec<(u64, String)>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) life: Span,
    pub(super) beliefs: Vec<Hold>,
    /// When it held the lock according to the store.
    pub(super) truths: Vec<Span>,
    pub(super) waits: Vec<Span>,
    pub(super) pauses: Vec<Span>,
    pub(super) marks: Vec<(u64, Mark)>,
}

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// When it believed that it holds the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) span: Span,
    pub(super) shared: bool,
    /// Which fence it had, counted from one in this play.
    pub(super) fence: Option<usize>,
}

/// What happens in a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Accepted,
    Refused,
    Declined,
    Killed,
    Busy,
    GaveUp,
    Lost,
    Unwilling,
}

/// Something worth saying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remark {
    pub(super) at: u64,
    pub(super) text: String,
    /// Something that was done to them, and not what they did.
    pub(super) is_fault: bool,
}

impl Span {
    pub(super) fn contains(self, at: u64) -> bool {
        (self.from..self.to).contains(&at)
    }
}

impl Picture {
    /// `events` are in order of time.
    pub(super) fn of(events: &[Event]) -> Self {
        let is_start = |event: &&Event| !matches!(event.what, What::Ready | What::Holder { .. });
        let start = events.iter().find(is_start).map_or(0, |event| event.at);
        let end = events.last().map_or(0, |event| event.at).max(start);
        // A little room on both sides, so that nothing sticks to the edge.
        let room = (end - start) / 40 + 1;
        let start = start.saturating_sub(room);
        let clip = |from: u64, to: u64| Span {
            from: from.max(start) - start,
            to: to.max(start) - start,
        };
        let fences = fences(events);
        let believed = beliefs(events);
        let lives = lifetimes(events);
        let row = |(name, from, to): &(String, u64, u64)| Row {
            name: name.clone(),
            life: clip(*from, if *to == end { end + room } else { *to }),
            beliefs: believed
                .iter()
                .filter(|belief| belief.who == *name)
                .map(|belief| Hold {
                    span: clip(belief.from, belief.to),
                    shared: belief.shared,
                    fence: belief.fence.and_then(|fence| rank(&fences, fence)),
                })
                .collect(),
            truths: truths(events)
                .iter()
                .filter(|(holder, ..)| holder == name)
                .map(|(_, from, to)| clip(granted(&believed, name, *from), *to))
                .collect(),
            waits: waits(events, name)
                .map(|(from, to)| clip(from, to))
                .collect(),
            pauses: pauses(events, name, end)
                .map(|(from, to)| clip(from, to))
                .collect(),
            marks: marks(events, name)
                .map(|(at, mark)| (at.max(start) - start, mark))
                .collect(),
        };
        let said = events.iter().filter_map(|event| {
            let text = words::of(event, |fence| rank(&fences, fence))?;
            Some((event, event.at.max(start) - start, text))
        });
        Self {
            length: end + room - start,
            rows: lives.iter().map(row).collect(),
            overlaps: overlaps(&believed)
                .map(|(from, to)| clip(from, to))
                .collect(),
            remarks: said
                .clone()
                .filter(|(event, ..)| words::is_remarkable(&event.what))
                .map(|(event, at, text)| Remark {
                    at,
                    text,
                    is_fault: words::is_fault(&event.what),
                })
                .collect(),
            account: said.map(|(_, at, text)| (at, text)).collect(),
        }
    }
}

fn fences(events: &[Event]) -> BTreeSet<u64> {
    let fence = |event: &Event| match event.what {
        What::Holds { fence, .. } => fence,
        _ => None,
    };
    events.iter().filter_map(fence).collect()
}

fn rank(fences: &BTreeSet<u64>, fence: u64) -> Option<usize> {
    fences
        .iter()
        .position(|known| *known == fence)
        .map(|place| place + 1)
}

/// The store is looked at a hundred times a second, so a grant is seen a little late; it was there when
/// its holder began to believe.
fn granted(believed: &[Belief], name: &str, seen: u64) -> u64 {
    let own = believed.iter().filter(|belief| belief.who == name);
    let begun = own
        .map(|belief| belief.from)
        .filter(|from| *from < seen)
        .max();
    begun.filter(|from| seen - from < LATE).unwrap_or(seen)
}

/// From asking for the lock to an answer.
fn waits<'a>(events: &'a [Event], name: &'a str) -> impl Iterator<Item = (u64, u64)> + 'a {
    let own: Vec<_> = events.iter().filter(|event| event.who == name).collect();
    let mut found = Vec::new();
    for (index, event) in own.iter().enumerate() {
        let is_answer = |later: &&&Event| {
            matches!(
                later.what,
                What::Holds { .. }
                    | What::Busy
                    | What::GaveUp
                    | What::Killed
                    | What::Unwilling { .. }
            )
        };
        if event.what == What::Wants
            && let Some(answer) = own[index..].iter().find(is_answer)
        {
            found.push((event.at, answer.at));
        }
    }
    found.into_iter()
}

fn pauses<'a>(
    events: &'a [Event],
    name: &'a str,
    end: u64,
) -> impl Iterator<Item = (u64, u64)> + 'a {
    let own = move |event: &&Event| event.who == name;
    events
        .iter()
        .filter(own)
        .filter(|event| event.what == What::Paused)
        .map(move |paused| {
            let goes_on = |later: &&Event| later.at > paused.at && later.what == What::Resumed;
            let resumed = events.iter().filter(own).find(goes_on);
            (paused.at, resumed.map_or(end, |event| event.at))
        })
}

fn marks<'a>(events: &'a [Event], name: &'a str) -> impl Iterator<Item = (u64, Mark)> + 'a {
    events
        .iter()
        .filter(move |event| event.who == name)
        .filter_map(|event| {
            let mark = match event.what {
                What::Wrote { accepted: true, .. } => Mark::Accepted,
                What::Wrote {
                    accepted: false, ..
                } => Mark::Refused,
                What::Declined { .. } => Mark::Declined,
                What::Killed => Mark::Killed,
                What::Busy => Mark::Busy,
                What::GaveUp => Mark::GaveUp,
                What::Lost { .. } => Mark::Lost,
                What::Unwilling { .. } => Mark::Unwilling,
                _ => return None,
            };
            Some((event.at, mark))
        })
}
