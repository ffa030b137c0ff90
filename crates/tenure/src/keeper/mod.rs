//! The keeper: one task per client that renews every hold in batches, notices the end of leases, and
//! runs errands (releases and cancellations that nobody waits for).
//!
//! Nothing here is needed for safety: guards judge their validity by the clock alone. If this task
//! dies or starves, leases end, and their guards say so.

mod agenda;
mod departures;
mod errand;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Action, BoxFuture, Error, Moment, Outcome, Request, Shard};
use tokio::sync::{mpsc, oneshot};

use crate::clock::bounded;
use crate::hold::{Flight, Hold, Renewing};
use crate::link::{Answer, CALL_LIMIT, Link, closed};
use crate::standing::Loss;

use agenda::Agenda;
use departures::Departures;
use errand::Errands;
pub(crate) use errand::{Errand, Times};
use schedule::Due;

/// How to reach the keeper. When the last one is dropped, the keeper finishes its errands and ends.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    agenda: Arc<Agenda>,
    orders: mpsc::UnboundedSender<Order>,
}

#[derive(Debug)]
enum Order {
    Run(Box<Errand>),
    Settle(oneshot::Sender<()>),
}

/// Earlier than every reading of a clock.
const AT_ONCE: Moment = Moment::from_nanos(0);
/// How long a hold that lasts for a part of its ttl only may do so. Most are released before that,
/// and on a lock that is much wanted this saves every third call.
const SOON: Duration = Duration::from_millis(100);
/// Holds renewed in one call: more would keep the store's other clients waiting.
const BATCH: usize = 128;
/// Renewal calls under way at once, for each shard of the store: a swallowed reply must not hold up the rest.
const CALLS: usize = 4;
/// Orders taken at once.
const ORDERS: usize = 1000;
/// How long a closed client goes on trying to give back what it held.
const LAST_ERRANDS: Duration = Duration::from_secs(5);

