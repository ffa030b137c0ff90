//! [`Asking`]: what a holder asks of the store while it holds. It is carried on to its end, and what the answer says of the hold
//! is noted also if nobody waits for it any more: otherwise a store that finds the hold lost could let others in
//! while its holder goes on.

use std::panic::resume_unwind;
use std::sync::Arc;

use tenure_core::{Action, Convert, Error, ErrorKind, Kind, Lease, Outcome, Ttl};

use super::duty::released;
use crate::hold::{Flight, Hold};
use crate::link::{Link, closed, out_of_place};
use crate::standing::Loss;

/// A question about a hold that is on its way.
pub(super) struct Asking {
    link: Arc<Link>,
    /// Whoever gives the hold up waits for it: what arrives after a release may take back what was released.
    flight: Flight,
}

impl Asking {
    /// # Errors
    /// [`ErrorKind::Lost`] if the hold is over.
    pub(super) fn about(hold: &Arc<Hold>, link: &Arc<Link>) -> Result<Self, Error> {
        ensure(hold, link)?;
        let flight = hold.depart().ok_or_else(|| over(hold))?;
        Ok(Self {
            link: link.clone(),
            flight,
        })
    }

    /// Prolongs it, and uses this ttl from then on.
    pub(super) async fn extend(self, ttl: Ttl) -> Result<(), Error> {
        let link = self.link.clone();
        let asking = async move {
            self.renew(ttl).await?;
            self.hold().set_ttl(ttl);
            Ok(())
        };
        to_the_end(&link, asking).await
    }

    /// Has the store know that it is shared.
    pub(super) async fn convert(self) -> Result<(), Error> {
        let link = self.link.clone();
        let asking = async move {
            let hold = self.hold();
            let Lease { owner, fence } = hold.lease;
            let convert = Action::Convert(Convert { owner, fence });
            match self.link.ask(&hold.name, convert).await?.outcome {
                Outcome::Converted { .. } => Ok(()),
                // It takes the hold back in the mode that it has now, unless it was given up meanwhile.
                Outcome::Forgotten { .. } => {
                    ensure(hold, &self.link)?;
                    self.renew(hold.ttl()).await
                }
                Outcome::NotHeld { forced } => Err(lose(hold, &Loss::not_held(forced))),
                Outcome::Conflict { in_force } => Err(not_a_writer(hold, in_force)),
                other => Err(out_of_place("convert", &other)),
            }
        };
        to_the_end(&link, asking).await
    }

    async fn renew(&self, ttl: Ttl) -> Result<(), Error> {
        let (hold, link) = (self.hold(), &self.link);
        let renew = Action::Renew(hold.renewal(ttl));
        let answer = link.ask(&hold.name, renew).await?;
        match answer.outcome {
            Outcome::Renewed { expiry } => {
                let validity = answer.validity(expiry, ttl.duration());
                hold.confirm(validity, link.now());
                ensure(hold, link)
            }
            Outcome::NotHeld { forced } => Err(lose(hold, &Loss::not_held(forced))),
            other => Err(out_of_place("renew", &other)),
        }
    }

    fn hold(&self) -> &Hold {
        &self.flight.hold
    }
}

/// # Errors
/// [`ErrorKind::Lost`] if it cannot be relied upon now, and why.
pub(super) fn ensure(hold: &Hold, link: &Link) -> Result<(), Error> {
    match hold.remaining(link.now()).is_zero() {
        false => Ok(()),
        true => Err(over(hold)),
    }
}

pub(super) fn not_a_writer(hold: &Hold, in_force: Kind) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!(
            "only a write lock can be downgraded, and {:?} is {in_force}",
            hold.name
        ),
    )
}

fn over(hold: &Hold) -> Error {
    let loss = hold.loss();
    loss.map_or_else(|| released(hold), |loss| loss.error(&hold.name))
}

fn lose(hold: &Hold, loss: &Loss) -> Error {
    hold.lose(loss);
    loss.error(&hold.name)
}

/// Runs on where the client lives, whoever stops waiting for it.
async fn to_the_end(
    link: &Link,
    asking: impl Future<Output = Result<(), Error>> + Send + 'static,
) -> Result<(), Error> {
    let ended = link.lanes().runtime().spawn(asking).await;
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Err(closed()),
    })
}
