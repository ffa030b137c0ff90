//! [`Party`]: who is behind an owner id, in words for people.

use std::fmt;
use std::sync::Arc;

/// Who holds or waits, for people to read. Never used to decide who gets in.
///
/// Control characters are replaced, so that a label cannot play tricks on the terminal of whoever
/// reads it, and each text is cut at 200 characters.
///
/// Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Party {
    who: Arc<str>,
    label: Arc<str>,
    host: Arc<str>,
    pid: u32,
}

impl Party {
    /// A party: `who` is usually `user@host`, `label` is free text (may be empty).
    #[must_use]
    pub fn new(who: &str, label: &str, host: &str, pid: u32) -> Self {
        Self {
            who: tame(who),
            label: tame(label),
            host: tame(host),
            pid,
        }
    }

    /// Usually `user@host`.
    #[must_use]
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Free text, often empty.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The machine.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The process on that machine.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.label.is_empty() {
            write!(f, "{} (", self.label)?;
        }
        write!(f, "{} pid {}", self.who, self.pid)?;
        if !self.host.is_empty() && !self.who.ends_with(&format!("@{}", self.host)) {
            write!(f, " on {}", self.host)?;
        }
        if !self.label.is_empty() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

fn tame(text: &str) -> Arc<str> {
    let tamed: String = text
        .chars()
        .take(200)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    tamed.into()
}
