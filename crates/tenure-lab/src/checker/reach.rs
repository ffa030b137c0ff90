//! [`Reach`]: how much of a history one question was asked of, what was left out, and why. Without it
//! "no violation" could mean that nothing was looked at.

use super::{Check, Verdict};

/// How much of a history one question was asked of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// So many things were judged. 0: nothing is known, whatever was not found.
    pub judged: usize,
    /// What those things are.
    pub things: String,
    /// What was not judged, each with its reason.
    pub left_out: Vec<String>,
}

impl Reach {
    /// So many of these.
    pub(super) fn of(judged: usize, things: &str) -> Self {
        Self {
            judged,
            things: things.to_owned(),
            left_out: Vec::new(),
        }
    }

    /// The question was not asked at all.
    pub(super) fn none(why: &str) -> Self {
        Self::default().but(why)
    }

    /// This was left out.
    pub(super) fn but(mut self, why: &str) -> Self {
        self.left_out.push(why.to_owned());
        self
    }

    /// This was left out if that is so.
    pub(super) fn but_if(self, so: bool, why: &str) -> Self {
        if so { self.but(why) } else { self }
    }

    /// `812 grants`, or that there were none.
    pub(super) fn words(&self) -> String {
        match self.judged {
            0 => "nothing".to_owned(),
            judged => format!("{judged} {}", self.things),
        }
    }
}

impl Verdict {
    /// How much of the history this question was asked of.
    #[must_use]
    pub fn reach(&self, check: Check) -> Reach {
        self.reaches.get(&check).cloned().unwrap_or_default()
    }

    /// Nobody held, wrote or asked a store for anything that could be judged: that nothing was found
    /// means nothing. Waiting alone (C5, C6) does not count, as a lock that nobody ever gets is safe.
    #[must_use]
    pub fn proves_nothing(&self) -> bool {
        let safety = [Check::C1, Check::C2, Check::C3, Check::C4];
        safety.iter().all(|check| self.reach(*check).judged == 0)
    }
}
