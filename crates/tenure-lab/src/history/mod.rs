//! What processes write down while they run: one [`Event`] per line, in JSON.
//!
//! All processes of a run are on one machine and read one clock (CLOCK_BOOTTIME), the same by which
//! leases are judged. So times in a history can be compared, which is what makes it worth checking.
//! `record.rs` writes, `read.rs` reads, `text.rs` says how single values look.

mod read;
mod record;
mod step;
pub(crate) mod text;

pub use read::{History, Unreadable};
pub use record::{Recorder, now};
pub use step::{Asked, Said, Step};

use serde::{Deserialize, Serialize};
use tenure::core::{Order, PromiseId};
use tenure::{Fence, Mode, OwnerId};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds since the machine was started.
    pub at: u64,
    /// Who wrote it down. Never used twice: a process that is started again has another number.
    /// 0 is whoever carries out the faults and keeps the protected resource.
    pub process: u32,
    /// Which task of that process.
    pub task: u32,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The beginning: what is promised, and how long things may take.
    Run(Terms),
    /// A task calls. Answered by `ok`, `fail` or `unknown` with the same `call`, or never.
    Invoke {
        /// Different for all calls of one process.
        call: u64,
        /// What is wanted.
        #[serde(flatten)]
        wanted: Wanted,
    },
    /// The call did what was wanted.
    Ok {
        /// Which call.
        call: u64,
        /// Set if a lock was acquired.
        #[serde(flatten, skip_serializing_if = "Option::is_none", default)]
        grant: Option<Granted>,
    },
    /// The call surely did nothing.
    Fail {
        /// Which call.
        call: u64,
        /// In words.
        why: String,
    },
    /// Whether the call did anything is not known: it may have, or still will.
    Unknown {
        /// Which call.
        call: u64,
        /// In words.
        why: String,
    },
    /// A hold was renewed.
    Renewed {
        /// The call that acquired it.
        hold: u64,
        /// From then on it must not be relied upon.
        valid_until: u64,
    },
    /// The renewal of a hold is overdue.
    Jeopardy {
        /// The call that acquired it.
        hold: u64,
        /// From then on it must not be relied upon.
        valid_until: u64,
    },
    /// A hold is over although its holder did not give it up.
    Lost {
        /// The call that acquired it.
        hold: u64,
        /// Why.
        why: LostBy,
    },
    /// The protected resource carried out a write.
    WriteAccepted(Write),
    /// The protected resource refused a write, because it has seen a higher fence.
    WriteRefused(Write),
    /// A client asks the store. Answered by `answered` or `unanswered` with the same `call`, or never.
    Asked {
        /// Different for all that this process asks.
        call: u64,
        /// Of which lock.
        name: String,
        /// What is asked.
        #[serde(flatten)]
        step: Step,
    },
    /// The store answered.
    Answered {
        /// What was asked.
        call: u64,
        /// By the store's clock, in microseconds.
        now: u64,
        /// The answer.
        #[serde(flatten)]
        said: Said,
    },
    /// The store did not answer: it may have carried it out, or still will.
    Unanswered {
        /// What was asked.
        call: u64,
        /// In words.
        why: String,
    },
    /// The store told of a grant without having been asked.
    Pushed {
        /// Of which lock.
        name: String,
        /// For whom.
        #[serde(with = "text")]
        owner: OwnerId,
        /// Its fence.
        #[serde(with = "text")]
        fence: Fence,
        /// By the store's clock, in microseconds.
        now: u64,
    },
    /// Something was broken on purpose, or put right again.
    Fault(Fault),
    /// From here on nothing is broken any more.
    Calm,
    /// The end. Nothing should be held or waited for.
    End {
        /// Names that are still held or waited for.
        left: Vec<String>,
    },
}

/// What is promised in a run, and how long things may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The store, as in its URL scheme.
    pub store: String,
    /// What everything random was drawn from.
    pub seed: u64,
    /// In which order waiters are served.
    #[serde(with = "text::order")]
    pub order: Order,
    /// Whether the store is one state machine per lock, whose steps can be held against `decide`.
    pub one_machine: bool,
    /// Whether the store sees a process die and ends what it held.
    pub sees_death: bool,
    /// Whether it may report an expiry that is earlier than the one it keeps.
    pub shortens: bool,
    /// How long a lock may be free while somebody waits and nothing is broken, in milliseconds.
    pub idle_ms: u64,
    /// The same while things are broken; and after the last fault everybody must have got everything
    /// within this time.
    pub recovery_ms: u64,
}

/// What a task wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Wanted {
    /// Take a lock.
    Acquire {
        /// Which lock.
        name: String,
        /// In which way.
        #[serde(with = "text::mode")]
        mode: Mode,
        /// How long the lease lasts unless it is renewed.
        ttl_ms: u64,
        /// Whether to wait for it.
        waits: bool,
        /// For how long at most, if there is a limit.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        wait_ms: Option<u64>,
    },
    /// Give a hold back.
    Release {
        /// The call that acquired it.
        hold: u64,
    },
    /// Turn an exclusive hold into a shared one.
    Downgrade {
        /// The call that acquired it.
        hold: u64,
    },
    /// Give a hold back (again) that is over: nothing may happen.
    LateRelease {
        /// Which lock.
        name: String,
        /// Whose hold.
        #[serde(with = "text")]
        owner: OwnerId,
        /// Which hold.
        #[serde(with = "text")]
        fence: Fence,
    },
}

/// A lock was acquired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Granted {
    /// Its fence.
    #[serde(with = "text")]
    pub fence: Fence,
    /// Who holds it at the store, if that is known.
    #[serde(
        with = "text::optional",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub owner: Option<OwnerId>,
    /// From then on it must not be relied upon, unless it is renewed.
    pub valid_until: u64,
}

/// Why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostBy {
    /// Its validity ended.
    Expired,
    /// The store said that there is no such hold.
    Forgotten,
    /// Somebody ended it by force.
    Forced,
    /// It was held for as long as allowed.
    HeldTooLong,
}

/// A write at the protected resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// What was written to: the resource that the lock of this name protects.
    pub name: String,
    /// The fence that came with the write.
    #[serde(with = "text")]
    pub fence: Fence,
    /// Who wrote.
    pub writer: u32,
    /// How many writes the resource had accepted before.
    pub before: u64,
}

/// Something was broken on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What kind, in a word or two; counted in summaries.
    pub kind: String,
    /// What exactly, in words.
    pub detail: String,
    /// Which promises do not hold any more from here on.
    #[serde(
        with = "text::promises",
        skip_serializing_if = "Vec::is_empty",
        default
    )]
    pub breaks: Vec<PromiseId>,
    /// The process that ceased to be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kills: Option<u32>,
    /// What became of what the store remembers.
    #[serde(skip_serializing_if = "Memory::is_kept", default)]
    pub memory: Memory,
}

/// What became of what the store remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// It remembers all.
    #[default]
    Kept,
    /// Nobody can say: some of it may be gone, or back to what it was before.
    Unsure,
}

impl Memory {
    fn is_kept(&self) -> bool {
        *self == Self::Kept
    }
}
