//! [`Model`]: carries out one step with `decide`, in all ways that what is not known allows.

use tenure::Timestamp;
use tenure::core::{Decision, Inbox, Liveness, LockState, Outcome, Phase, decide_in};

use super::Asking;
use crate::history::Said;

/// What is known of the store beside what it was asked.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// It may report an earlier expiry than the one that it keeps.
    pub(super) shortens: bool,
    /// When processes were killed, if the store sees that: the moment before, and their inboxes.
    pub(super) deaths: Vec<(u64, Inbox)>,
    /// It said that it lets nobody in for a while, because it may have forgotten something before.
    pub(super) recovers: bool,
    /// Each fence is higher than those before.
    pub(super) fences_grow: bool,
}

/// What a store remembers of one lock, and until when, by its own clock, it lets nobody in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) state: LockState,
    pub(super) closed_until: u64,
}

/// How long a process may take to be gone after it was killed.
const DYING: u64 = 2_000_000_000;

/// Of more processes that wait, the rest is taken to be within reach.
const MOST_INBOXES: usize = 5;

impl Model {
    /// All that the step may lead to if it takes effect at `now` by the store's clock, `between` these
    /// moments by ours, and was answered as it was.
    pub(super) fn step(
        &self,
        before: &Memory,
        asking: &Asking,
        now: u64,
        between: (u64, u64),
    ) -> Vec<Memory> {
        let mut after: Vec<Memory> = Vec::new();
        for (phase, closed_until) in self.phases(before, asking, now) {
            for dead in self.deaths_seen(between) {
                for unreachable in guesses(&before.state) {
                    let guess = Guess {
                        unreachable: &unreachable,
                        dead: &dead,
                    };
                    let (state, now) = (before.state.clone(), Timestamp::from_micros(now));
                    let Decision { state, outcome, .. } =
                        decide_in(phase, state, &asking.action, now, &guess);
                    let memory = Memory {
                        state,
                        closed_until,
                    };
                    if self.is_answer(asking, &outcome) && !after.contains(&memory) {
                        after.push(memory);
                    }
                }
            }
        }
        after
    }

    /// Whether it may have let anybody in then, and until when it does not from then on.
    fn phases(&self, before: &Memory, asking: &Asking, now: u64) -> Vec<(Phase, u64)> {
        let closed_until = before.closed_until;
        let until = Timestamp::from_micros(closed_until.max(now + 1));
        let recovering = (Phase::Recovering { until }, closed_until);
        let moment = Timestamp::from_micros(now);
        let since = Timestamp::from_micros(closed_until);
        let open = (Phase::Open { since }, closed_until);
        let told = match asking.said {
            Some((_, Said::Queued { recovering } | Said::Busy { recovering })) => Some(recovering),
            _ => None,
        };
        match told {
            // What it named last counts: a restart may move it, also to an earlier time, since from
            // any moment on nobody relies on what was forgotten for longer than the longest lease.
            Some(Some(until)) => vec![(recovering.0, until)],
            _ if now < closed_until => match told {
                Some(None) => Vec::new(),
                _ => vec![recovering],
            },
            None if self.recovers => {
                // It may have been closed meanwhile without telling anybody of these.
                let just_now = Phase::Open { since: moment };
                vec![open, (just_now, closed_until), recovering]
            }
            _ => vec![open],
        }
    }

    /// Whose deaths the store may have seen: those that must have been over, and perhaps those that
    /// were not.
    fn deaths_seen(&self, (from, to): (u64, u64)) -> Vec<Vec<Inbox>> {
        let before = |moment: u64| {
            let dead = self.deaths.iter().filter(|(at, _)| *at < moment);
            dead.map(|(_, inbox)| inbox.clone()).collect::<Vec<_>>()
        };
        let moments = [to, from, from.saturating_sub(DYING)];
        let mut guesses = moments.map(before).to_vec();
        guesses.dedup();
        guesses
    }

    /// Whether this is what was answered; what was not answered may be anything.
    fn is_answer(&self, asking: &Asking, outcome: &Outcome) -> bool {
        let Some((_, said)) = &asking.said else {
            return true;
        };
        match (said, &Said::from(outcome)) {
            (
                Said::Granted { fence, expiry },
                Said::Granted {
                    fence: other,
                    expiry: ends,
                },
            ) => fence == other && self.is_expiry(*expiry, *ends),
            (Said::Renewed { expiry }, Said::Renewed { expiry: ends }) => {
                self.is_expiry(*expiry, *ends)
            }
            (Said::Queued { .. }, Said::Queued { .. }) | (Said::Busy { .. }, Said::Busy { .. }) => {
                true
            }
            (one, other) => one == other,
        }
    }

    fn is_expiry(&self, said: u64, kept: u64) -> bool {
        said == kept || self.shortens && said < kept
    }
}

/// Whom the store may not have reached: nobody, or some of those who wait.
fn guesses(state: &LockState) -> Vec<Vec<Inbox>> {
    let mut inboxes: Vec<&Inbox> = Vec::new();
    for waiter in &state.queue {
        if !inboxes.contains(&&waiter.inbox) && inboxes.len() < MOST_INBOXES {
            inboxes.push(&waiter.inbox);
        }
    }
    let mut guesses: Vec<Vec<Inbox>> = (0..1_usize << inboxes.len())
        .map(|set| {
            let chosen = inboxes.iter().enumerate();
            let chosen = chosen.filter(|(index, _)| set >> index & 1 == 1);
            chosen.map(|(_, inbox)| (*inbox).clone()).collect()
        })
        .collect();
    guesses.sort_by_key(Vec::len);
    guesses
}

struct Guess<'a> {
    unreachable: &'a [Inbox],
    dead: &'a [Inbox],
}

impl Liveness for Guess<'_> {
    fn reachable(&self, inbox: &Inbox) -> bool {
        !self.unreachable.contains(inbox)
    }

    fn alive(&self, anchor: &Inbox) -> bool {
        !self.dead.contains(anchor)
    }
}

/// What distinguishes two states, as a number.
pub(super) fn fingerprint(state: &LockState) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};

    let mut hasher = DefaultHasher::new();
    state.last_fence.hash(&mut hasher);
    for holder in &state.holders {
        (holder.owner, holder.mode, holder.fence, holder.expiry).hash(&mut hasher);
    }
    for waiter in &state.queue {
        (waiter.owner, waiter.mode, waiter.alive_until).hash(&mut hasher);
    }
    state.forced.is_some().hash(&mut hasher);
    hasher.finish()
}
