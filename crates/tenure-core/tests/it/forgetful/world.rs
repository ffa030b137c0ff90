//! One state of everything, and what can happen next.

use std::rc::Rc;

use tenure_core::{Decision, Fence, Grant, Mode, Outcome};

use super::client::{Ask, CLIENTS, Client, Message, Stage, UNLUCKY, action, client_of, knew};
use super::model::{Bounds, Found, Rule, Rules};
use super::server::{Fault, Server, TTL, ticks};

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) left: Bounds,
    pub(super) now: u8,
    pub(super) server: Server,
    pub(super) clients: [Client; CLIENTS as usize],
    /// What is under way for long. Sorted: messages overtake each other anyway.
    pub(super) late: Vec<Message>,
    /// The highest fence that was ever given.
    pub(super) highest: Fence,
    pub(super) found: Option<Found>,
    /// How it came to this, for people.
    trail: Option<Rc<Trail>>,
}

#[derive(Debug)]
struct Trail {
    event: Event,
    before: Option<Rc<Trail>>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Tick,
    Sent(Message),
    Arrived(Message),
    Forgot(Fault),
    GaveUpEarly(u8),
}

impl World {
    pub(super) fn new(bounds: Bounds) -> Self {
        let mut server = Server::new(bounds.kind);
        server.hello(false, 0, Rules(&[]));
        Self {
            left: bounds,
            now: 0,
            server,
            clients: [Client::NEW; CLIENTS as usize],
            late: Vec::new(),
            highest: Fence::NONE,
            found: None,
            trail: None,
        }
    }

    /// All that can happen next.
    pub(super) fn successors(&self, rules: Rules<'_>, next: &mut Vec<Self>) {
        self.time_passes(next);
        self.something_is_sent(rules, next);
        self.something_arrives_late(rules, next);
        self.something_goes_wrong(next);
        self.somebody_gives_up_early(next);
        next.iter_mut().for_each(Self::judge);
    }

    /// A copy to which this happens.
    fn after(&self, event: Event) -> Self {
        let before = self.trail.clone();
        let trail = Some(Rc::new(Trail { event, before }));
        Self {
            trail,
            ..self.clone()
        }
    }

    /// How it came to this, one event per line.
    pub(super) fn story(&self) -> String {
        let mut lines = Vec::new();
        let mut trail = &self.trail;
        while let Some(it) = trail {
            lines.push(match it.event {
                Event::Tick => "a tick".to_owned(),
                Event::Sent(message) => format!("sent {message:?}"),
                Event::Arrived(message) => format!("arrived late {message:?}"),
                Event::Forgot(fault) => format!("the server forgets: {fault:?}"),
                Event::GaveUpEarly(client) => format!("the clock of {client} is fast"),
            });
            trail = &it.before;
        }
        lines.reverse();
        lines.join("\n")
    }

    fn time_passes(&self, next: &mut Vec<Self>) {
        if self.now == self.left.ticks {
            return;
        }
        let mut world = self.after(Event::Tick);
        world.now += 1;
        world.server.tidy(world.now);
        for client in &mut world.clients {
            if let Stage::Holds { fence, until } = client.stage
                && until <= world.now
            {
                client.stage = Stage::Lost { fence };
            }
        }
        next.push(world);
    }

    /// What is sent arrives at once, or late, or both. Whoever sends has said hello just before: on a
    /// new connection, or because it was told that the server has begun another life.
    fn something_is_sent(&self, rules: Rules<'_>, next: &mut Vec<Self>) {
        for (from, client) in (0..).zip(&self.clients) {
            for (ask, afterwards) in client.may_send(from) {
                let mut world = self.clone();
                let message = Message {
                    from,
                    ask,
                    life: world.server.hello(knew(from), self.now, rules),
                    sent: self.now,
                };
                let mut world = world.after(Event::Sent(message));
                world.clients[usize::from(from)] = afterwards;
                if self.left.late > 0 && from == UNLUCKY {
                    let mut late = world.clone();
                    late.left.late -= 1;
                    late.late.push(message);
                    late.late.sort_unstable();
                    next.extend(late.clone().arrived(message, rules));
                    next.push(late);
                }
                next.extend(world.arrived(message, rules));
            }
        }
    }

    fn something_arrives_late(&self, rules: Rules<'_>, next: &mut Vec<Self>) {
        for index in 0..self.late.len() {
            let message = self.late[index];
            let mut world = self.after(Event::Arrived(message));
            world.late.remove(index);
            next.extend(world.arrived(message, rules));
        }
    }

