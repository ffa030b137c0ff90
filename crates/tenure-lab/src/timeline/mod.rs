//! What happened in one play: one [`Event`] per line, by the one clock that all processes of this
//! machine share. Workers print them, the stage adds what it did to them.

mod judge;
mod spans;

use serde::{Deserialize, Serialize};

pub(crate) use judge::{Harm, judge, overlaps};
pub(crate) use spans::{Belief, beliefs, lifetimes, truths};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Nanoseconds of CLOCK_BOOTTIME.
    pub(crate) at: u64,
    /// To whom: a worker, a server, or nobody in particular.
    pub(crate) who: String,
    #[serde(flatten)]
    pub(crate) what: What,
}

/// What it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum What {
    /// The process is there and awaits orders.
    Ready,
    /// It asks for the lock.
    Wants,
    /// It has come to this point inside its algorithm, and stays there.
    At { point: String },
    /// From now on it believes that it holds the lock; `until` is when it stops to by itself.
    Holds {
        shared: bool,
        until: Option<u64>,
        fence: Option<u64>,
    },
    /// It may believe so until then.
    Extended { until: u64 },
    /// Somebody else has it, and it did not wait.
    Busy,
    /// It waited in vain.
    GaveUp,
    /// It gives the lock back; the request may still be on its way.
    Released,
    /// It noticed that it does not hold the lock any more.
    Lost { why: String },
    /// It would have written, but noticed before that it does not hold the lock any more.
    Declined { why: String },
    /// It does not even begin to work like this.
    Unwilling { why: String },
    /// It asked for something, and is done with it.
    Done { word: String },
    /// The protected resource got a write from it.
    Wrote { accepted: bool, fence: Option<u64> },
    /// SIGSTOP.
    Paused,
    /// SIGCONT.
    Resumed,
    /// SIGKILL.
    Killed,
    /// Who holds the lock according to the store.
    Holder { names: Vec<String> },
    /// A fault, done on purpose.
    Fault { text: String },
    /// The play is over.
    End,
    /// Something that is worth saying.
    Note { text: String },
}
