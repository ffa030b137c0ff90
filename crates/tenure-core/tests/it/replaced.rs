//! An exhaustive exploration of primaries that are replaced and live on, as under Sentinel: two servers, three sentinels
//! of which any may at any moment promote the server that it does not name, clients that take a lock and keep it.
//! Every sentinel hears of the others, or does not, at a moment of its own; every reachable state is visited.
//!
//! With all rules of `docs/decisions/009-sentinel.md`, no two clients ever believe that they hold the lock at the same
//! time. Without any one of them, they do: the tests below would notice if a rule were dropped, or were not needed.
//!
//! A server here is one lock, a life and nothing else: what it does with requests is modelled in `forgetful`.

use std::collections::{BTreeSet, VecDeque};

/// The longest lease, in ticks, and how long a new life lets nobody in.
const TTL: u8 = 2;

const CLIENTS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A grant counts after a question that was asked when it had arrived, and not because of an earlier one.
    ConfirmedAfterwards,
    /// No hold is relied upon for longer than `TTL` after the last confirmation was asked for.
    NoLongerThanAConfirmation,
    /// A life begins after a majority has named its server, and not when one has.
    LivesBeginWithAMajority,
    /// A sentinel that names the server in another epoch than that of the life does not confirm it.
    TheEpochCounts,
    /// A life waits before it lets anybody in.
    LivesWait,
    /// A sentinel takes on only what has a higher epoch.
    NobodyGoesBack,
}

/// How far to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Left {
    ticks: u8,
    failovers: u8,
    /// How often a server becomes a replica of the other.
    copies: u8,
    /// How many epochs a failover may leave out, as after an election that came to nothing: only then do two
    /// sentinels ever give two servers the same one.
    gap: u8,
}

