//! A worker that uses tenure: nothing here that a user would not write.

use tenure::{Attempt, Guard, Owner, Standing, Tenure};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{Ask, BEFORE_WRITE, LOCK, Order, Voice, WorkerArgs, orders, write_to_resource};
use crate::timeline::What;

pub(super) fn execute(args: &WorkerArgs) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    if let Ok(runtime) = runtime {
        runtime.block_on(work(args));
    }
}

async fn work(args: &WorkerArgs) {
    let (give, orders_in) = unbounded_channel();
    orders(move |order| {
        let _ = give.send(order);
    });
    let voice = Voice::of(args);
    match tenure::connect(&args.url).await {
        Ok(tenure) => {
            let owner = tenure.owner();
            voice.say(What::Ready);
            let mut ours = Ours {
                args,
                voice,
                orders: orders_in,
                tenure,
                owner,
                held: Vec::new(),
            };
            ours.obey().await;
        }
        Err(error) => {
            let why = error.to_string();
            voice.say(What::Ready);
            let mut orders_in = orders_in;
            while orders_in.recv().await.is_some() {
                voice.say(What::Unwilling { why: why.clone() });
            }
        }
    }
}

struct Ours<'a> {
    args: &'a WorkerArgs,
    voice: Voice,
    orders: UnboundedReceiver<Order>,
    tenure: Tenure,
    owner: Owner,
    held: Vec<Guard>,
}

impl Ours<'_> {
    async fn obey(&mut self) {
        while let Some(order) = self.orders.recv().await {
            match order {
                Order::Acquire(ask) => self.acquire(&ask).await,
                Order::Reenter => {
                    if let Ok(guard) = self.owner.lock(LOCK).acquire().await {
                        self.held.push(guard);
                    }
                    self.voice.done("reenter");
                }
                Order::Downgrade => self.downgrade().await,
                Order::Write { stop } => self.write(stop).await,
                Order::Release => self.release(),
                Order::Draw { .. } => self.voice.done("128 random bits"),
                Order::Go => {}
            }
        }
        self.tenure.settle().await;
    }

    async fn acquire(&mut self, ask: &Ask) {
        self.voice.say(What::Wants);
        let lock = self.owner.rwlock(LOCK);
        let lock = if ask.shared {
            lock.read()
        } else {
            lock.write()
        };
        let lock = lock.ttl(ask.ttl).label(&self.args.name);
        let got = if ask.wait.is_zero() {
            lock.try_acquire().await.map(|attempt| match attempt {
                Attempt::Acquired(guard) => Some(guard),
                Attempt::Busy(_) => None,
            })
        } else {
            lock.wait(ask.wait).acquire().await.map(Some)
        };
        match got {
            Ok(Some(guard)) => self.hold(guard, ask),
            Ok(None) => self.voice.say(What::Busy),
            Err(error) if error.kind() == tenure::ErrorKind::Configuration => {
                let why = error.to_string();
                self.voice.say(What::Unwilling { why });
            }
            // Who cannot ask, or not in time, does not get in.
            Err(_) => {
                let in_vain = !ask.wait.is_zero();
                self.voice
                    .say(if in_vain { What::GaveUp } else { What::Busy });
            }
        }
    }

    fn hold(&mut self, guard: Guard, ask: &Ask) {
        self.voice.say(What::Holds {
            shared: ask.shared,
            until: guard.valid_until().map(tenure::Moment::as_nanos),
            fence: Some(guard.fence().as_u64()),
        });
        tokio::spawn(tell(self.voice.clone(), guard.standing()));
        self.held.push(guard);
    }

    async fn write(&mut self, stop: bool) {
        let Some(guard) = self.held.last() else {
            return self.voice.done("write");
        };
        if let Err(error) = guard.ensure() {
            let why = error.to_string();
            self.voice.say(What::Declined { why });
            return self.voice.done("write");
        }
        if stop {
            let point = BEFORE_WRITE.to_owned();
            self.voice.say(What::At { point });
            while !matches!(self.orders.recv().await, Some(Order::Go) | None) {}
        }
        write_to_resource(self.args, Some(guard.fence().as_u64()));
        self.voice.done("write");
    }

    async fn downgrade(&mut self) {
        if let Some(guard) = self.held.last()
            && guard.downgrade().await.is_ok()
        {
            let (fence, until) = (guard.fence(), guard.valid_until());
            self.voice.say(What::Holds {
                shared: true,
                until: until.map(tenure::Moment::as_nanos),
                fence: Some(fence.as_u64()),
            });
        }
        self.voice.done("downgrade");
    }

    fn release(&mut self) {
        if self.held.is_empty() {
            return self.voice.done("release");
        }
        self.voice.say(What::Released);
        let voice = self.voice.clone();
        let held = std::mem::take(&mut self.held);
        tokio::spawn(async move {
            for guard in held {
                let _ = guard.release().await;
            }
            voice.done("release");
        });
    }
}

/// Says how the hold stands, whenever that changes.
async fn tell(voice: Voice, mut standing: tokio::sync::watch::Receiver<Standing>) {
    loop {
        match standing.borrow_and_update().clone() {
            Standing::Held { valid_until } | Standing::Jeopardy { valid_until } => {
                let until = valid_until.as_nanos();
                voice.say(What::Extended { until });
            }
            Standing::Lost(loss) => {
                let why = format!("{loss:?}");
                return voice.say(What::Lost { why });
            }
            Standing::Released => return,
        }
        if standing.changed().await.is_err() {
            return;
        }
    }
}
