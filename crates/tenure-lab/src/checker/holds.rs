//! [`Holds`]: who believed to hold what, and when, as a history shows it.
//!
//! Always less than what was believed: a belief begins when it was written down that the lock was
//! acquired, and ends at the last end of validity that was written down. So an overlap is one.

use std::collections::{HashMap, HashSet};

use tenure::{Fence, Mode, OwnerId};

use crate::history::{Fault, History, Wanted, What};

/// All grants and all that was asked for, in order of time.
#[derive(Debug, Default)]
pub(super) struct Holds {
    pub(super) all: Vec<Hold>,
    pub(super) acquires: Vec<Acquire>,
    strays: Strays,
}

/// What belongs to nothing, so that nobody could judge it.
#[derive(Debug, Default)]
struct Strays {
    /// Answers to calls that nobody made, and news of holds that nobody has.
    unasked: usize,
    /// An `ok` for an `acquire` without a fence.
    without_a_fence: usize,
    /// Calls with the number of another one of the same process.
    twice: usize,
}

/// One grant that a task was told of.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) name: String,
    pub(super) process: u32,
    pub(super) mode: Mode,
    pub(super) fence: Fence,
    pub(super) owner: Option<OwnerId>,
    pub(super) ttl: u64,
    /// When it was asked for.
    pub(super) invoked: u64,
    /// When its holder was told.
    pub(super) granted: u64,
    /// Since when it counts as shared.
    pub(super) downgraded: Option<u64>,
    /// The end of its validity, as far as it was renewed.
    pub(super) valid_until: u64,
    /// When it ended before that: given up, lost, or its process killed.
    pub(super) ended: Option<u64>,
    /// When the store had confirmed that it is given back.
    pub(super) released: Option<u64>,
    /// The events that tell: asked for, granted, last renewed, ended.
    pub(super) evidence: Vec<usize>,
}

/// One time that a lock was asked for.
#[derive(Clone, Debug)]
pub(super) struct Acquire {
    pub(super) name: String,
    pub(super) process: u32,
    pub(super) mode: Mode,
    pub(super) waits: bool,
    /// For how long at most, if there is a limit.
    pub(super) patience: Option<u64>,
    pub(super) ttl: u64,
    pub(super) invoked: u64,
    pub(super) answered: Option<u64>,
    pub(super) answer: Answer,
    /// The events that tell.
    pub(super) evidence: Vec<usize>,
}

/// How asking for a lock ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Granted,
    Failed,
    Unknown,
    /// Its process was killed before.
    Killed,
    /// There is no answer.
    Never,
}

type Key = (u32, u64);

impl Hold {
    /// When its holder stopped believing.
    pub(super) fn end(&self) -> u64 {
        self.ended.unwrap_or(u64::MAX).min(self.valid_until)
    }

    /// When the lock is free again at the store at the latest.
    pub(super) fn free_by(&self) -> u64 {
        self.released.unwrap_or(self.valid_until + self.ttl)
    }

    /// From when to when it was held in which mode.
    pub(super) fn spans(&self) -> Vec<(u64, u64, Mode)> {
        let end = self.end();
        match self.downgraded.filter(|at| *at < end) {
            Some(at) => vec![(self.granted, at, self.mode), (at, end, Mode::Shared)],
            None => vec![(self.granted, end, self.mode)],
        }
    }
}

impl Holds {
    pub(super) fn of(history: &History) -> Self {
        let mut reading = Reading::default();
        for (index, event) in history.events.iter().enumerate() {
            reading.event(index, event.at, event.process, &event.what);
        }
        // A kill is written down before it is carried out, so its process may have written another line since.
        for (index, event) in history.events.iter().enumerate() {
            if let What::Fault(Fault {
                kills: Some(killed),
                ..
            }) = &event.what
            {
                reading.killed(*killed, event.at, index);
            }
        }
        reading.holds
    }

    /// How many locks were asked for.
    pub(super) fn names(&self) -> usize {
        let names = self.acquires.iter().map(|it| &*it.name);
        names.collect::<HashSet<_>>().len()
    }

    /// What could not be made sense of.
    pub(super) fn notes(&self) -> Vec<String> {
        let Strays {
            unasked,
            without_a_fence,
            twice,
        } = self.strays;
        let notes = [
            (
                unasked,
                "tell of a call or a hold that is not in it, and were not judged",
            ),
            (
                without_a_fence,
                "say that a lock was acquired without its fence, and were not judged",
            ),
            (
                twice,
                "are calls with the number of an earlier one of the same process, and may be judged wrongly",
            ),
        ];
        let notes = notes.into_iter().filter(|(count, _)| *count > 0);
        notes
            .map(|(count, what)| format!("{count} events {what}"))
            .collect()
    }
}

#[derive(Default)]
struct Reading {
    holds: Holds,
    /// Calls that were not answered yet: what was wanted.
    calls: HashMap<Key, Call>,
    /// By the call that acquired them.
    by_call: HashMap<Key, usize>,
}

#[derive(Clone, Copy)]
enum Call {
    Acquire(usize),
    Release(usize),
    Other,
}