impl Keeper {
    /// Starts the task on `runtime`.
    pub(crate) fn start(runtime: &tokio::runtime::Handle, link: Arc<Link>) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let agenda = Arc::new(Agenda::default());
        runtime.spawn(Work::new(link, agenda.clone()).run(inbox));
        Self { agenda, orders }
    }

    /// Watches over `hold`, which was confirmed in full by a request sent at `confirmed`. `None` if
    /// it lasts for a part of its ttl only (it was pushed, or the answer to a repeated question):
    /// then it is renewed soon after `now`, or at once if that is its only renewal.
    pub(crate) fn keep(
        &self,
        hold: Arc<Hold>,
        now: Moment,
        confirmed: Option<Moment>,
    ) -> Result<(), Error> {
        if self.orders.is_closed() {
            return Err(closed());
        }
        let renewal = match (confirmed, hold.renewing) {
            (Some(sent), Renewing::Yes) => Some(sent.plus(schedule::interval(hold.ttl()))),
            (Some(_), Renewing::No) => None,
            (None, Renewing::Yes) => Some(now.plus(SOON.min(hold.remaining(now) / 8))),
            (None, Renewing::No) => Some(AT_ONCE),
        };
        self.agenda.change(|schedule| {
            if let Some(end) = hold.valid_until() {
                schedule.add(end, Due::End, hold.clone());
            }
            if let Some(renewal) = renewal {
                schedule.add(renewal, Due::Renewal, hold);
            }
        });
        Ok(())
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

struct Work {
    link: Arc<Link>,
    agenda: Arc<Agenda>,
    /// Holds that are to be renewed.
    due: Departures<Arc<Hold>>,
    renewals: FuturesUnordered<BoxFuture<'static, Renewed>>,
    errands: Errands,
    /// Who wants to know when there are no errands left.
    settling: Vec<oneshot::Sender<()>>,
}

/// The end of one renewal call.
struct Renewed {
    shard: Shard,
    flights: Vec<Flight>,
    answers: Vec<Result<Answer, Error>>,
}

impl Work {
    fn new(link: Arc<Link>, agenda: Arc<Agenda>) -> Self {
        Self {
            errands: Errands::new(link.clone()),
            link,
            agenda,
            due: Departures::new(CALLS),
            renewals: FuturesUnordered::new(),
            settling: Vec::new(),
        }
    }

    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut received = Vec::new();
        loop {
            let wake = self.agenda.look_again();
            let clock = self.link.clock().clone();
            tokio::select! {
                // In this order, so that a simulation can be replayed. None keeps the others waiting
                // for ever: what is before the orders is work that ends, and they make more of it.
                biased;
                Some(renewed) = self.renewals.next() => self.settle(renewed),
                () = self.errands.progress() => {}
                () = self.agenda.sooner() => {}
                () = wait(&*clock, wake) => {}
                // All that are there, so that what was dropped together travels together.
                count = orders.recv_many(&mut received, ORDERS) => {
                    if count == 0 {
                        break;
                    }
                    received.drain(..).for_each(|order| self.obey(order));
                }
            }
            self.renew_due();
            self.errands.send();
            if self.errands.is_empty() {
                for done in self.settling.drain(..) {
                    // Whoever stopped waiting need not be told.
                    let _ = done.send(());
                }
            }
        }
        // Nobody holds anything any more; what is left are errands. Those do not wait for renewals that nobody drives.
        drop(self.renewals);
        bounded(&**self.link.clock(), LAST_ERRANDS, self.errands.finish()).await;
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Run(errand) => self.errands.add(*errand),
            Order::Settle(done) => self.settling.push(done),
        }
    }

    /// Looks at everything that is due, and sends off what needs renewal.
    fn renew_due(&mut self) {
        let now = self.link.now();
        let mut along = false;
        while let Some((due, hold)) = self.agenda.change(|schedule| schedule.pop_due(now, along)) {
            match due {
                Due::End => self.look_at_end(hold, now),
                Due::Renewal | Due::Retry if hold.valid_until().is_some() => {
                    along = true;
                    self.due.add(self.link.store().shard(&hold.name), hold);
                }
                Due::Renewal | Due::Retry => {}
            }
        }
        while let Some((shard, holds)) = self.due.depart(BATCH) {
            let flights: Vec<_> = holds.iter().filter_map(Hold::depart).collect();
            if flights.is_empty() {
                self.due.arrived(shard);
            } else {
                let renewing = renew(self.link.clone(), shard, flights);
                self.renewals.push(Box::pin(renewing));
            }
        }
    }

    /// The lease was to end now, unless it was renewed meanwhile.
    fn look_at_end(&mut self, hold: Arc<Hold>, now: Moment) {
        if hold.remaining(now).is_zero() {
            if hold.loss() == Some(Loss::HeldTooLong) {
                // The store still counts it as held: give it back.
                self.errands.add(Errand::release(&hold));
            }
        } else if let Some(end) = hold.valid_until() {
            self.plan(end, Due::End, hold);
        }
    }

    fn settle(&mut self, renewed: Renewed) {
        let now = self.link.now();
        self.due.arrived(renewed.shard);
        for (flight, answer) in renewed.flights.into_iter().zip(renewed.answers) {
            let hold = flight.hold.clone();
            match answer {
                Ok(answer) => self.confirmed(hold, answer, now),
                Err(_) => self.try_again(hold, now),
            }
        }
    }

    fn confirmed(&mut self, hold: Arc<Hold>, answer: Answer, now: Moment) {
        match answer.outcome {
            Outcome::Renewed { expiry } => {
                let validity = answer.validity(expiry, hold.ttl().duration());
                if !hold.confirm(validity, now) {
                    self.renewed_too_late(&hold);
                } else if hold.renewing == Renewing::Yes {
                    let next = answer.sent.plus(schedule::interval(hold.ttl()));
                    self.plan(next, Due::Renewal, hold);
                }
            }
            Outcome::NotHeld { forced } => {
                hold.lose(&Loss::not_held(forced));
            }
            _ => self.try_again(hold, now),
        }
    }

    /// It ended here before the store confirmed. Lost is final, so a lost one is given back; one that
    /// was given up is not ours any more: it may have been handed on.
    fn renewed_too_late(&mut self, hold: &Arc<Hold>) {
        if let Some(Loss::Expired | Loss::HeldTooLong) = hold.loss() {
            self.errands.add(Errand::release(hold));
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
        self.plan(now.plus(schedule::retry(remaining)), Due::Retry, hold);
    }

    fn plan(&self, at: Moment, due: Due, hold: Arc<Hold>) {
        self.agenda.change(|schedule| schedule.add(at, due, hold));
    }
}

async fn renew(link: Arc<Link>, shard: Shard, flights: Vec<Flight>) -> Renewed {
    let batch: Vec<Request> = flights.iter().map(|flight| renewal(&flight.hold)).collect();
    let ttls = flights.iter().map(|flight| flight.hold.ttl().duration());
    let shortest = ttls.min().unwrap_or(CALL_LIMIT);
    let limit = match link.store().guarantees().order {
        // It knows itself how long to wait for its members, which is up to half of the ttl.
        tenure_core::Order::Race => CALL_LIMIT.min(shortest * 6 / 10),
        _ => CALL_LIMIT.min(shortest / 6),
    };
    let answers = link.ask_all(&batch, limit).await;
    Renewed {
        shard,
        flights,
        answers,
    }
}

fn renewal(hold: &Hold) -> Request {
    Action::Renew(hold.renewal(hold.ttl())).on(hold.name.clone())
}

async fn wait(clock: &dyn crate::clock::Clock, until: Option<Moment>) {
    match until {
        Some(until) => clock.sleep_until(until).await,
        None => std::future::pending().await,
    }
}
