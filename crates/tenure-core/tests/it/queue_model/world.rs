//! One state of everything, and what can happen next.

use std::rc::Rc;

use tenure_core::Fence;

use super::client::{ALIVE, Ask, CLAIM, Client, Stage, TTL, client_of};
use super::message::{Event, Message, Trail};
use super::model::{Faults, Found, Rule, Rules};
use super::server::Server;

/// How long nobody may hold the lock while somebody waits and all is well: a claim window that nobody
/// used, a sign of life, and the tick in which it happened.
const PATIENCE: u8 = CLAIM as u8 + 2;
/// After this long nothing is left of anybody.
const ENDED: u8 = (ALIVE + CLAIM + TTL) as u8;

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) now: u16,
    pub(super) left: Faults,
    pub(super) server: Server,
    pub(super) clients: Vec<Client>,
    /// What is under way for long. Sorted: messages overtake each other anyway.
    pub(super) late: Vec<Message>,
    /// The highest fence that was ever given.
    pub(super) highest: Fence,
    /// For how many ticks nothing was wrong, nobody held the lock, and somebody waited.
    pub(super) waited: u8,
    /// For how many ticks nobody was there.
    pub(super) alone: u8,
    pub(super) found: Option<Found>,
    trail: Option<Rc<Trail>>,
}

impl World {
    pub(super) fn new(clients: u8, faults: Faults) -> Self {
        Self {
            now: 0,
            left: faults,
            server: Server::new(),
            clients: vec![Client::NEW; usize::from(clients)],
            late: Vec::new(),
            highest: Fence::NONE,
            waited: 0,
            alone: 0,
            found: None,
            trail: None,
        }
    }

    /// All that can happen next.
    pub(super) fn successors(&self, rules: Rules<'_>, next: &mut Vec<Self>) {
        self.time_passes(rules, next);
        self.somebody_asks(rules, next);
        self.something_arrives_late(rules, next);
        self.something_goes_wrong(rules, next);
        next.iter_mut().for_each(Self::judge);
    }

    /// A copy to which this happens.
    fn after(&self, event: Event) -> Self {
        let before = self.trail.clone();
        Self {
            trail: Some(Rc::new(Trail { event, before })),
            ..self.clone()
        }
    }

    /// Something went wrong: whatever was waited for is waited for anew.
    pub(super) fn wrong(&self, event: Event) -> Self {
        Self {
            waited: 0,
            ..self.after(event)
        }
    }

    /// How it came to this, one event per line.
    pub(super) fn story(&self) -> String {
        let mut lines = Vec::new();
        let mut trail = &self.trail;
        while let Some(it) = trail {
            lines.push(format!("{:?}", it.event));
            trail = &it.before;
        }
        lines.reverse();
        lines.join("\n")
    }

    fn time_passes(&self, rules: Rules<'_>, next: &mut Vec<Self>) {
        let asks_again = rules.keep(Rule::WaitersAskAgain);
        let mut clients = self.clients.iter();
        if clients.any(|client| client.owes(self.now, asks_again)) || self.alone > ENDED {
            return;
        }
        let mut world = self.after(Event::Tick);
        world.now += 1;
        world.server.tidy(world.now);
        for client in &mut world.clients {
            if let Stage::Holds { fence, until, .. } = client.stage
                && until <= world.now
            {
                client.stage = Stage::Lost { fence };
            }
        }
        world.count();
        next.push(world);
    }

    /// Counts for how long somebody has waited although nothing was wrong.
    fn count(&mut self) {
        let well = self.late.is_empty()
            && self.server.is_open(self.now)
            && self.clients.iter().all(|client| !client.paused);
        let waits = |client: &Client| matches!(client.stage, Stage::Waiting { .. });
        let held = self.clients.iter().any(|it| it.is_valid(self.now));
        // Whoever died after it was given it by an answer costs its ttl, and so does a question that
        // arrives again after what it got was given back.
        let abandoned = self.server.lock.holders.iter().any(|holder| {
            let client = &self.clients[usize::from(client_of(holder.owner))];
            client.stage == Stage::Dead && client.whole || client.ghost
        });
        let counts = well && !held && !abandoned && self.clients.iter().any(waits);
        self.waited = if counts { self.waited + 1 } else { 0 };
        let ended = self.late.is_empty() && self.clients.iter().all(Client::has_ended);
        self.alone = if ended { self.alone + 1 } else { 0 };
        if self.waited > PATIENCE {
            self.found = Some(Found::Starved);
        }
        if self.alone > ENDED && !self.server.lock.is_idle() {
            self.found = Some(Found::Leak);
        }
    }

