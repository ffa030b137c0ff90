//! [`Shared`]: one hold and the duty to give it back, shared by the guards that entered it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::{Action, Error, ErrorKind, Moment, Outcome, Release, Renew, Retry, Ttl};

use crate::client::Client;
use crate::hold::{GivenUp, Hold};
use crate::keeper::Errand;
use crate::link::out_of_place;
use crate::random;
use crate::standing::Loss;

/// One hold and the duty to give it back.
pub(crate) struct Shared {
    pub(crate) hold: Arc<Hold>,
    pub(super) client: Arc<Client>,
    /// The store need not be told any more: it was, or the lease was handed on.
    given_back: AtomicBool,
}

impl Shared {
    pub(super) fn new(client: &Arc<Client>, hold: Arc<Hold>) -> Self {
        Self {
            hold,
            client: client.clone(),
            given_back: AtomicBool::new(false),
        }
    }

    /// From here on giving it back is somebody else's duty.
    pub(super) fn hand_on(&self) {
        self.given_back.store(true, Ordering::Release);
    }

    pub(super) async fn release(self) -> Result<(), Error> {
        let hold = self.hold.clone();
        let end = hold.valid_until();
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
        let release = Action::Release(Release {
            owner: hold.owner,
            fence: hold.fence,
        });
        let (outcome, repeated) = self.insist(&release, end).await?;
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
        self.client.holds.remove(self.hold.owner);
        self.hold.give_up(self.client.link.now());
        if !self.given_back.load(Ordering::Acquire) {
            self.client.keeper.run(Errand::release(&self.hold));
        }
    }
}

/// The error for whoever relies on a hold that this program itself gave back.
pub(super) fn released(hold: &Hold) -> Error {
    Error::new(
        ErrorKind::Lost,
        format!("the lock {:?} was released (release_all)", hold.name),
    )
}
