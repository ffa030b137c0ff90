//! Makes one state of those that differ in nothing that matters.

use super::{Hold, World};

impl World {
    /// What can no longer make a difference.
    pub(super) fn forget_what_is_over(&mut self) {
        for server in &mut self.servers {
            let life = server.life.as_mut();
            let over = |opens: u8| opens <= self.now && self.left.claim == 0;
            if let Some(life) = life.filter(|life| over(life.opens)) {
                life.opens = 0;
            }
        }
        for client in &mut self.clients {
            let counts = |asked: u8| asked + self.left.ttl > self.now;
            client.question = client.question.filter(|it| counts(it.asked));
            let waits = !client.has_asked || client.was_not_told;
            let over = !waits && client.until.is_none() && client.question.is_none();
            client.confirmed = client.confirmed.filter(|_| !over);
        }
    }

    /// Which sentinel is which makes no difference, nor which client.
    pub(super) fn forget_who_is_who(&mut self) {
        if self.clients[1] < self.clients[0] {
            self.clients.swap(0, 1);
            for server in &mut self.servers {
                server.holder = server.holder.map(|hold| Hold {
                    client: 1 - hold.client,
                    ..hold
                });
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
}
