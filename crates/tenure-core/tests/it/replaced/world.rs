//! All that can happen next.

use super::{
    Broken, CLIENTS, Client, Configuration, Hold, Left, Life, Question, Rule, Server, World,
};

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
            highest: 0,
            broken: None,
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
            self.asks_again(client, keeps(Rule::GrantedAnew), &mut next);
            self.asks_the_sentinels(client, &keeps, &mut next);
            self.renews(client, &keeps, &mut next);
        }
        for world in &mut next {
            world.sentinels_answer(&keeps);
            world.judge();
            world.forget_what_is_over();
            world.forget_who_is_who();
        }
        next
    }

    fn judge(&mut self) {
        let holds = self.clients.iter().filter(|client| client.until.is_some());
        if holds.count() > 1 {
            self.broken = Some(Broken::TwoHolders);
        }
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
            server.holder = server.holder.filter(|hold| hold.until > world.now);
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
            let wait = if keeps(Rule::LivesWait) {
                self.left.ttl
            } else {
                0
            };
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
            let (lease, fence) = (self.now + self.left.ttl, self.fence());
            if self.left.claim > 0 {
                let mut world = self.clone();
                world.store(address, number, self.now + self.left.claim, fence);
                world.clients[number].has_asked = true;
                world.clients[number].was_not_told = true;
                next.push(world);
            }
            let mut world = self.clone();
            world.store(address, number, lease, fence);
            let about = Configuration {
                server: address,
                epoch: life.epoch,
            };
            let client = &mut world.clients[number];
            client.has_asked = true;
            if keeps(Rule::ConfirmedAfterwards) {
                client.question = Some(Question::new(about, self.now, Some((lease, fence))));
            } else {
                client.relies(about, lease, (self.now, self.left.ttl), keeps);
            }
            next.push(world);
        }
    }

    /// Notes a hold on a server.
    pub(super) fn store(&mut self, address: u8, client: usize, until: u8, fence: u8) {
        let hold = Hold {
            client,
            until,
            fence,
        };
        self.servers[usize::from(address)].holder = Some(hold);
    }

    /// That of what is granted now: fences follow the clock.
    pub(super) fn fence(&self) -> u8 {
        if self.left.claim > 0 { self.now } else { 0 }
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
                if let Some((lease, fence)) = lease {
                    client.was_not_told = false;
                    client.relies(about, lease, (self.now, self.left.ttl), keeps);
                    if client.until.is_some() && fence < self.highest {
                        self.broken = Some(Broken::FenceWentBack);
                    }
                    self.highest = self.highest.max(fence);
                }
            }
        }
    }

    /// On either server: where it holds the lock, and while recovering also where it does not.
    fn renews(&self, number: usize, keeps: &impl Fn(Rule) -> bool, next: &mut Vec<Self>) {
        if self.clients[number].until.is_none() {
            return;
        }
        for (address, server) in (0..).zip(&self.servers) {
            let Some(life) = server.life else { continue };
            let stored = server.holder.is_some_and(|hold| hold.client == number);
            if !stored && life.opens <= self.now {
                continue;
            }
            let lease = self.now + self.left.ttl;
            let mut world = self.clone();
            // Whoever knows its fence does not ask for it again.
            world.store(address, number, lease, 0);
            let about = Configuration {
                server: address,
                epoch: life.epoch,
            };
            world.clients[number].relies(about, lease, (self.now, self.left.ttl), keeps);
            next.push(world);
        }
    }
}
