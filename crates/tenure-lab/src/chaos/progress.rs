//! What is seen while a run goes on: on a terminal a line that changes, otherwise nothing.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::checker::REPAIR;

/// A line that says how far it is.
pub(crate) struct Progress {
    /// `None` if nobody looks.
    history: Option<std::fs::File>,
    grants: usize,
    faults: usize,
    refused: usize,
    tail: String,
    /// How it is written down that something was put right, which is no fault.
    repair: String,
}

impl Progress {
    pub(crate) fn of(history: &Path) -> Self {
        let watched = std::io::stderr().is_terminal();
        Self {
            history: watched.then(|| std::fs::File::open(history).ok()).flatten(),
            grants: 0,
            faults: 0,
            refused: 0,
            tail: String::new(),
            repair: format!(r#""kind":"{REPAIR}""#),
        }
    }

    /// Says what is happening now.
    pub(crate) fn say(&mut self, elapsed: Duration, what: &str) {
        let Some(history) = &mut self.history else {
            return;
        };
        // Whole lines only: the rest comes with the next look.
        let _ = history.read_to_string(&mut self.tail);
        let whole = self.tail.rfind('\n').map_or(0, |end| end + 1);
        for line in self.tail[..whole].lines() {
            let granted = line.contains(r#""event":"ok""#) && line.contains(r#""fence""#);
            self.grants += usize::from(granted);
            let broken = line.contains(r#""event":"fault""#) && !line.contains(&self.repair);
            self.faults += usize::from(broken);
            self.refused += usize::from(line.contains(r#""event":"write_refused""#));
        }
        self.tail.drain(..whole);
        let line = format!(
            "{:6.1} s  faults {}  grants {}  refused writes {}  {what}",
            elapsed.as_secs_f64(),
            self.faults,
            self.grants,
            self.refused
        );
        let _ = write!(std::io::stderr(), "\r\x1b[K{line:.100}");
    }
}

/// Leaves the line.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.history.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
