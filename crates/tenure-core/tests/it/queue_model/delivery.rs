//! What a message does when it arrives, at the server and at a client.

use tenure_core::{Decision, Fence, Grant, Outcome};

use super::client::{Ask, Stage, TTL, action, client_of, owner, ticks_after};
use super::message::{Event, Message, News};
use super::model::{Found, Rule, Rules};
use super::world::World;

impl World {
    pub(super) fn arrives(mut self, message: Message, rules: Rules<'_>) -> Vec<Self> {
        match message {
            Message::News {
                to,
                ask,
                news,
                sent,
            } => {
                self.hears(to, ask, news, sent, rules);
                vec![self]
            }
            Message::Request {
                from,
                ask,
                life,
                sent,
            } => self.decides(from, ask, life, sent, rules),
        }
    }

    fn decides(mut self, from: u8, ask: Ask, life: u8, sent: u16, rules: Rules<'_>) -> Vec<Self> {
        let now = self.now;
        let before = self.server.lock.clone();
        let decision = self
            .server
            .decide(life, &action(from, ask, sent), now, rules);
        let Some(decision) = decision else {
            let news = News::OtherLife(self.server.life);
            return self.answered(from, ask, news, sent, rules);
        };
        for holder in &decision.state.holders {
            let new = before.holder(holder.owner).is_none();
            if new && !matches!(ask, Ask::Renew(_)) {
                if holder.fence <= self.highest {
                    self.found = Some(Found::FenceRepeated);
                }
                self.highest = self.highest.max(holder.fence);
            }
        }
        if let Outcome::Granted(_) | Outcome::Renewed { .. } = decision.outcome {
            // A repeated question is answered with what there is, which may be a claim window.
            let had = before.holder(owner(from)).is_some() && ask == Ask::Acquire;
            let client = &mut self.clients[usize::from(from)];
            client.whole |= !had;
            client.ghost |= !had && client.stage == Stage::Done;
        }
        for handover in &decision.handovers {
            self.clients[usize::from(client_of(handover.owner))].whole = false;
        }
        let news = match decision.outcome {
            Outcome::Granted(Grant { fence, expiry }) => News::Yours {
                fence,
                lasts: ticks_after(expiry, now),
            },
            Outcome::Renewed { expiry } => News::Yours {
                fence: Fence::NONE,
                lasts: ticks_after(expiry, now),
            },
            Outcome::NotHeld { .. } => News::NotYours,
            _ => News::Wait,
        };
        let told = self.answered(from, ask, news, sent, rules);
        told.into_iter()
            .flat_map(|world| world.pushes(&decision, rules))
            .collect()
    }

    /// The answer arrives at once, or late, or never.
    fn answered(self, to: u8, ask: Ask, news: News, sent: u16, rules: Rules<'_>) -> Vec<Self> {
        let client = &self.clients[usize::from(to)];
        if client.has_ended() {
            return vec![self];
        }
        let message = Message::News {
            to,
            ask,
            news,
            sent,
        };
        let mut all = Vec::new();
        if client.paused {
            let mut held_back = self;
            held_back.holds_back(message);
            return vec![held_back];
        }
        if self.left.losses > 0 {
            let mut lost = self.wrong(Event::ReplyLost);
            lost.left.losses -= 1;
            all.push(lost);
        }
        if self.left.delays > 0 {
            let mut late = self.wrong(Event::ReplyLate);
            late.left.delays -= 1;
            late.holds_back(message);
            all.push(late);
        }
        all.extend(self.arrives(message, rules));
        all
    }

    fn pushes(self, decision: &Decision, rules: Rules<'_>) -> Vec<Self> {
        let Some(handover) = decision.handovers.first() else {
            return vec![self];
        };
        let to = client_of(handover.owner);
        let client = &self.clients[usize::from(to)];
        let until = self.now + ticks_after(handover.expiry, self.now);
        let fence = handover.fence;
        let message = Message::News {
            to,
            ask: Ask::Acquire,
            news: News::Pushed { fence, until },
            sent: self.now,
        };
        if client.has_ended() {
            return vec![self];
        }
        let mut all = Vec::new();
        if client.paused {
            let mut held_back = self;
            held_back.holds_back(message);
            return vec![held_back];
        }
        if self.left.losses > 0 {
            let mut lost = self.wrong(Event::PushLost);
            lost.left.losses -= 1;
            all.push(lost);
        }
        if self.left.delays > 0 {
            let mut late = self.wrong(Event::PushLate);
            late.left.delays -= 1;
            late.holds_back(message);
            all.push(late);
        }
        all.extend(self.arrives(message, rules));
        all
    }

    fn hears(&mut self, to: u8, ask: Ask, news: News, sent: u16, rules: Rules<'_>) {
        let now = self.now;
        let counted_from = if rules.keep(Rule::ValidityFromTheSend) {
            sent
        } else {
            now
        };
        let client = &mut self.clients[usize::from(to)];
        match (news, client.stage) {
            (News::OtherLife(life), _) => client.life = client.life.max(life),
            (News::Yours { fence, lasts }, Stage::Waiting { .. }) => {
                let until = counted_from + lasts;
                if now < until {
                    client.stage = Stage::Holds {
                        fence,
                        since: now,
                        until,
                        unclaimed: lasts < TTL,
                    };
                }
            }
            (News::Pushed { fence, until }, Stage::Waiting { .. }) if now < until => {
                client.stage = Stage::Holds {
                    fence,
                    since: now,
                    until,
                    unclaimed: true,
                };
            }
            (News::Yours { lasts, .. }, Stage::Holds { .. }) if matches!(ask, Ask::Renew(_)) => {
                if let Stage::Holds { until, .. } = &mut client.stage {
                    *until = (*until).max(counted_from + lasts);
                }
            }
            (News::NotYours, Stage::Holds { .. }) if matches!(ask, Ask::Renew(_)) => {
                client.stage = Stage::Done;
            }
            _ => {}
        }
    }
}
