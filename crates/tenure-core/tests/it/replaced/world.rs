//! All that can happen next.

use super::{CLIENTS, Client, Configuration, Left, Life, Question, Rule, Server, TTL, World};

impl World {
    /// The first server is open since long.
    pub(super) fn new(left: Left) -> Self {
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
    pub(super) fn successors(&self, left_out: Option<Rule>) -> Vec<Self> {
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

    pub(super) fn is_broken(&self) -> bool {
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
