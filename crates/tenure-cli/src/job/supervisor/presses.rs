//! Counting INT and TERM: somebody who sends them again and again wants the job gone.

use std::time::Duration;

use rustix::process::Signal;

use crate::job::boottime::Boottime;

/// Presses further apart than this start the count again.
const TOGETHER: Duration = Duration::from_secs(2);

/// What one more signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Press {
    /// What it says.
    Plain,
    /// What it says, and the next one kills.
    AgainToKill,
    /// Enough: KILL.
    Kill,
}

#[derive(Debug, Default)]
pub(super) struct Presses {
    count: u32,
    last: Option<Boottime>,
}

impl Presses {
    pub(super) fn note(&mut self, now: Boottime, signal: Signal) -> Press {
        if signal != Signal::INT && signal != Signal::TERM {
            return Press::Plain;
        }
        let together = self.last.is_some_and(|last| now.since(last) <= TOGETHER);
        self.count = if together { self.count + 1 } else { 1 };
        self.last = Some(now);
        match self.count {
            1 => Press::Plain,
            2 => Press::AgainToKill,
            _ => Press::Kill,
        }
    }
}
