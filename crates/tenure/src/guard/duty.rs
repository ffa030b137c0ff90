//! [`Shared`]: one hold and the duty to give it back, shared by the guards that entered it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use tenure_core::{Action, Error, ErrorKind, Lease, Moment, Outcome, Release, Renew, Retry, Ttl};

use crate::acquire::Held;
use crate::client::Client;
use crate::gate::Run;
use crate::handover::{self, Lent};
use crate::hold::{GivenUp, Hold};
use crate::keeper::Errand;
use crate::link::out_of_place;
use crate::random;
use crate::standing::Loss;

/// One hold and the duty to give it back.
pub(crate) struct Shared {
    pub(crate) hold: Arc<Hold>,
    pub(super) client: Arc<Client>,
    /// Set while it may be handed on to others who wait here.
    run: Mutex<Option<Run>>,
    /// The store need not be told any more: it was, or the lease was handed on.
    given_back: AtomicBool,
}

impl Shared {
    pub(super) fn new(client: &Arc<Client>, held: Held) -> Self {
        Self {
            hold: held.hold,
            client: client.clone(),
            run: Mutex::new(held.run),
            given_back: AtomicBool::new(false),
        }
    }

    /// From here on the hold at the store is no longer like those that others here want, or somebody
    /// else knows it: it goes back to the store.
    pub(super) fn keep(&self) {
        let run = self.take_run();
        drop(run);
    }

    /// From here on giving it back is somebody else's duty.
    pub(super) fn hand_on(&self) {
        self.given_back.store(true, Ordering::Release);
    }

    pub(super) async fn release(self) -> Result<(), Error> {
        let hold = self.hold.clone();
        let (end, stood_until) = (hold.valid_until(), hold.stands_until());
        let before = match hold.give_up(self.client.link.now()) {
            GivenUp::Now => false,
            GivenUp::Before => true,
            // What may be left at the store is cleaned up in the background.
            GivenUp::TooLate(loss) => return Err(loss.error(&hold.name)),
        };
        if self.given_back.load(Ordering::Acquire) {
            // Another guard of the same owner has handed the lease on.
            return Ok(());
        }
        let run = match stood_until.filter(|_| !before) {
            Some(end) => match self.hand_over(end) {
                Ok(()) => return Ok(()),
                Err(run) => run,
            },
            None => self.take_run(),
        };
        let Lease { owner, fence } = hold.lease;
        let release = Action::Release(Release { owner, fence });
        let mut telling = pin!(async {
            // A store that recovers would take a renewal that arrived after it for a holder that comes back.
            hold.landed().await;
            self.insist(&release, end).await
        });
        // The release is on its way before the next in line here asks, so that it need not wait for
        // a push.
        let told = poll!(telling.as_mut());
        drop(run);
        let (outcome, repeated) = match told {
            Poll::Ready(told) => told?,
            Poll::Pending => telling.await?,
        };
        self.hand_on();
        match outcome {
            Outcome::Released => Ok(()),
            // It was valid until we gave it up, and a store that forgot it lets nobody in.
            Outcome::Forgotten { .. } => Ok(()),
            // An earlier try, whose reply we missed, or `release_all` has done it.
            Outcome::NotHeld { forced: None } if repeated || before => Ok(()),
            Outcome::NotHeld { forced } => Err(Loss::not_held(forced).error(&hold.name)),
            other => Err(out_of_place("release", &other)),
        }
    }

    pub(super) async fn leave(self, ttl: Ttl) -> Result<(), Error> {
        let hold = self.hold.clone();
        let end = hold.valid_until();
        match hold.give_up(self.client.link.now()) {
            GivenUp::Now => {}
            GivenUp::Before => return Err(released(&hold)),
            GivenUp::TooLate(loss) => return Err(loss.error(&hold.name)),
        }
        // A renewal that arrived after ours would prolong what is to last exactly this long.
        hold.landed().await;
        let detach = Action::Renew(Renew {
            detach: true,
            ..hold.renewal(ttl)
        });
        match self.insist(&detach, end).await?.0 {
            Outcome::Renewed { .. } => {
                self.hand_on();
                Ok(())
            }
            Outcome::NotHeld { forced } => Err(Loss::not_held(forced).error(&hold.name)),
            other => Err(out_of_place("renew", &other)),
        }
    }

    /// Hands the hold, which was given up just now and was valid until `end`, on to another task here.
    /// If that may not be, the run is to be dropped after the store was told.
    fn hand_over(&self, end: Moment) -> Result<(), Option<Run>> {
        let Some(run) = self.take_run() else {
            return Err(None);
        };
        if self.hold.is_in_flight() {
            return Err(Some(run));
        }
        let lent = Lent {
            client: self.client.clone(),
            name: self.hold.name.clone(),
            lease: self.hold.lease,
            ttl: self.hold.ttl(),
            party: self.hold.party.clone(),
            end,
        };
        handover::pass(Box::new(lent), run).map_err(|(_, run)| Some(run))?;
        self.hand_on();
        Ok(())
    }

    fn take_run(&self) -> Option<Run> {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        run.take()
    }

    /// Asks until the store answers or the lease has ended; says whether it asked repeatedly.
    async fn insist(&self, action: &Action, end: Option<Moment>) -> Result<(Outcome, bool), Error> {
        let link = &self.client.link;
        let mut repeated = false;
        loop {
            let error = match link.ask(&self.hold.name, action.clone()).await {
                Ok(answer) => return Ok((answer.outcome, repeated)),
                Err(error) => error,
            };
            repeated = true;
            let worth_a_try = end.is_some_and(|end| link.now() < end);
            if error.retry() == Retry::Never || !worth_a_try {
                return Err(error.with("note", "the lease ends by itself after its ttl"));
            }
            link.clock()
                .sleep(random::jittered(Duration::from_millis(100)))
                .await;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.client.holds.remove(&self.hold);
        let stood_until = self.hold.stands_until();
        let given_up = self.hold.give_up(self.client.link.now());
        if self.given_back.load(Ordering::Acquire) {
            return;
        }
        let run = match stood_until.filter(|_| given_up == GivenUp::Now) {
            Some(end) => match self.hand_over(end) {
                Ok(()) => return,
                Err(run) => run,
            },
            None => self.take_run(),
        };
        self.client.keeper.run(Errand::release(&self.hold));
        drop(run);
    }
}

/// The error for whoever relies on a hold that this program itself gave back.
pub(super) fn released(hold: &Hold) -> Error {
    Error::new(
        ErrorKind::Lost,
        format!("the lock {:?} was released (release_all)", hold.name),
    )
}
