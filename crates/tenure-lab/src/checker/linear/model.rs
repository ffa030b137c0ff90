//! [`Model`]: carries out one step with `decide`, in all ways that what is not known allows.

use tenure::Timestamp;
use tenure::core::{Action, Decision, Inbox, Liveness, LockState, Outcome, Phase, decide_in};

use super::Asking;
use crate::history::Said;

/// What is known of the store beside what it was asked.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// It may report an earlier expiry than the one that it keeps.
    pub(super) shortens: bool,
    /// When processes were killed, if the store sees that: the moment before, and their inboxes.
    pub(super) deaths: Vec<(u64, Inbox)>,
    /// At which times it said until when it lets nobody in, in order. A restart may move that, also to an
    /// earlier time: from any moment on, nobody relies on what was forgotten for longer than `max_ttl`.
    pub(super) recovering: Vec<(u64, u64)>,
}

/// How long a process may take to be gone after it was killed.
const DYING: u64 = 2_000_000_000;

/// Of more processes that wait, the rest is taken to be within reach.
const MOST_INBOXES: usize = 5;

impl Model {
    /// All states that the step may lead to if it takes effect at `now` and was answered as it was.
    pub(super) fn step(&self, state: &LockState, asking: &Asking, now: u64) -> Vec<LockState> {
        let mut states: Vec<LockState> = Vec::new();
        for dead in self.deaths_seen(asking) {
            for unreachable in guesses(state) {
                let guess = Guess {
                    unreachable: &unreachable,
                    dead: &dead,
                };
                let decision = self.decide(state, &asking.action, now, &guess);
                let fits = self.is_answer(asking, &decision.outcome);
                if fits && !states.contains(&decision.state) {
                    states.push(decision.state);
                }
            }
        }
        states
    }

    fn decide(&self, state: &LockState, action: &Action, now: u64, guess: &Guess<'_>) -> Decision {
        let until = Timestamp::from_micros(self.recovering_until(now));
        let now = Timestamp::from_micros(now);
        let phase = match until > now {
            true => Phase::Recovering { until },
            false => Phase::Open,
        };
        decide_in(phase, state.clone(), action, now, guess)
    }

    /// What it said last before this time, or first after it; 0 if it never recovers.
    fn recovering_until(&self, now: u64) -> u64 {
        let before = self.recovering.partition_point(|(at, _)| *at <= now);
        let told = self.recovering.get(before.saturating_sub(1));
        told.map_or(0, |(_, until)| *until)
    }

    /// Whose deaths the store may have seen: those that must have been over, and perhaps those that
    /// were not.
    fn deaths_seen(&self, asking: &Asking) -> Vec<Vec<Inbox>> {
        let before = |moment: u64| {
            let dead = self.deaths.iter().filter(|(at, _)| *at < moment);
            dead.map(|(_, inbox)| inbox.clone()).collect::<Vec<_>>()
        };
        let mut guesses = vec![
            before(asking.answered),
            before(asking.asked),
            before(asking.asked.saturating_sub(DYING)),
        ];
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
