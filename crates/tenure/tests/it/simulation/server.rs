//! [`Server`]: what the simulated store remembers, and how it forgets. It runs the core's own `hello`
//! and `decide_in`, spoiled by a [`Flaw`] if there is one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure::core::{
    Cause, Decision, Fence, Greeting, Hello, Inbox, Life, Liveness, LockName, LockState, Phase,
    Record, Recovery, Request, Seen, Timestamp, decide_in, hello,
};

use super::flaws::Flaw;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) locks: BTreeMap<LockName, LockState>,
    record: Option<Record>,
    run: u64,
    lives: u64,
    started: Option<Timestamp>,
    max_ttl: Duration,
    /// Processes that are gone: whoever listened there does not any more.
    pub(super) gone: BTreeSet<Inbox>,
    flaw: Option<Flaw>,
}

impl Server {
    pub(super) fn new(max_ttl: Duration, flaw: Option<Flaw>) -> Self {
        Self {
            locks: BTreeMap::new(),
            record: None,
            run: 0,
            lives: 0,
            started: None,
            max_ttl,
            gone: BTreeSet::new(),
            flaw,
        }
    }

    pub(super) fn restart(&mut self, now: Timestamp, keeps: bool) {
        self.run += 1;
        self.started = Some(now);
        if !keeps {
            self.locks.clear();
            self.record = None;
        }
    }

    /// Somebody says hello; answers the life to speak to.
    pub(super) fn hello(&mut self, now: Timestamp, knew: bool) -> Life {
        let age = self.started.map_or(Duration::from_secs(100_000), |at| {
            Duration::from_secs(now.since(at).as_secs())
        });
        let seen = Seen {
            run: self.run.to_string().into(),
            line: "one".into(),
            took_over: false,
            age,
            durable: false,
            has_replicas: false,
            wiped: false,
            now,
        };
        let greeting = Greeting {
            recovery: Recovery::Careful,
            knew,
            knew_this_run: false,
            max_ttl: self.max_ttl,
            no_replicas: false,
        };
        let wait = match hello(self.record.as_ref(), &seen, &greeting) {
            Hello::Known(life) => return life,
            Hello::Begin { .. } if self.flaw == Some(Flaw::RecoveryOff) => Duration::ZERO,
            Hello::Begin { wait, .. } => wait,
            Hello::Disagree { .. } => unreachable!("all clients have the same max_ttl"),
        };
        self.lives += 1;
        let life = Life::from_u64(self.lives);
        self.record = Some(Record {
            life,
            run: seen.run,
            line: seen.line,
            until: now.plus(wait),
            max_ttl: self.max_ttl,
            durable: false,
            cause: Cause::Unknown,
            began: Vec::new(),
        });
        life
    }

    /// Carries out a request that was sent to `life`; `None` if it is refused because of that.
    pub(super) fn decide(&mut self, life: Life, request: &Request, now: Timestamp) -> Option<Step> {
        let phase: Phase = Record::phase_for(self.record.as_ref(), life, now)?;
        let before = self.locks.get(&request.name).cloned().unwrap_or_default();
        let action = match self.flaw {
            Some(flaw) => &flaw.misread(request.action.clone(), &before),
            None => &request.action,
        };
        let sight = Sight(&self.gone);
        let mut decision = decide_in(phase, before.clone(), action, now, &sight);
        if let Some(flaw) = self.flaw {
            flaw.spoil(&mut decision, &before, now);
        }
        let after = decision.state.clone();
        self.locks.insert(request.name.clone(), after);
        Some(Step { before, decision })
    }

    /// Who holds or waits for anything at `now`.
    pub(super) fn left(&self, now: Timestamp) -> Vec<String> {
        let mut left = Vec::new();
        for (name, lock) in &self.locks {
            let holders = lock.holders.iter().filter(|it| it.expiry > now);
            left.extend(holders.map(|it| format!("{name}: {:?} holds", it.owner)));
            let waiters = lock.queue.iter().filter(|it| it.alive_until > now);
            left.extend(waiters.map(|it| format!("{name}: {:?} waits", it.owner)));
        }
        left
    }

    pub(super) fn last_fence(&self, name: &LockName) -> Fence {
        self.locks.get(name).map_or(Fence::NONE, |it| it.last_fence)
    }
}

/// One step, and what the lock was before it.
pub(super) struct Step {
    pub(super) before: LockState,
    pub(super) decision: Decision,
}

/// A server sees that a process is gone as soon as its connection is closed, and nothing else.
struct Sight<'a>(&'a BTreeSet<Inbox>);

impl Liveness for Sight<'_> {
    fn reachable(&self, inbox: &Inbox) -> bool {
        !self.0.contains(inbox)
    }

    fn alive(&self, _anchor: &Inbox) -> bool {
        true
    }
}