/// A primary as a sentinel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Configuration {
    server: u8,
    epoch: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Life {
    epoch: u8,
    opens: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Server {
    /// `None`: a replica, or promoted and not met yet.
    life: Option<Life>,
    /// Who holds the lock, until when.
    holder: Option<(usize, u8)>,
}

/// Asked of all sentinels. Each answers as soon as it agrees: hearing of that later allows nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    about: Configuration,
    asked: u8,
    /// Which of them have agreed.
    agreed: u8,
    /// The lease that counts if a majority does.
    lease: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Client {
    /// Whether it has asked for the lock; it does so once.
    has_asked: bool,
    /// Until when it believes that it holds the lock.
    until: Option<u8>,
    question: Option<Question>,
    /// What was confirmed last, and when that was asked for.
    confirmed: Option<(Configuration, u8)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    left: Left,
    now: u8,
    sentinels: [Configuration; 3],
    servers: [Server; 2],
    /// Whoever says hello.
    herald: Option<Question>,
    clients: [Client; CLIENTS],
}

impl World {
    /// The first server is open since long.
    fn new(left: Left) -> Self {
        let life = Some(Life { epoch: 0, opens: 0 });
        let first = Server { life, holder: None };
        let named = Configuration {
            server: 0,
            epoch: 0,
        };
        Self {
            left,
            now: 0,
            sentinels: [named; 3],
            servers: [first, Server::default()],
            herald: None,
            clients: [Client::default(); CLIENTS],
        }
    }

    /// All that can happen next.
    fn successors(&self, left_out: Option<Rule>) -> Vec<Self> {
        let keeps = |rule| left_out != Some(rule);
        let mut next = Vec::new();
        self.time_passes(&mut next);
        self.sentinels_change(keeps(Rule::NobodyGoesBack), &mut next);
        self.a_server_becomes_a_replica(&mut next);
        self.somebody_says_hello(&keeps, &mut next);
        for client in 0..CLIENTS {
            self.asks_for_the_lock(client, &keeps, &mut next);
            self.asks_the_sentinels(client, &keeps, &mut next);
            self.renews(client, &keeps, &mut next);
        }
        for world in &mut next {
            world.sentinels_answer(&keeps);
            world.forget_what_is_over();
            world.forget_who_is_who();
        }
        next
    }

    fn is_broken(&self) -> bool {
        let holds = self.clients.iter().filter(|client| client.until.is_some());
        holds.count() > 1
    }

    fn time_passes(&self, next: &mut Vec<Self>) {
        if self.left.ticks == 0 {
            return;
        }
        let mut world = self.clone();
        world.left.ticks -= 1;
        world.now += 1;
        for client in &mut world.clients {
            client.until = client.until.filter(|until| *until > world.now);
        }
        for server in &mut world.servers {
            server.holder = server.holder.filter(|(_, until)| *until > world.now);
        }
        next.push(world);
    }

    /// A failover, however it came to it; and hearsay. Two of them may give different servers the same epoch.
    fn sentinels_change(&self, nobody_goes_back: bool, next: &mut Vec<Self>) {
        for (number, named) in self.sentinels.iter().enumerate() {
            let mut take = |configuration, failovers| {
                let mut world = self.clone();
                world.sentinels[number] = configuration;
                world.left.failovers -= failovers;
                next.push(world);
            };
            for further in 1..=1 + self.left.gap {
                if self.left.failovers > 0 {
                    let (server, epoch) = (1 - named.server, named.epoch + further);
                    take(Configuration { server, epoch }, 1);
                }
            }
            for other in self.sentinels {
                if other.epoch > named.epoch || (!nobody_goes_back && other != *named) {
                    take(other, 0);
                }
            }
        }
    }

    fn a_server_becomes_a_replica(&self, next: &mut Vec<Self>) {
        for server in 0..self.servers.len() {
            if self.left.copies > 0 {
                let mut world = self.clone();
                world.left.copies -= 1;
                world.servers[server] = Server {
                    life: None,
                    ..self.servers[1 - server]
                };
                next.push(world);
            }
        }
    }

    /// Asks about any configuration that anybody names, and writes the record at any time after that.
    fn somebody_says_hello(&self, keeps: &impl Fn(Rule) -> bool, next: &mut Vec<Self>) {
        for about in self.sentinels {
            let mut world = self.clone();
            world.herald = Some(Question::new(about, 0, None));
            next.push(world);
        }
        let Some(question) = self.herald else { return };
        let needed = if keeps(Rule::LivesBeginWithAMajority) {
            2
        } else {
            1
        };
        let Configuration { server, epoch } = question.about;
        let life = self.servers[usize::from(server)].life;
        // Without epochs any life of this server goes on.
        let goes_on = match keeps(Rule::TheEpochCounts) {
            true => life.is_some_and(|life| life.epoch == epoch),
            false => life.is_some(),
        };
        if question.agreed.count_ones() >= needed && !goes_on {
            let mut world = self.clone();
            let wait = if keeps(Rule::LivesWait) { TTL } else { 0 };
            let opens = self.now + wait;
            world.servers[usize::from(server)].life = Some(Life { epoch, opens });
            world.herald = None;
            next.push(world);
        }
    }

    fn asks_for_the_lock(
        &self,
        number: usize,
        keeps: &impl Fn(Rule) -> bool,
        next: &mut Vec<Self>,
    ) {
        if self.clients[number].has_asked {
            return;
        }
        for (address, server) in (0..).zip(&self.servers) {
            let Some(life) = server.life.filter(|life| life.opens <= self.now) else {
                continue;
            };
            if server.holder.is_some() {
                continue;
            }
            let lease = self.now + TTL;
            let mut world = self.clone();
            world.servers[usize::from(address)].holder = Some((number, lease));
            let about = Configuration {
                server: address,
                epoch: life.epoch,
            };
            let client = &mut world.clients[number];
            client.has_asked = true;
            if keeps(Rule::ConfirmedAfterwards) {
                client.question = Some(Question::new(about, self.now, Some(lease)));
            } else {
                client.relies(about, lease, self.now, keeps);
            }
            next.push(world);
        }
    }

    /// Beside a renewal, and before it asks for the lock if that is good for anything: about the life of either
    /// server.
    fn asks_the_sentinels(
        &self,
        number: usize,
        keeps: &impl Fn(Rule) -> bool,
        next: &mut Vec<Self>,
    ) {
        let client = &self.clients[number];
        let early = !client.has_asked && !keeps(Rule::ConfirmedAfterwards);
        if client.until.is_none() && !early {
            return;
        }
        for (server, its) in (0..).zip(&self.servers) {
            if let Some(Life { epoch, .. }) = its.life {
                let about = Configuration { server, epoch };
                let mut world = self.clone();
                world.clients[number].question = Some(Question::new(about, self.now, None));
                next.push(world);
            }
        }
    }

    fn sentinels_answer(&mut self, keeps: &impl Fn(Rule) -> bool) {
        let epoch_counts = keeps(Rule::TheEpochCounts);
        if let Some(question) = &mut self.herald {
            question.hear(&self.sentinels, true);
        }
        for client in &mut self.clients {
            let Some(question) = &mut client.question else {
                continue;
            };
            question.hear(&self.sentinels, epoch_counts);
            if question.agreed.count_ones() >= 2 {
                let Question {
                    about,
                    asked,
                    lease,
                    ..
                } = *question;
                client.question = None;
                client.confirmed = Some((about, asked));
                if let Some(lease) = lease {
                    client.relies(about, lease, self.now, keeps);
                }
            }
        }
    }

    /// What can no longer make a difference.
    fn forget_what_is_over(&mut self) {
        for server in &mut self.servers {
            let life = server.life.as_mut();
            if let Some(life) = life.filter(|life| life.opens <= self.now) {
                life.opens = 0;
            }
        }
        for client in &mut self.clients {
            let counts = |asked: u8| asked + TTL > self.now;
            client.question = client.question.filter(|it| counts(it.asked));
            let over = client.has_asked && client.until.is_none() && client.question.is_none();
            client.confirmed = client.confirmed.filter(|_| !over);
        }
    }

    /// Which sentinel is which makes no difference, nor which client.
    fn forget_who_is_who(&mut self) {
        if self.clients[1] < self.clients[0] {
            self.clients.swap(0, 1);
            for server in &mut self.servers {
                server.holder = server.holder.map(|(client, until)| (1 - client, until));
            }
        }
        let mut order = [0, 1, 2];
        let questions = |world: &Self| {
            let of_clients = world.clients.map(|client| client.question);
            [world.herald, of_clients[0], of_clients[1]].map(|it| it.map_or(0, |it| it.agreed))
        };
        let agreed = questions(self);
        let bits = |number: usize| agreed.map(|it| it >> number & 1);
        order.sort_by_key(|number| (self.sentinels[*number], bits(*number)));
        self.sentinels = order.map(|number| self.sentinels[number]);
        let sorted = |mask: u8| {
            let bits = order.iter().enumerate();
            bits.fold(0, |all, (new, old)| all | ((mask >> old & 1) << new))
        };
        let of_clients = self.clients.iter_mut().map(|client| &mut client.question);
        for question in of_clients.chain([&mut self.herald]).flatten() {
            question.agreed = sorted(question.agreed);
        }
    }

    /// On either server: where it holds the lock, and while recovering also where it does not.
    fn renews(&self, number: usize, keeps: &impl Fn(Rule) -> bool, next: &mut Vec<Self>) {
        if self.clients[number].until.is_none() {
            return;
        }
        for (address, server) in (0..).zip(&self.servers) {
            let Some(life) = server.life else { continue };
            let stored = server.holder.is_some_and(|(holder, _)| holder == number);
            if !stored && life.opens <= self.now {
                continue;
            }
            let lease = self.now + TTL;
            let mut world = self.clone();
            world.servers[usize::from(address)].holder = Some((number, lease));
            let about = Configuration {
                server: address,
                epoch: life.epoch,
            };
            world.clients[number].relies(about, lease, self.now, keeps);
            next.push(world);
        }
    }
}

impl Client {
    /// It was told of this lease: until when it believes that.
    fn relies(&mut self, on: Configuration, lease: u8, now: u8, keeps: &impl Fn(Rule) -> bool) {
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
    fn new(about: Configuration, asked: u8, lease: Option<u8>) -> Self {
        Self {
            about,
            asked,
            agreed: 0,
            lease,
        }
    }

    /// Whoever agrees now, has agreed.
    fn hear(&mut self, sentinels: &[Configuration; 3], epoch_counts: bool) {
        for (number, named) in sentinels.iter().enumerate() {
            let same = !epoch_counts || named.epoch == self.about.epoch;
            if named.server == self.about.server && same {
                self.agreed |= 1 << number;
            }
        }
    }
}

/// Visits all states; answers how many there are, and one with two holders, if there is any.
fn explore(left: Left, left_out: Option<Rule>) -> (usize, Option<World>) {
    let start = World::new(left);
    let mut seen = BTreeSet::from([start.clone()]);
    let mut open = VecDeque::from([start]);
    while let Some(world) = open.pop_front() {
        assert!(
            seen.len() < 1_500_000,
            "too many states: tighten the bounds"
        );
        for world in world.successors(left_out) {
            if world.is_broken() {
                return (seen.len(), Some(world));
            }
            if seen.insert(world.clone()) {
                open.push_back(world);
            }
        }
    }
    (seen.len(), None)
}

const ONCE: Left = Left {
    ticks: 3,
    failovers: 1,
    copies: 0,
    gap: 0,
};

const THERE_AND_BACK: Left = Left {
    failovers: 2,
    ..ONCE
};

#[test]
fn primaries_that_are_replaced_and_live_on_never_give_two_holders() {
    let with_a_replica = Left { copies: 1, ..ONCE };
    let in_the_same_epoch = Left {
        ticks: 2,
        gap: 1,
        ..THERE_AND_BACK
    };
    for (left, at_least) in [
        (THERE_AND_BACK, 120_000),
        (with_a_replica, 35_000),
        (in_the_same_epoch, 240_000),
    ] {
        let (states, broken) = explore(left, None);
        assert_eq!(broken, None);
        assert!(states > at_least, "only {states} states of {left:?}");
    }
}

#[test]
fn without_any_one_rule_there_are_two_holders() {
    for rule in [
        Rule::ConfirmedAfterwards,
        Rule::NoLongerThanAConfirmation,
        Rule::LivesBeginWithAMajority,
        Rule::TheEpochCounts,
        Rule::LivesWait,
        Rule::NobodyGoesBack,
    ] {
        let finds = |left| explore(left, Some(rule)).1.is_some();
        let found = [ONCE, THERE_AND_BACK].into_iter().any(finds);
        assert!(found, "{rule:?} is not needed");
    }
}

/// Each failover has a reason to be in the model.
#[test]
fn the_epoch_is_for_those_who_come_back() {
    let rule = Some(Rule::TheEpochCounts);
    assert_eq!(explore(ONCE, rule).1, None);
    assert!(explore(THERE_AND_BACK, rule).1.is_some());
}