    fn somebody_asks(&self, rules: Rules<'_>, next: &mut Vec<Self>) {
        for (from, client) in (0..).zip(&self.clients) {
            if client.paused {
                continue;
            }
            match client.stage {
                Stage::Idle => self.sends(from, Ask::Acquire, rules, next),
                Stage::Waiting { asked } => {
                    if asked < self.now && rules.keep(Rule::WaitersAskAgain) {
                        self.sends(from, Ask::Acquire, rules, next);
                    }
                    if self.left.cancels > 0 {
                        self.sends(from, Ask::Cancel, rules, next);
                    }
                }
                Stage::Holds {
                    fence, unclaimed, ..
                } => {
                    if unclaimed || !client.renewed {
                        self.sends(from, Ask::Renew(fence), rules, next);
                    }
                    self.sends(from, Ask::Release(fence), rules, next);
                }
                Stage::Lost { fence } => self.sends(from, Ask::Release(fence), rules, next),
                Stage::Done | Stage::Dead => {}
            }
        }
    }

    /// What is sent arrives at once, or late, or both, or never.
    fn sends(&self, from: u8, ask: Ask, rules: Rules<'_>, next: &mut Vec<Self>) {
        let mut world = self.after(Event::Sent { from, ask });
        let client = &mut world.clients[usize::from(from)];
        match (ask, &mut client.stage) {
            (Ask::Acquire, stage) => *stage = Stage::Waiting { asked: self.now },
            (Ask::Renew(_), Stage::Holds { unclaimed, .. }) => {
                *unclaimed = false;
                client.renewed = true;
            }
            (Ask::Cancel, stage) => {
                *stage = Stage::Done;
                world.left.cancels -= 1;
            }
            (_, stage) => *stage = Stage::Done,
        }
        let request = Message::Request {
            from,
            ask,
            life: world.clients[usize::from(from)].life,
            sent: self.now,
        };
        // Whoever gives something back tells the store until it knows.
        let insists = matches!(ask, Ask::Cancel | Ask::Release(_));
        if world.left.losses > 0 && !insists {
            let mut lost = world.wrong(Event::LostOnItsWay);
            lost.left.losses -= 1;
            next.push(lost);
        }
        if world.left.delays > 0 {
            let mut late = world.wrong(Event::LateOnItsWay);
            late.left.delays -= 1;
            late.holds_back(request);
            if !insists {
                next.push(late.clone());
            }
            next.extend(late.arrives(request, rules));
        }
        next.extend(world.arrives(request, rules));
    }

    pub(super) fn holds_back(&mut self, message: Message) {
        self.late.push(message);
        self.late.sort_unstable();
    }

    fn something_arrives_late(&self, rules: Rules<'_>, next: &mut Vec<Self>) {
        for index in 0..self.late.len() {
            let message = self.late[index];
            let mut world = self.wrong(Event::Arrived(message));
            match message {
                Message::News { to, .. } if self.clients[usize::from(to)].paused => continue,
                _ => {}
            }
            world.late.remove(index);
            next.extend(world.arrives(message, rules));
        }
    }

    fn something_goes_wrong(&self, rules: Rules<'_>, next: &mut Vec<Self>) {
        for (number, client) in (0..).zip(&self.clients) {
            let index = usize::from(number);
            if self.left.crashes > 0 && !client.has_ended() {
                let mut world = self.wrong(Event::Died(number));
                world.left.crashes -= 1;
                world.clients[index] = Client {
                    stage: Stage::Dead,
                    paused: false,
                    ..*client
                };
                world
                    .late
                    .retain(|it| !matches!(it, Message::News { to, .. } if *to == number));
                next.push(world);
            }
            if self.left.pauses > 0 && !client.paused && !client.has_ended() {
                let mut world = self.wrong(Event::Paused(number));
                world.left.pauses -= 1;
                world.clients[index].paused = true;
                next.push(world);
            }
            if client.paused {
                let mut world = self.wrong(Event::Resumed(number));
                world.clients[index].paused = false;
                next.push(world);
            }
        }
        if self.left.restarts > 0 {
            let mut world = self.wrong(Event::Restarted);
            world.left.restarts -= 1;
            world.server.restart(self.now, rules);
            next.push(world);
        }
    }

    fn judge(&mut self) {
        let valid = self.clients.iter().filter(|it| it.is_valid(self.now));
        if valid.count() > 1 {
            self.found = Some(Found::TwoHolders);
        }
    }
}
