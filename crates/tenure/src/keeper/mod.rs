//! The keeper: one task per client that renews every hold in batches, notices the end of leases, and
//! runs errands (releases and cancellations that nobody waits for).
//!
//! Nothing here is needed for safety: guards judge their validity by the clock alone. If this task
//! dies or starves, leases end, and their guards say so.

mod errand;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Action, BoxFuture, Error, ErrorKind, Moment, Outcome, Renew, Request, Validity};
use tokio::sync::{mpsc, oneshot};

use crate::clock::bounded;
use crate::hold::{Hold, Renewing};
use crate::link::{Answer, CALL_LIMIT, Link};
use crate::standing::Loss;

pub(crate) use errand::Errand;
use schedule::{Due, Schedule};

/// How to reach the keeper. When the last one is dropped, the keeper finishes its errands and ends.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    orders: mpsc::UnboundedSender<Order>,
}

#[derive(Debug)]
enum Order {
    Keep { hold: Arc<Hold>, first: Moment },
    Run(Box<Errand>),
    Settle(oneshot::Sender<()>),
}

/// Holds renewed in one call: more would keep the store's other clients waiting.
const BATCH: usize = 100;
/// Renewal calls under way at once: a swallowed reply must not hold up the rest.
const CALLS: usize = 4;
/// How long a closed client goes on trying to give back what it held.
const LAST_ERRANDS: Duration = Duration::from_secs(5);

impl Keeper {
    /// Starts the task on `runtime`.
    pub(crate) fn start(runtime: &tokio::runtime::Handle, link: Arc<Link>) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        runtime.spawn(Work::new(link).run(inbox));
        Self { orders }
    }

    /// Watches over `hold`, which was confirmed by a request sent at `confirmed`, or by a push if
    /// that is `None`: then it lasts only for its claim window and is renewed at once.
    pub(crate) fn keep(&self, hold: Arc<Hold>, confirmed: Option<Moment>) -> Result<(), Error> {
        let first = match confirmed {
            Some(sent) => sent.plus(schedule::interval(hold.ttl())),
            None => Moment::from_nanos(0),
        };
        self.orders
            .send(Order::Keep { hold, first })
            .map_err(|_| closed())
    }

    /// Does this in the background; `false` if the runtime is gone and nothing can be done.
    pub(crate) fn run(&self, errand: Errand) -> bool {
        self.orders.send(Order::Run(Box::new(errand))).is_ok()
    }

    /// Waits until all errands given so far are done, or no longer matter.
    ///
    /// # Cancel safety
    /// Cancel safe: the errands go on.
    pub(crate) async fn settle(&self) {
        let (done, all_done) = oneshot::channel();
        if self.orders.send(Order::Settle(done)).is_ok() {
            // An error means that the keeper has ended, and its errands with it.
            let _ = all_done.await;
        }
    }
}

fn closed() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the runtime that this client was connected on has ended; connect again on a living one",
    )
}

struct Work {
    link: Arc<Link>,
    schedule: Schedule,
    renewals: FuturesUnordered<BoxFuture<'static, Renewed>>,
    errands: FuturesUnordered<BoxFuture<'static, ()>>,
    /// Who wants to know when there are no errands left.
    settling: Vec<oneshot::Sender<()>>,
}

/// The end of one renewal call.
struct Renewed {
    holds: Vec<Arc<Hold>>,
    answers: Vec<Result<Answer, Error>>,
}

