//! The judgement on one play: which harm was done. Pure, so that it can be shown to find what it is
//! there for.

use std::collections::BTreeSet;
use std::fmt;

use super::{Belief, Event, What, beliefs};

/// What can come of a bad lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Harm {
    /// Two believed at the same time that they hold it, and not both as readers.
    TwoHolders,
    /// The resource took the write of an old holder after that of a newer one.
    StaleWrite,
    /// Somebody waited in vain for a lock that nobody alive used.
    Stuck,
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoHolders => "two holders at once",
            Self::StaleWrite => "stale write accepted",
            Self::Stuck => "nobody gets in",
        })
    }
}

/// Every harm that these events show. `events` are in order of time.
pub(crate) fn judge(events: &[Event]) -> BTreeSet<Harm> {
    let beliefs = beliefs(events);
    let found = [
        (Harm::TwoHolders, overlaps(&beliefs).next().is_some()),
        (Harm::StaleWrite, has_stale_write(events, &beliefs)),
        (
            Harm::Stuck,
            events.iter().any(|event| event.what == What::GaveUp),
        ),
    ];
    found
        .into_iter()
        .filter(|(_, is_so)| *is_so)
        .map(|(harm, _)| harm)
        .collect()
}

/// The times during which two incompatible beliefs overlap.
pub(crate) fn overlaps(beliefs: &[Belief]) -> impl Iterator<Item = (u64, u64)> {
    beliefs.iter().enumerate().flat_map(move |(index, first)| {
        beliefs[index + 1..].iter().filter_map(move |second| {
            let (from, to) = (first.from.max(second.from), first.to.min(second.to));
            let excluded = first.who != second.who && !(first.shared && second.shared);
            (excluded && from < to).then_some((from, to))
        })
    })
}

/// A write that was accepted after one by somebody who got the lock later than the writer did.
fn has_stale_write(events: &[Event], beliefs: &[Belief]) -> bool {
    let mut newest = 0;
    for event in events {
        let What::Wrote { accepted: true, .. } = event.what else {
            continue;
        };
        let got = beliefs
            .iter()
            .filter(|belief| belief.who == event.who && belief.from <= event.at);
        let Some(got) = got.map(|belief| belief.from).max() else {
            continue;
        };
        if got < newest {
            return true;
        }
        newest = got;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, who: &str, what: What) -> Event {
        let who = who.to_owned();
        Event { at, who, what }
    }

    fn holds(until: Option<u64>) -> What {
        What::Holds {
            shared: false,
            until,
            fence: None,
        }
    }

    fn wrote() -> What {
        What::Wrote {
            accepted: true,
            fence: None,
        }
    }

    #[test]
    fn two_who_believe_at_once_are_found_and_readers_are_not() {
        let mut events = vec![
            event(1, "Anna", holds(None)),
            event(2, "Ben", holds(None)),
            event(3, "Anna", What::Released),
        ];
        assert_eq!(judge(&events), BTreeSet::from([Harm::TwoHolders]));
        for event in &mut events {
            if let What::Holds { shared, .. } = &mut event.what {
                *shared = true;
            }
        }
        assert_eq!(judge(&events), BTreeSet::new());
    }

    #[test]
    fn a_belief_that_ends_by_itself_harms_nobody() {
        let events = [
            event(1, "Anna", holds(Some(4))),
            event(2, "Anna", What::Extended { until: 6 }),
            event(6, "Ben", holds(None)),
            event(9, "Anna", What::Lost { why: String::new() }),
        ];
        assert_eq!(judge(&events), BTreeSet::new());
        let mut late = events.to_vec();
        late[2].at = 5;
        assert_eq!(judge(&late), BTreeSet::from([Harm::TwoHolders]));
    }

    #[test]
    fn the_write_of_an_old_holder_counts_only_after_that_of_a_newer_one() {
        let mut events = vec![
            event(1, "Anna", holds(Some(2))),
            event(3, "Ben", holds(Some(9))),
            event(4, "Anna", wrote()),
            event(5, "Ben", wrote()),
        ];
        assert_eq!(judge(&events), BTreeSet::new());
        events.push(event(6, "Anna", wrote()));
        assert_eq!(judge(&events), BTreeSet::from([Harm::StaleWrite]));
        events[4].what = What::Wrote {
            accepted: false,
            fence: None,
        };
        assert_eq!(judge(&events), BTreeSet::new());
    }

    #[test]
    fn who_waits_in_vain_is_stuck() {
        assert_eq!(
            judge(&[event(1, "Ben", What::GaveUp)]),
            BTreeSet::from([Harm::Stuck])
        );
    }
}
