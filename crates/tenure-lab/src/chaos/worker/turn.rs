//! [`Turn`]: what a task does next, drawn at random: which lock, in which way, for how long, and how it
//! behaves.

use std::time::Duration;

use tenure::{Lock, Mode, Tenure};

use crate::chaos::plan::LONGEST_LEASE_MS;

/// All names begin like this.
pub(super) const PREFIX: &str = "tenure-lab-";

/// How many permits the semaphore has.
const CAPACITY: u32 = 3;

/// What a task does next.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) target: Target,
    pub(super) mode: Mode,
    pub(super) ttl: Duration,
    /// Zero: does not wait.
    pub(super) wait: Duration,
    /// The future is dropped after so long.
    pub(super) cancels: Option<Duration>,
    pub(super) holds: Duration,
    pub(super) renews: bool,
    /// Turns to reading in the middle.
    pub(super) downgrades: bool,
    pub(super) ends: Ending,
}

/// How a hold is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Releases,
    /// The guard is dropped.
    Drops,
    /// It is given back, and after so many milliseconds once more.
    ReleasesTwice(u64),
}

/// Which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Mutex(u32),
    /// A mutex that nobody waits for: if its holder is stopped, others do get it.
    Unawaited,
    ReadWrite,
    Semaphore,
}

impl Target {
    /// All locks there are.
    pub(super) fn all(permits: bool) -> Vec<Self> {
        let mut all = vec![
            Self::Mutex(0),
            Self::Mutex(1),
            Self::Unawaited,
            Self::ReadWrite,
        ];
        all.extend(permits.then_some(Self::Semaphore));
        all
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Mutex(number) => format!("{PREFIX}mutex-{number}"),
            Self::Unawaited => format!("{PREFIX}unawaited"),
            Self::ReadWrite => format!("{PREFIX}read-write"),
            Self::Semaphore => format!("{PREFIX}semaphore"),
        }
    }

    /// The lock, to be taken in this way.
    pub(super) fn lock(self, tenure: &Tenure, mode: Mode) -> Lock {
        let name = self.name();
        match mode {
            Mode::Exclusive => tenure.lock(name),
            Mode::Shared => tenure.rwlock(name).read(),
            Mode::Permits(permits) => tenure
                .semaphore(name, permits.capacity())
                .permits(permits.count()),
        }
    }
}

impl Turn {
    pub(super) fn draw(random: &mut fastrand::Rng, permits: bool) -> Self {
        let targets = Target::all(permits);
        let target = targets[random.usize(..targets.len())];
        let mode = match target {
            Target::Mutex(_) | Target::Unawaited => Mode::Exclusive,
            Target::ReadWrite if random.u32(..3) > 0 => Mode::Shared,
            Target::ReadWrite => Mode::Exclusive,
            Target::Semaphore => some_permits(random.u32(1..=2)),
        };
        let millis = Duration::from_millis;
        let ends = match random.u32(..10) {
            0 => Ending::Drops,
            1 | 2 => Ending::ReleasesTwice(random.u64(..300)),
            _ => Ending::Releases,
        };
        Self {
            target,
            mode,
            ttl: millis(random.u64(500..=LONGEST_LEASE_MS)),
            wait: match random.u32(..4) {
                _ if target == Target::Unawaited => Duration::ZERO,
                0 => Duration::ZERO,
                _ => millis(random.u64(200..5_000)),
            },
            cancels: (random.u32(..8) == 0).then(|| millis(random.u64(..300))),
            holds: match random.u32(..10) {
                _ if target == Target::Unawaited => millis(random.u64(200..1_500)),
                0..6 => millis(random.u64(..30)),
                6..9 => millis(random.u64(50..500)),
                _ => millis(random.u64(500..2_500)),
            },
            renews: random.u32(..8) > 0,
            downgrades: target == Target::ReadWrite && random.u32(..3) == 0,
            ends,
        }
    }

    /// At the end everybody takes everything once, and waits for it as long as it takes.
    pub(super) fn last(target: Target, patience: Duration) -> Self {
        Self {
            target,
            mode: match target {
                Target::Semaphore => some_permits(1),
                _ => Mode::Exclusive,
            },
            ttl: Duration::from_millis(LONGEST_LEASE_MS),
            wait: patience,
            cancels: None,
            holds: Duration::from_millis(1),
            renews: true,
            downgrades: false,
            ends: Ending::Releases,
        }
    }
}

fn some_permits(count: u32) -> Mode {
    Mode::permits(count, CAPACITY).expect("fewer than there are")
}
