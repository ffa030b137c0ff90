//! What a client believes, and what it has asked.

use super::{Client, Configuration, Question, Rule, TTL};

impl Client {
    /// It was told of this lease: until when it believes that.
    pub(super) fn relies(
        &mut self,
        on: Configuration,
        lease: u8,
        now: u8,
        keeps: &impl Fn(Rule) -> bool,
    ) {
        let its = |about: Configuration| match keeps(Rule::TheEpochCounts) {
            true => about == on,
            false => about.server == on.server,
        };
        let Some((_, asked)) = self.confirmed.filter(|(about, _)| its(*about)) else {
            return;
        };
        let until = match keeps(Rule::NoLongerThanAConfirmation) {
            true => lease.min(asked + TTL),
            false => lease,
        };
        self.until = self.until.max(Some(until).filter(|until| *until > now));
    }
}

impl Question {
    pub(super) fn new(about: Configuration, asked: u8, lease: Option<u8>) -> Self {
        Self {
            about,
            asked,
            agreed: 0,
            lease,
        }
    }

    /// Whoever agrees now, has agreed.
    pub(super) fn hear(&mut self, sentinels: &[Configuration; 3], epoch_counts: bool) {
        for (number, named) in sentinels.iter().enumerate() {
            let same = !epoch_counts || named.epoch == self.about.epoch;
            if named.server == self.about.server && same {
                self.agreed |= 1 << number;
            }
        }
    }
}