    fn something_goes_wrong(&self, next: &mut Vec<Self>) {
        if self.left.faults == 0 {
            return;
        }
        for fault in Fault::ALL {
            let off = u8::from(matches!(fault, Fault::PromotionAhead(_)));
            let kept = u8::from(fault == Fault::RestartKept);
            let (Some(server), Some(clocks), Some(kept)) = (
                self.server.forget(fault, self.now),
                self.left.clocks.checked_sub(off),
                self.left.kept.checked_sub(kept),
            ) else {
                continue;
            };
            let mut world = self.after(Event::Forgot(fault));
            world.left.faults -= 1;
            world.left.clocks = clocks;
            world.left.kept = kept;
            world.server = server;
            next.push(world);
        }
    }

    /// A fast clock says that a lease is over a little before it is. A slow one makes no difference: whoever
    /// has it believes for less than the lease by as much as it may be slow, so until its end at most.
    fn somebody_gives_up_early(&self, next: &mut Vec<Self>) {
        if self.left.clocks == 0 {
            return;
        }
        for (number, client) in (0..).zip(&self.clients) {
            let Stage::Holds { fence, until } = client.stage else {
                continue;
            };
            if until == self.now + 1 {
                let mut world = self.after(Event::GaveUpEarly(number));
                world.left.clocks -= 1;
                world.clients[usize::from(number)].stage = Stage::Lost { fence };
                next.push(world);
            }
        }
    }

    fn arrived(mut self, message: Message, rules: Rules<'_>) -> Vec<Self> {
        let Message {
            from, life, sent, ..
        } = message;
        let before = self.server.data.lock.clone();
        let action = action(from, message.ask, self.left.cast[usize::from(from)]);
        let Some(decision) = self.server.decide(life, &action, self.now, rules) else {
            return vec![self];
        };
        if !matches!(message.ask, Ask::Renew(_)) {
            for holder in &decision.state.holders {
                let new = !before.holders.iter().any(|old| old.owner == holder.owner);
                if new && holder.fence <= self.highest {
                    self.found = Some(Found::FenceRepeated);
                }
                self.highest = self.highest.max(holder.fence);
            }
        }
        self.answered(message, sent, &decision, rules);
        self.pushed(&decision)
    }

    /// The answer reaches the client. Late answers are those to late requests: what counts is when
    /// they were sent.
    fn answered(&mut self, message: Message, sent: u8, decision: &Decision, rules: Rules<'_>) {
        let now = self.now;
        let shown = self.server.time(now);
        let slow = u8::from(!rules.keep(Rule::AMarginForSlowClocks) && message.from == UNLUCKY);
        let client = &mut self.clients[usize::from(message.from)];
        let until = match decision.outcome {
            Outcome::Granted(Grant { expiry, .. }) | Outcome::Renewed { expiry } => {
                sent + ticks(expiry.since(shown)).min(TTL) + slow
            }
            _ => sent,
        };
        match (message.ask, &decision.outcome, client.stage) {
            (Ask::Acquire, Outcome::Granted(grant), Stage::Asked) if now < until => {
                let fence = grant.fence;
                client.stage = Stage::Holds { fence, until };
            }
            (Ask::Renew(_), Outcome::Renewed { .. }, Stage::Holds { fence, until: old }) => {
                let until = until.max(old);
                client.stage = Stage::Holds { fence, until };
            }
            (Ask::Renew(_), Outcome::Renewed { .. }, Stage::Lost { fence })
                if now < until && !rules.keep(Rule::LostIsFinal) =>
            {
                client.stage = Stage::Holds { fence, until };
            }
            (Ask::Renew(_), Outcome::NotHeld { .. }, Stage::Holds { fence, .. }) => {
                self.found = Some(Found::ValidHolderLost);
                client.stage = Stage::Lost { fence };
            }
            _ => {}
        }
    }

    /// A push is seen at once or never: seen late, it is worth less.
    fn pushed(self, decision: &Decision) -> Vec<Self> {
        let Some(handover) = decision.handovers.first() else {
            return vec![self];
        };
        let mut told = self.clone();
        let client = &mut told.clients[usize::from(client_of(handover.owner))];
        if client.stage == Stage::Asked {
            client.stage = Stage::Holds {
                fence: handover.fence,
                until: self.now + TTL,
            };
        }
        vec![told, self]
    }

    fn judge(&mut self) {
        let clients = self.clients.iter().zip(self.left.cast);
        let valid = clients.filter(|(client, _)| client.is_valid(self.now));
        let (readers, all) = valid.fold((0, 0), |(readers, all), (_, mode)| {
            (readers + u8::from(mode == Mode::Shared), all + 1)
        });
        if all > 1 && readers < all {
            self.found = Some(Found::TwoHolders);
        }
    }
}
