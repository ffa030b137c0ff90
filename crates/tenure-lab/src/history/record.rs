//! [`Recorder`]: appends to a history, one `write` per event, so that lines of several processes never
//! mix and a process that is killed leaves no half of one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure::clock::SystemClock;

use super::{Event, What};

/// Writes down what happens in one process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorder {
    process: u32,
    file: Arc<File>,
    calls: Arc<AtomicU64>,
}

impl Recorder {
    /// Appends to the file at `path`, which is made if it is not there.
    ///
    /// # Errors
    /// Whatever keeps the file from being opened.
    pub fn open(path: &Path, process: u32) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self {
            process,
            file: Arc::new(file),
            calls: Arc::default(),
        })
    }

    /// A number that no other call of this process has.
    #[must_use]
    pub fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes down that this happens now.
    ///
    /// # Panics
    /// If the history cannot be written: a run without one proves nothing.
    pub fn note(&self, task: u32, what: What) {
        let event = Event {
            at: now(),
            process: self.process,
            task,
            what,
        };
        let mut line = serde_json::to_vec(&event).expect("every event can be written as JSON");
        line.push(b'\n');
        (&*self.file)
            .write_all(&line)
            .expect("the history can be written");
    }
}

/// Nanoseconds since the machine was started, by the clock that leases are judged by.
#[must_use]
pub fn now() -> u64 {
    SystemClock::read().as_nanos()
}