impl Reading {
    fn event(&mut self, index: usize, at: u64, process: u32, what: &What) {
        match what {
            What::Invoke { call, wanted } => self.invoked(index, at, (process, *call), wanted),
            What::Ok { call, grant } => {
                match self.calls.remove(&(process, *call)) {
                    Some(Call::Acquire(acquire)) => {
                        self.answered(acquire, index, at, Answer::Granted);
                        match grant {
                            Some(grant) => self.granted(acquire, (process, *call), grant),
                            None => self.holds.strays.without_a_fence += 1,
                        }
                    }
                    Some(Call::Release(hold)) => self.holds.all[hold].released = Some(at),
                    Some(Call::Other) => {}
                    None => self.holds.strays.unasked += 1,
                };
            }
            What::Fail { call, .. } => self.failed(index, at, (process, *call), Answer::Failed),
            What::Unknown { call, .. } => self.failed(index, at, (process, *call), Answer::Unknown),
            What::Renewed { hold, valid_until } => {
                if let Some(hold) = self.hold((process, *hold)) {
                    hold.valid_until = hold.valid_until.max(*valid_until);
                    hold.evidence.truncate(2);
                    hold.evidence.push(index);
                }
            }
            What::Jeopardy { hold, .. } => {
                let _ = self.hold((process, *hold));
            }
            What::Lost { hold, .. } => {
                if let Some(hold) = self.hold((process, *hold)) {
                    hold.end_at(at, index);
                }
            }
            What::Fault(fault) => {
                if let Some(killed) = fault.kills {
                    self.killed(killed, at, index);
                }
            }
            _ => {}
        }
    }

    /// The hold that this call acquired.
    fn hold(&mut self, key: Key) -> Option<&mut Hold> {
        let Some(index) = self.by_call.get(&key) else {
            self.holds.strays.unasked += 1;
            return None;
        };
        Some(&mut self.holds.all[*index])
    }

    fn invoked(&mut self, index: usize, at: u64, key: Key, wanted: &Wanted) {
        let call = match wanted {
            Wanted::Acquire {
                name,
                mode,
                ttl_ms,
                waits,
                wait_ms,
            } => {
                self.holds.acquires.push(Acquire {
                    name: name.clone(),
                    process: key.0,
                    mode: *mode,
                    waits: *waits,
                    patience: wait_ms.map(|wait| wait.saturating_mul(1_000_000)),
                    ttl: ttl_ms * 1_000_000,
                    invoked: at,
                    answered: None,
                    answer: Answer::Never,
                    evidence: vec![index],
                });
                Call::Acquire(self.holds.acquires.len() - 1)
            }
            Wanted::Release { hold } => match self.by_call.get(&(key.0, *hold)) {
                Some(hold) => {
                    self.holds.all[*hold].end_at(at, index);
                    Call::Release(*hold)
                }
                None => {
                    self.holds.strays.unasked += 1;
                    Call::Other
                }
            },
            Wanted::Downgrade { hold } => {
                if let Some(hold) = self.hold((key.0, *hold)) {
                    hold.downgraded = hold.downgraded.or(Some(at));
                }
                Call::Other
            }
            Wanted::LateRelease { .. } => Call::Other,
        };
        let twice = self.calls.insert(key, call).is_some() || self.by_call.contains_key(&key);
        self.holds.strays.twice += usize::from(twice);
    }

    fn granted(&mut self, acquire: usize, key: Key, grant: &crate::history::Granted) {
        let Acquire {
            name,
            process,
            mode,
            ttl,
            invoked,
            answered,
            evidence,
            ..
        } = self.holds.acquires[acquire].clone();
        self.by_call.insert(key, self.holds.all.len());
        self.holds.all.push(Hold {
            name,
            process,
            mode,
            fence: grant.fence,
            owner: grant.owner,
            ttl,
            invoked,
            granted: answered.unwrap_or(invoked),
            downgraded: None,
            valid_until: grant.valid_until,
            ended: None,
            released: None,
            evidence,
        });
    }

    fn failed(&mut self, index: usize, at: u64, key: Key, answer: Answer) {
        match self.calls.remove(&key) {
            Some(Call::Acquire(acquire)) => self.answered(acquire, index, at, answer),
            Some(_) => {}
            None => self.holds.strays.unasked += 1,
        }
    }

    fn answered(&mut self, acquire: usize, index: usize, at: u64, answer: Answer) {
        let acquire = &mut self.holds.acquires[acquire];
        acquire.answered = Some(at);
        acquire.answer = answer;
        acquire.evidence.push(index);
    }

    fn killed(&mut self, process: u32, at: u64, index: usize) {
        let holds = self.holds.all.iter_mut();
        for hold in holds.filter(|hold| hold.process == process) {
            hold.end_at(at.max(hold.granted), index);
        }
        let acquires = self.holds.acquires.iter_mut();
        for acquire in acquires.filter(|it| it.process == process && it.answered.is_none()) {
            acquire.answered = Some(at.max(acquire.invoked));
            acquire.answer = Answer::Killed;
            acquire.evidence.push(index);
        }
    }
}

impl Hold {
    /// The first end is the end: nothing revives a hold.
    fn end_at(&mut self, at: u64, index: usize) {
        if self.ended.is_none() {
            self.ended = Some(at);
            if at < self.valid_until {
                self.evidence.push(index);
            }
        }
    }
}
