//! [`Profile`]: what kind of weather a simulation runs in, and [`Plan`]: what a seed makes of it.

use std::time::Duration;

use super::dice::Dice;
use crate::client_world::{millis, secs};

/// Who takes part, and what may go wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    pub(crate) clients: usize,
    /// Tasks in each client.
    pub(crate) tasks: usize,
    /// Shortest and longest ttl, in milliseconds.
    pub(crate) ttl: (u64, u64),
    /// How long a hold lasts at most, in milliseconds.
    pub(crate) hold: u64,
    /// Messages of one client stay in order, as on one connection.
    pub(crate) ordered: bool,
    /// How often out of a hundred a message is lost, repeated or slow, and how slow in milliseconds.
    pub(crate) loss: u64,
    pub(crate) repeat: u64,
    pub(crate) slow: u64,
    pub(crate) slowness: u64,
    /// How long the store takes at most before it looks at a lock, as if it waited for a row lock.
    pub(crate) row_lock: u64,
    /// What else happens, and how often at most.
    pub(crate) mishaps: &'static [Mishap],
    pub(crate) most: u64,
    /// How often out of a hundred the server sees at once that a process has died.
    pub(crate) deaths_seen: u64,
    /// How long all that lasts.
    pub(crate) storm: Duration,
    /// Within this time everybody is served once it is over.
    pub(crate) served_within: Duration,
    /// Nothing is left at the store as soon as everything was given back, and not only once it ended.
    pub(crate) tidy: bool,
}

/// What can happen to a whole process, link or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// A process is stopped for a while.
    Pause,
    /// What is sent to and by a process arrives when this is over.
    Cut,
    /// What is sent to and by a process is lost.
    Silence,
    /// A process is killed. The first one is spared.
    Crash,
    /// A process is killed if the server knows of nothing that it holds.
    CrashOfAWaiter,
    /// The server is stopped for a while.
    Stop,
    /// The server restarts with all its data.
    Restart,
    /// The server restarts and has forgotten everything.
    Forget,
    /// The server's clock is set back by as much as this lasts.
    SetBack,
}

/// One mishap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) at: Duration,
    pub(crate) what: Mishap,
    pub(crate) whom: usize,
    pub(crate) lasts: Duration,
}

impl Profile {
    /// Everything at once.
    pub(crate) const STORM: Self = Self {
        name: "storm",
        clients: 3,
        tasks: 2,
        ttl: (200, 2_000),
        hold: 1_500,
        ordered: false,
        loss: 5,
        repeat: 5,
        slow: 8,
        slowness: 2_500,
        row_lock: 0,
        mishaps: &[
            Mishap::Pause,
            Mishap::Cut,
            Mishap::Silence,
            Mishap::Crash,
            Mishap::Stop,
            Mishap::Restart,
            Mishap::Forget,
            Mishap::SetBack,
        ],
        most: 4,
        deaths_seen: 50,
        storm: secs(8),
        served_within: secs(60),
        tidy: false,
    };

    /// Messages stay in order and nobody dies: then nothing may be left behind, not even for a while.
    pub(crate) const ORDERLY: Self = Self {
        name: "orderly",
        ordered: true,
        repeat: 0,
        loss: 3,
        mishaps: &[Mishap::Pause, Mishap::Cut, Mishap::Stop, Mishap::SetBack],
        most: 2,
        storm: secs(6),
        tidy: true,
        ..Self::STORM
    };

    /// Processes die while they wait, and nobody else is to notice for long.
    pub(crate) const DYING_WAITERS: Self = Self {
        name: "dying waiters",
        clients: 4,
        tasks: 1,
        ttl: (60_000, 60_000),
        hold: 3_000,
        ordered: true,
        loss: 0,
        repeat: 0,
        slow: 0,
        mishaps: &[Mishap::CrashOfAWaiter],
        most: 2,
        deaths_seen: 0,
        storm: secs(10),
        // Two claim windows, the holds of those before, and a sign of life.
        served_within: secs(35),
        ..Self::STORM
    };

    /// The same, but the server sees them die.
    pub(crate) const SEEN_DEATHS: Self = Self {
        name: "seen deaths",
        deaths_seen: 100,
        ..Self::DYING_WAITERS
    };

    /// Answers that take as long as a good part of a lease.
    pub(crate) const SLOW_REPLIES: Self = Self {
        name: "slow replies",
        tasks: 1,
        ttl: (400, 1_000),
        hold: 2_000,
        loss: 0,
        repeat: 0,
        slow: 40,
        slowness: 900,
        mishaps: &[Mishap::Pause],
        most: 1,
        ..Self::STORM
    };

    /// A server that forgets, and little else.
    pub(crate) const FORGETFUL: Self = Self {
        name: "forgetful",
        tasks: 1,
        ttl: (1_000, 2_000),
        loss: 0,
        repeat: 0,
        slow: 2,
        mishaps: &[Mishap::Forget],
        most: 2,
        ..Self::STORM
    };

    /// A store in which requests wait for each other, and slow pushes.
    pub(crate) const ROW_LOCKS: Self = Self {
        name: "row locks",
        tasks: 1,
        ttl: (600, 1_200),
        hold: 2_000,
        loss: 0,
        repeat: 0,
        slow: 30,
        slowness: 1_500,
        row_lock: 1_500,
        mishaps: &[Mishap::Pause],
        most: 1,
        storm: secs(12),
        ..Self::STORM
    };

    pub(crate) fn longest_ttl(&self) -> Duration {
        millis(self.ttl.1)
    }

    /// What happens under this seed.
    pub(crate) fn plan(&self, seed: u64) -> Vec<Planned> {
        let mut dice = Dice::new(seed, 1);
        let mut plan = Vec::new();
        for _ in 0..dice.below(self.most + 1) {
            let storm = u64::try_from(self.storm.as_millis()).expect("some seconds");
            plan.push(Planned {
                at: dice.millis(storm * 3 / 4),
                what: dice.pick(self.mishaps),
                whom: usize::try_from(dice.below(self.clients as u64)).expect("a few"),
                lasts: millis(50) + dice.millis(storm / 4),
            });
        }
        plan.sort_by_key(|planned| planned.at);
        plan
    }
}
