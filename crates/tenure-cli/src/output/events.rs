//! `run --json`: what happens, as one JSON object per line. The last line says how it ended.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::codes::Code;
use super::failure::{Failure, Result};
use crate::args::JsonTarget;

/// Where events go; nowhere if nobody asked.
#[derive(Debug, Default)]
pub struct Events {
    file: Option<File>,
}

impl Events {
    /// Opens the target.
    ///
    /// # Errors
    /// If the file cannot be opened, or the descriptor is not open.
    pub fn open(target: Option<&JsonTarget>) -> Result<Self> {
        let Some(target) = target else {
            return Ok(Self::default());
        };
        let opened = match target {
            JsonTarget::File(path) => OpenOptions::new().create(true).append(true).open(path),
            JsonTarget::Descriptor(number) => duplicate(*number).map(File::from),
        };
        let file = opened.map_err(|error| {
            let target = match target {
                JsonTarget::File(path) => path.display().to_string(),
                JsonTarget::Descriptor(number) => format!("fd:{number}"),
            };
            Failure::new(
                Code::Usage,
                format!("cannot write events to {target}: {error}"),
            )
        })?;
        Ok(Self { file: Some(file) })
    }

    /// Whether anybody listens.
    pub fn wanted(&self) -> bool {
        self.file.is_some()
    }

    /// Writes the last event.
    pub fn end(&self, end: &End) {
        self.write("end", serde_json::to_value(end).unwrap_or_default());
    }

    /// Writes `{"event":event, ...fields}`. A reader that is gone must not end the job, so errors
    /// are dropped.
    pub fn write(&self, event: &str, fields: Value) {
        let Some(mut file) = self.file.as_ref() else {
            return;
        };
        let mut object = Map::new();
        object.insert("event".into(), event.into());
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        // One write per line, so that lines of several processes do not mix in one file.
        let _ = file.write_all(format!("{}\n", Value::Object(object)).as_bytes());
    }
}

/// The last event: how a run ended, for scripts that want to be sure. Always with all fields.
#[derive(Debug, Default, Serialize)]
pub struct End {
    /// `ok`, `child_failed`, `busy`, `skipped`, `lost`, `interrupted`, …
    pub outcome: &'static str,
    /// What the command returned; null if it did not.
    pub child_code: Option<i32>,
    /// What signal ended the command (or, while waiting, us); null if none did.
    pub signal: Option<i32>,
    /// How long the lock was waited for.
    pub waited_ms: u64,
    /// How long it was held.
    pub held_ms: u64,
    /// The fence, as a string; null if it was never held.
    pub fence: Option<String>,
    /// The exit code of tenure.
    pub exit_code: u8,
    /// Code, message and facts, if there is something to complain about.
    pub error: Option<Value>,
}

/// A failure as a JSON value: the same words as on the terminal.
pub fn failure(failure: &Failure) -> Value {
    let facts: Map<String, Value> = failure
        .facts()
        .iter()
        .map(|(label, text)| ((*label).into(), json!(text)))
        .collect();
    json!({ "code": failure.code.text(), "message": failure.what(), "facts": facts })
}

fn duplicate(number: i32) -> std::io::Result<OwnedFd> {
    #[allow(
        unsafe_code,
        reason = "a descriptor that the user named can only be borrowed by number"
    )]
    // SAFETY: only used to ask the kernel for a duplicate, which fails if the number is not open;
    // nothing in this process owns or closes descriptors that it did not open itself meanwhile.
    let given = unsafe { BorrowedFd::borrow_raw(number) };
    let ours = fcntl_dupfd_cloexec(given, 3)?;
    if number > 2 {
        // It was meant for us: the job would keep a pipe's reader waiting.
        fcntl_setfd(given, FdFlags::CLOEXEC)?;
    }
    Ok(ours)
}
