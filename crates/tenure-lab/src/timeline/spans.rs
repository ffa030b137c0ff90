//! From single events to spans of time: who believed when, and who really held when.

use super::{Event, What};

/// One time during which somebody believed to hold the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belief {
    pub(crate) who: String,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) shared: bool,
    pub(crate) fence: Option<u64>,
}

/// All times during which somebody believed, in order of their beginning. `events` are in order.
pub(crate) fn beliefs(events: &[Event]) -> Vec<Belief> {
    let end = events.last().map_or(0, |event| event.at);
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let What::Holds {
            shared,
            until,
            fence,
        } = event.what
        else {
            continue;
        };
        let later = events[index + 1..]
            .iter()
            .filter(|later| later.who == event.who);
        found.push(Belief {
            who: event.who.clone(),
            from: event.at,
            to: belief_end(until, later).min(end).max(event.at),
            shared,
            fence,
        });
    }
    found
}

fn belief_end<'a>(mut until: Option<u64>, later: impl Iterator<Item = &'a Event>) -> u64 {
    for event in later {
        match event.what {
            What::Extended { until: longer } => until = Some(longer),
            What::Released | What::Lost { .. } | What::Killed | What::Holds { .. } => {
                return until.unwrap_or(u64::MAX).min(event.at);
            }
            _ => {}
        }
    }
    until.unwrap_or(u64::MAX)
}

/// When the store said that somebody held the lock: who, from, to.
pub(crate) fn truths(events: &[Event]) -> Vec<(String, u64, u64)> {
    let end = events.last().map_or(0, |event| event.at);
    let looks: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::Holder { names } => Some((event.at, names)),
            _ => None,
        })
        .collect();
    let mut found: Vec<(String, u64, u64)> = Vec::new();
    for (index, (from, names)) in looks.iter().enumerate() {
        let to = looks.get(index + 1).map_or(end, |next| next.0);
        for name in names.iter() {
            // One that goes on is one span, whatever others do meanwhile.
            let goes_on = |(who, _, end): &&mut (String, u64, u64)| who == name && *end == *from;
            match found.iter_mut().rev().find(goes_on) {
                Some((_, _, end)) => *end = to,
                None => found.push((name.clone(), *from, to)),
            }
        }
    }
    found
}

/// From when to when each worker lived, in order of appearance.
pub(crate) fn lifetimes(events: &[Event]) -> Vec<(String, u64, u64)> {
    let end = events.last().map_or(0, |event| event.at);
    let births = events.iter().filter(|event| event.what == What::Ready);
    let life = |birth: &Event| {
        let died = events
            .iter()
            .find(|event| event.who == birth.who && event.what == What::Killed);
        (
            birth.who.clone(),
            birth.at,
            died.map_or(end, |event| event.at),
        )
    };
    births.map(life).collect()
}
