//! What a client believes, and what it has asked, also once more.

use super::{Client, Configuration, Question, Rule, World};

impl Client {
    /// It was told of this lease: until when it believes that.
    pub(super) fn relies(
        &mut self,
        on: Configuration,
        lease: u8,
        (now, ttl): (u8, u8),
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
            true => lease.min(asked + ttl),
            false => lease,
        };
        self.until = self.until.max(Some(until).filter(|until| *until > now));
    }
}

impl Question {
    pub(super) fn new(about: Configuration, asked: u8, lease: Option<(u8, u8)>) -> Self {
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

impl World {
    /// Of what was pushed to it in vain: on either server.
    pub(super) fn asks_again(&self, number: usize, granted_anew: bool, next: &mut Vec<Self>) {
        if !self.clients[number].was_not_told {
            return;
        }
        for (address, server) in (0..).zip(&self.servers) {
            let life = server.life.filter(|life| life.opens <= self.now);
            let stored = server.holder.filter(|hold| hold.client == number);
            let (Some(life), Some(mut hold)) = (life, stored) else {
                continue;
            };
            if granted_anew && hold.fence < life.opens {
                hold.fence = self.fence();
            }
            let mut world = self.clone();
            world.store(address, number, hold.until, hold.fence);
            let about = Configuration {
                server: address,
                epoch: life.epoch,
            };
            let lease = hold.until.min(self.now + self.left.ttl);
            let client = &mut world.clients[number];
            client.question = Some(Question::new(about, self.now, Some((lease, hold.fence))));
            next.push(world);
        }
    }
}
