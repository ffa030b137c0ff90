//! Short words for building requests, and a lock that remembers its state between them.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{
    Acquire, Action, Cancel, Convert, Decision, Fence, ForceRelease, Grant, Handover, Inbox,
    Liveness, LockState, Mode, Outcome, OwnerId, Party, Phase, Release, Renew, Timestamp, Ttl,
    Waiting, decide_in,
};

pub(crate) const START: Timestamp = Timestamp::from_micros(1_000_000_000);

pub(crate) fn owner(number: u8) -> OwnerId {
    OwnerId::from_bytes([number; 16])
}

/// The inbox of the `number`th owner's process.
pub(crate) fn inbox(number: u8) -> Inbox {
    Inbox::from_bytes([number; 16])
}

pub(crate) fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

pub(crate) fn ttl(length: u64) -> Ttl {
    Ttl::new(seconds(length)).expect("tests use ttls in range")
}

pub(crate) fn permits(count: u32, capacity: u32) -> Mode {
    Mode::permits(count, capacity).expect("tests use counts in range")
}

/// An exclusive acquire for 10 s that does not wait.
pub(crate) fn acquire(number: u8) -> Acquire {
    Acquire {
        owner: owner(number),
        mode: Mode::Exclusive,
        ttl: ttl(10),
        party: Party::new("somebody@somewhere", "", "somewhere", u32::from(number)),
        waiting: Waiting::No,
        anchor: None,
        not_after: None,
    }
}

/// The same, ready to wait: its place is kept for 6 s, so its claim window is 3 s.
pub(crate) fn queue(number: u8) -> Acquire {
    let waiting = Waiting::Queue {
        inbox: inbox(number),
        alive_for: seconds(6),
    };
    Acquire {
        waiting,
        ..acquire(number)
    }
}

pub(crate) fn in_mode(acquire: Acquire, mode: Mode) -> Acquire {
    Acquire { mode, ..acquire }
}

/// What a store can see, as a test wants it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) unreachable: BTreeSet<Inbox>,
    pub(crate) dead: BTreeSet<Inbox>,
}

impl Liveness for Seen {
    fn reachable(&self, inbox: &Inbox) -> bool {
        !self.unreachable.contains(inbox)
    }

    fn alive(&self, anchor: &Inbox) -> bool {
        !self.dead.contains(anchor)
    }
}

/// One lock, its store's clock and what its store can see.
#[derive(Debug)]
pub(crate) struct Lock {
    pub(crate) state: LockState,
    pub(crate) now: Timestamp,
    pub(crate) phase: Phase,
    pub(crate) seen: Seen,
    /// The handovers of the last step.
    pub(crate) pushed: Vec<Handover>,
}

impl Lock {
    pub(crate) fn new() -> Self {
        Self {
            state: LockState::default(),
            now: START,
            phase: Phase::ALWAYS_OPEN,
            seen: Seen::default(),
            pushed: Vec::new(),
        }
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
    }

    pub(crate) fn apply(&mut self, action: &Action) -> Outcome {
        let Decision {
            state,
            outcome,
            handovers,
        } = decide_in(self.phase, self.state.clone(), action, self.now, &self.seen);
        self.state = state;
        self.pushed = handovers;
        outcome
    }

    pub(crate) fn acquire(&mut self, acquire: &Acquire) -> Outcome {
        self.apply(&Action::Acquire(acquire.clone()))
    }

    /// Acquires and expects to get it.
    pub(crate) fn granted(&mut self, acquire: &Acquire) -> Grant {
        match self.acquire(acquire) {
            Outcome::Granted(grant) => grant,
            other => panic!("expected a grant, got {other:?}"),
        }
    }

    /// Acquires and expects to wait with this many ahead.
    pub(crate) fn queued(&mut self, acquire: &Acquire, expected: u32) {
        match self.acquire(acquire) {
            Outcome::Queued { ahead, .. } => assert_eq!(ahead, expected, "waiters ahead"),
            other => panic!("expected a place in the queue, got {other:?}"),
        }
    }

    pub(crate) fn renew(&mut self, number: u8, fence: Fence, length: u64) -> Outcome {
        self.apply(&Action::Renew(Renew {
            owner: owner(number),
            fence,
            ttl: ttl(length),
            detach: false,
            terms: None,
        }))
    }

    pub(crate) fn convert(&mut self, number: u8, fence: Fence) -> Outcome {
        let owner = owner(number);
        self.apply(&Action::Convert(Convert { owner, fence }))
    }

    pub(crate) fn release(&mut self, number: u8, fence: Fence) -> Outcome {
        let owner = owner(number);
        self.apply(&Action::Release(Release { owner, fence }))
    }

    pub(crate) fn force(&mut self, number: u8, fence: Fence, reason: &str) -> Outcome {
        self.apply(&Action::ForceRelease(ForceRelease {
            owner: owner(number),
            fence,
            by: Party::new("operator@desk", "", "desk", 1),
            reason: reason.to_owned(),
        }))
    }

    pub(crate) fn cancel(&mut self, number: u8) -> Outcome {
        let owner = owner(number);
        self.apply(&Action::Cancel(Cancel { owner }))
    }

    /// The owners that hold now, in grant order.
    pub(crate) fn holders(&self) -> Vec<OwnerId> {
        self.state.holders.iter().map(|each| each.owner).collect()
    }

    /// The owners that wait now, in order of arrival.
    pub(crate) fn waiters(&self) -> Vec<OwnerId> {
        self.state.queue.iter().map(|each| each.owner).collect()
    }

    /// The owners that the last step pushed a grant to.
    pub(crate) fn told(&self) -> Vec<OwnerId> {
        self.pushed.iter().map(|each| each.owner).collect()
    }
}

pub(crate) fn owners(numbers: &[u8]) -> Vec<OwnerId> {
    numbers.iter().map(|number| owner(*number)).collect()
}

pub(crate) const NOT_HELD: Outcome = Outcome::NotHeld { forced: None };
