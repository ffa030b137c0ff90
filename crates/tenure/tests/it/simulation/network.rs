//! [`SimulatedLink`]: a store as one client sees it, behind a network on which messages are slow, are
//! lost, are repeated and overtake each other.

use std::sync::{Arc, Mutex, Weak};

use tenure::clock::Clock;
use tenure::core::{
    BoxFuture, Finding, Guarantees, Inbox, Life, Listener, Listing, LockName, Recovering, Reply,
    Request, Shard,
};
use tenure::stores::memory;
use tenure::{Error, ErrorKind, Moment, Store};
use tokio::sync::{mpsc, oneshot};

use super::world::{Way, World};

pub(super) type Replies = Vec<Result<Reply, Error>>;

/// What the server says to a call; `None` if the call was meant for another life.
pub(super) type Answer = Option<Replies>;

#[derive(Debug)]
pub(super) struct SimulatedLink {
    world: Arc<World>,
    client: usize,
    /// The life of the server that was last heard of.
    life: Arc<Mutex<Life>>,
    up: Pipe,
}

impl SimulatedLink {
    pub(super) fn new(world: &Arc<World>, client: usize) -> Self {
        Self {
            world: world.clone(),
            client,
            life: Arc::new(Mutex::new(world.hello(false))),
            up: Pipe::new(world, client, Direction::Up),
        }
    }

    async fn call(&self, batch: &[Request]) -> Replies {
        let fate = self.world.fate();
        let life = *self.life.lock().unwrap();
        let (tell, told) = oneshot::channel();
        // Whoever waits hears the answer to the first of a repeated message only.
        let mut tell = Some(tell);
        for at in fate.arrives {
            let (world, client, batch) = (self.world.clone(), self.client, batch.to_vec());
            let tell = tell.take();
            let arrive = move || world.arrive(client, life, batch, tell);
            self.up.send(at, Box::new(arrive));
        }
        drop(tell);
        match told.await {
            Ok(Some(replies)) => replies,
            Ok(None) => {
                self.greet();
                unavailable(batch, "another life")
            }
            Err(_) if fate.fails => unavailable(batch, "the connection was lost"),
            Err(_) => std::future::pending().await,
        }
    }

    /// Asks for the life of the server, for the calls after this one.
    fn greet(&self) {
        for at in self.world.fate().arrives {
            let (world, client, life) = (self.world.clone(), self.client, self.life.clone());
            let arrive = move || {
                let greeted = world.hello(true);
                world.send_down(client, Box::new(move || *life.lock().unwrap() = greeted));
            };
            self.up.send(at, Box::new(arrive));
        }
    }
}

impl Store for SimulatedLink {
    fn guarantees(&self) -> Guarantees {
        memory::GUARANTEES
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Replies> {
        Box::pin(self.call(batch))
    }

    fn shard(&self, _name: &LockName) -> Shard {
        Shard::WHOLE
    }

    fn list<'a>(&'a self, _prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        unreachable!("nobody lists in a simulation")
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.world.listen(self.client, inbox.clone(), listener);
        Box::pin(async { Ok(()) })
    }

    fn recovering<'a>(
        &'a self,
        _name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        Box::pin(async { Ok(None) })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

pub(super) fn unavailable(batch: &[Request], why: &str) -> Replies {
    let error = || Error::new(ErrorKind::Unavailable, why.to_owned());
    batch.iter().map(|_| Err(error())).collect()
}

/// When a message arrives: never, once or more often.
pub(super) struct Fate {
    pub(super) arrives: Vec<Moment>,
    /// Whether whoever waits for the answer is told that there will be none.
    pub(super) fails: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// What a message does when it arrives.
pub(super) type Delivery = Box<dyn FnOnce() + Send>;

/// One direction of a link. Messages are delivered in order, or each at its own time.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    end: End,
    line: Option<mpsc::UnboundedSender<(Moment, Delivery)>>,
}

#[derive(Clone, Debug)]
struct End {
    world: Weak<World>,
    client: usize,
    direction: Direction,
}

impl Pipe {
    pub(super) fn new(world: &Arc<World>, client: usize, direction: Direction) -> Self {
        let end = End {
            world: Arc::downgrade(world),
            client,
            direction,
        };
        let line = world.profile.ordered.then(|| {
            let (line, mut next) = mpsc::unbounded_channel();
            let end = end.clone();
            tokio::spawn(async move {
                while let Some((at, delivery)) = next.recv().await {
                    end.clone().carry(at, delivery).await;
                }
            });
            line
        });
        Self { end, line }
    }

    pub(super) fn send(&self, at: Moment, delivery: Delivery) {
        match &self.line {
            Some(line) => drop(line.send((at, delivery))),
            None => drop(tokio::spawn(self.end.clone().carry(at, delivery))),
        }
    }
}

impl End {
    async fn carry(self, at: Moment, delivery: Delivery) {
        let Some(world) = self.world.upgrade() else {
            return;
        };
        world.clock.sleep_until(at).await;
        let mut changes = world.changes();
        loop {
            changes.borrow_and_update();
            match world.way(self.client, self.direction) {
                Way::Free => return delivery(),
                Way::Lossy => return,
                Way::Held => drop(changes.changed().await),
            }
        }
    }
}
