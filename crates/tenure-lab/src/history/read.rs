//! [`History`]: what was written down, in order of time.

use std::fmt;
use std::path::Path;

use super::{Event, Terms, What};

/// All that was written down in one run, in order of time.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Sorted by time.
    pub events: Vec<Event>,
}

/// A history that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    what: String,
}

impl History {
    /// Of these events, in whatever order.
    #[must_use]
    pub fn new(mut events: Vec<Event>) -> Self {
        events.sort_by_key(|event| event.at);
        Self { events }
    }

    /// Reads a file of one event per line.
    ///
    /// # Errors
    /// [`Unreadable`] that names the file or the line.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        let text = std::fs::read_to_string(path).map_err(|cause| Unreadable {
            what: format!("{}: {cause}", path.display()),
        })?;
        text.parse()
    }

    /// What is promised in this run. Absent in a history that somebody else wrote: then only safety is
    /// judged.
    #[must_use]
    pub fn terms(&self) -> Option<&Terms> {
        self.events.iter().find_map(|event| match &event.what {
            What::Run(terms) => Some(terms),
            _ => None,
        })
    }
}

impl std::str::FromStr for History {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let events = lines.map(|(index, line)| {
            serde_json::from_str(line).map_err(|cause| Unreadable {
                what: format!("line {}: {cause}", index + 1),
            })
        });
        Ok(Self::new(events.collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a history: {}", self.what)
    }
}

impl std::error::Error for Unreadable {}
