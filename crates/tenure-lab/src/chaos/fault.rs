//! [`Fault`]: one thing to break, and [`FaultKind`]: of which kind it is.

use serde::{Deserialize, Serialize};

use crate::servers::Way;

/// One thing to break. Workers, servers and links are named by their place, so that a plan can be
/// carried out again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// SIGKILL; another process takes its place.
    Kill { worker: usize },
    /// SIGSTOP, and SIGCONT after a while.
    Pause { worker: usize, ms: u64 },
    /// SIGKILL of a server, which is started again with what it had saved.
    Restart { server: usize, ms: u64 },
    /// The same without anything that it had saved.
    Forget { server: usize, ms: u64 },
    /// SIGSTOP of a server, and SIGCONT after a while.
    Freeze { server: usize, ms: u64 },
    /// All connections are ended.
    Cut { link: usize },
    /// All connections are ended and new ones refused for a while.
    Refuse { link: usize, ms: u64 },
    /// Nothing passes for a while, and nobody is told; then it is delivered.
    Delay { link: usize, way: Way, ms: u64 },
    /// Nothing passes for a while, and nobody is told; then the connections are ended.
    Partition { link: usize, way: Way, ms: u64 },
    /// One thing that passes is lost.
    Swallow { link: usize, way: Way },
    /// One thing that passes comes twice.
    Repeat { link: usize, way: Way },
    /// SCRIPT FLUSH.
    ScriptFlush { server: usize },
    /// CLIENT KILL of all clients.
    ClientKill { server: usize },
    /// FLUSHALL.
    FlushAll { server: usize },
    /// The server's wall clock is set forward, or back.
    ClockStep { server: usize, ms: i64 },
    /// A worker and the primary do not reach each other for a while; everybody else does.
    CutOff {
        worker: usize,
        server: usize,
        ms: u64,
    },
    /// The primary is cut off from everybody for a while, but for one worker perhaps, which sees nobody else.
    Split {
        server: usize,
        worker: Option<usize>,
        ms: u64,
    },
    /// A sentinel is stopped for a while.
    FreezeSentinel { sentinel: usize, ms: u64 },
}

/// What kind of thing is broken.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Kill workers (holders and waiters)
    Kill,
    /// Stop workers for longer than their leases last
    Pause,
    /// Kill servers, and start them again with their data (with Sentinel and in a cluster: fail over)
    Restart,
    /// Kill servers, and start them again without their data
    Forget,
    /// Stop servers
    Freeze,
    /// End connections
    Cut,
    /// Refuse connections
    Refuse,
    /// Deliver what was sent much later
    Delay,
    /// Deliver nothing, one way or both, and tell nobody
    Partition,
    /// Lose one message
    Swallow,
    /// Deliver one message twice
    Repeat,
    /// SCRIPT FLUSH
    ScriptFlush,
    /// CLIENT KILL
    ClientKill,
    /// FLUSHALL
    FlushAll,
    /// Set the clocks of servers back, by seconds
    ClockBack,
    /// Set the clocks of servers forward: breaks what is promised, so overlaps are only counted
    ClockForward,
    /// Cut a worker off from the primary, while others reach both
    CutOff,
    /// Cut the primary off, with or without a worker, until another takes its place: two primaries
    Split,
    /// Stop sentinels
    FreezeSentinel,
}

impl Fault {
    pub(crate) fn kind(&self) -> FaultKind {
        match self {
            Self::Kill { .. } => FaultKind::Kill,
            Self::Pause { .. } => FaultKind::Pause,
            Self::Restart { .. } => FaultKind::Restart,
            Self::Forget { .. } => FaultKind::Forget,
            Self::Freeze { .. } => FaultKind::Freeze,
            Self::Cut { .. } => FaultKind::Cut,
            Self::Refuse { .. } => FaultKind::Refuse,
            Self::Delay { .. } => FaultKind::Delay,
            Self::Partition { .. } => FaultKind::Partition,
            Self::Swallow { .. } => FaultKind::Swallow,
            Self::Repeat { .. } => FaultKind::Repeat,
            Self::ScriptFlush { .. } => FaultKind::ScriptFlush,
            Self::ClientKill { .. } => FaultKind::ClientKill,
            Self::FlushAll { .. } => FaultKind::FlushAll,
            Self::ClockStep { ms: ..0, .. } => FaultKind::ClockBack,
            Self::ClockStep { .. } => FaultKind::ClockForward,
            Self::CutOff { .. } => FaultKind::CutOff,
            Self::Split { .. } => FaultKind::Split,
            Self::FreezeSentinel { .. } => FaultKind::FreezeSentinel,
        }
    }
}

impl FaultKind {
    /// The word for it on the command line and in summaries.
    pub(crate) fn word(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