impl Work {
    fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            schedule: Schedule::default(),
            renewals: FuturesUnordered::new(),
            errands: FuturesUnordered::new(),
            settling: Vec::new(),
        }
    }

    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        loop {
            let wake = self.schedule.next().filter(|_| self.renewals.len() < CALLS);
            let clock = self.link.clock().clone();
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Keep { hold, first }) => self.take_on(hold, first),
                    Some(Order::Run(errand)) => self.errands.push(errand.run(self.link.clone())),
                    Some(Order::Settle(done)) => self.settling.push(done),
                    None => break,
                },
                Some(renewed) = self.renewals.next() => self.settle(renewed),
                Some(()) = self.errands.next() => {}
                () = wait(&*clock, wake) => {}
            }
            self.renew_due();
            if self.errands.is_empty() {
                // Whoever stopped waiting need not be told.
                for done in self.settling.drain(..) {
                    let _ = done.send(());
                }
            }
        }
        // Nobody holds anything any more; what is left are errands.
        let errands = std::mem::take(&mut self.errands).collect::<()>();
        bounded(&**self.link.clock(), LAST_ERRANDS, errands).await;
    }

    fn take_on(&mut self, hold: Arc<Hold>, first: Moment) {
        if let Some(end) = hold.valid_until() {
            self.schedule.add(end, Due::End, hold.clone());
        }
        if hold.renewing == Renewing::Yes {
            self.schedule.add(first, Due::Renewal, hold);
        }
    }

    /// Looks at everything that is due, and sends off what needs renewal.
    fn renew_due(&mut self) {
        let now = self.link.now();
        while self.renewals.len() < CALLS {
            let mut batch = Vec::new();
            while batch.len() < BATCH {
                match self.schedule.pop_due(now) {
                    Some((Due::Renewal, hold)) if hold.valid_until().is_some() => batch.push(hold),
                    Some((Due::Renewal, _)) => {}
                    Some((Due::End, hold)) => self.look_at_end(hold, now),
                    None => break,
                }
            }
            if batch.is_empty() {
                return;
            }
            self.renewals
                .push(Box::pin(renew(self.link.clone(), batch)));
        }
    }

    /// The lease was to end now, unless it was renewed meanwhile.
    fn look_at_end(&mut self, hold: Arc<Hold>, now: Moment) {
        if hold.remaining(now).is_zero() {
            if hold.loss() == Some(Loss::HeldTooLong) {
                // The store still counts it as held: give it back.
                self.errands
                    .push(Errand::release(&hold).run(self.link.clone()));
            }
        } else if let Some(end) = hold.valid_until() {
            self.schedule.add(end, Due::End, hold);
        }
    }

    fn settle(&mut self, renewed: Renewed) {
        let now = self.link.now();
        for (hold, answer) in renewed.holds.into_iter().zip(renewed.answers) {
            match answer {
                Ok(answer) => self.confirmed(hold, answer, now),
                Err(_) => self.try_again(hold, now),
            }
        }
    }

    fn confirmed(&mut self, hold: Arc<Hold>, answer: Answer, now: Moment) {
        match answer.outcome {
            Outcome::Renewed { expiry } => {
                let validity = Validity::of_reply(answer.sent, answer.now, expiry);
                if hold.confirm(validity, now) {
                    let next = answer.sent.plus(schedule::interval(hold.ttl()));
                    self.schedule.add(next, Due::Renewal, hold);
                } else {
                    // It ended here before it was renewed there. Lost is final, so give it back.
                    self.errands
                        .push(Errand::release(&hold).run(self.link.clone()));
                }
            }
            Outcome::NotHeld { forced } => {
                hold.lose(Loss::not_held(forced));
            }
            _ => self.try_again(hold, now),
        }
    }

    /// A renewal failed: try again soon, several times before the lease ends.
    fn try_again(&mut self, hold: Arc<Hold>, now: Moment) {
        let remaining = hold.remaining(now);
        if remaining.is_zero() {
            return;
        }
        if remaining < hold.ttl().duration() * 6 / 10 {
            hold.endanger();
        }
        self.schedule
            .add(now.plus(schedule::retry(remaining)), Due::Renewal, hold);
    }
}

async fn renew(link: Arc<Link>, holds: Vec<Arc<Hold>>) -> Renewed {
    let batch: Vec<Request> = holds.iter().map(|hold| renewal(hold)).collect();
    let shortest = holds
        .iter()
        .map(|hold| hold.ttl().duration())
        .min()
        .unwrap_or(CALL_LIMIT);
    let limit = CALL_LIMIT.min(shortest / 6);
    let answers = link.ask_all(&batch, limit).await;
    Renewed { holds, answers }
}

fn renewal(hold: &Hold) -> Request {
    let renew = Renew {
        owner: hold.owner,
        fence: hold.fence,
        ttl: hold.ttl(),
        detach: false,
    };
    Action::Renew(renew).on(hold.name.clone())
}

async fn wait(clock: &dyn crate::clock::Clock, until: Option<Moment>) {
    match until {
        Some(until) => clock.sleep_until(until).await,
        None => std::future::pending().await,
    }
}
