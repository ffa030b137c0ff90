//! For how long a hold is relied upon where the word of one server is not enough: what [`sentinel`](super::sentinel) and
//! [`cluster`](super::cluster) have in common. Whom they ask, and when it is confirmed, is theirs.

use std::time::Duration;

use tenure_core::{
    Action, Error, ErrorKind, Moment, Outcome, PushedGrant, Reply, Request, Spelled,
};

use super::errors::Failure;

/// For how long a confirmation is asked for. Renewals wait less for it, and make do with the last one.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// No hold is relied upon for longer than this after the last confirmation was asked for: `max_ttl`. Whoever takes the
/// place of the server that gave it waits for as long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reliance(pub(super) Duration);

impl Reliance {
    /// Why this request must not be sent, if it must not.
    pub(super) fn refusal(self, request: &Request) -> Option<Error> {
        let ttl = match &request.action {
            Action::Acquire(acquire) => acquire.ttl,
            Action::Renew(renew) if !renew.detach => renew.ttl,
            _ => return None,
        };
        (ttl.duration() > self.0).then(|| {
            Error::new(
                ErrorKind::Configuration,
                format!(
                    "a lease of {} is longer than a failover is waited for ({}): ask for a shorter one, \
                     or write ?max_ttl= with a longer time into the URL of every client",
                    Spelled(ttl.duration()),
                    Spelled(self.0)
                ),
            )
        })
    }

    /// Whether a confirmation that was last asked for then should be renewed by now.
    pub(super) fn is_due(self, last: Option<Moment>, now: Moment) -> bool {
        last.is_none_or(|asked| now.since(asked) >= self.0 / 4)
    }

    /// For how long after `began` a hold may be relied upon.
    pub(super) fn left(self, last: Option<Moment>, began: Moment) -> Duration {
        let until = last.map(|asked| asked.plus(self.0));
        until.map_or(Duration::ZERO, |until| until.since(began))
    }

    /// A grant that was pushed and has been confirmed since, for as long as it may be relied upon.
    pub(super) fn pushed(self, grant: PushedGrant) -> PushedGrant {
        let latest = grant.now.plus(self.0);
        PushedGrant {
            expiry: grant.expiry.min(latest),
            ..grant
        }
    }
}

/// What somebody relies upon who gets such an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A new hold, which has to be confirmed.
    Granted,
    /// One that it has, and that lasts for as long as the last confirmation allows.
    Prolonged,
}

impl Held {
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Granted(_) => Some(Self::Granted),
            Outcome::Renewed { .. } | Outcome::Converted { .. } => Some(Self::Prolonged),
            _ => None,
        }
    }

    /// The same, of an answer that is shortened to what is left.
    pub(super) fn shortened(reply: &mut Reply, left: Duration) -> Option<Self> {
        let latest = reply.now.plus(left);
        let held = Self::of(&reply.outcome);
        match &mut reply.outcome {
            Outcome::Granted(grant) => grant.expiry = latest.min(grant.expiry),
            Outcome::Renewed { expiry } | Outcome::Converted { expiry } => {
                *expiry = latest.min(*expiry);
            }
            _ => {}
        }
        held
    }
}

/// How long whoever sends these requests can wait for more than their answers: a client gives up a renewal after a sixth of its
/// ttl, and would not hear that it was made.
pub(super) fn patience(batch: &[Request]) -> Duration {
    let ttls = batch.iter().filter_map(|request| match &request.action {
        Action::Renew(renew) => Some(renew.ttl.duration()),
        _ => None,
    });
    ttls.map(|ttl| ttl / 12).fold(PATIENCE * 2, Duration::min)
}

/// Whether a request prolongs a hold.
pub(super) fn prolongs(request: &Request) -> bool {
    matches!(request.action, Action::Renew(_) | Action::Convert(_))
}

/// Takes back everything that somebody could rely upon.
pub(super) fn distrust(replies: &mut [Result<Reply, Error>], failure: &Failure) {
    for result in replies {
        let held = |reply: &Reply| Held::of(&reply.outcome).is_some();
        if result.as_ref().is_ok_and(held) {
            *result = Err(failure.error());
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Fence, LockName, OwnerId, Renew, Ttl};

    use super::*;

    fn renewal(ttl: Duration) -> Request {
        let renew = Renew {
            owner: OwnerId::from_bytes([1; 16]),
            fence: Fence::from_u64(1),
            ttl: Ttl::new(ttl).expect("in range"),
            detach: false,
            terms: None,
        };
        Action::Renew(renew).on(LockName::new("lock").expect("a name"))
    }

    #[test]
    fn no_renewal_waits_for_a_confirmation_until_its_holder_has_given_up() {
        let second = Duration::from_secs(1);
        for ttl in [second, second * 2, second * 5, second * 30] {
            let batch = [renewal(second * 60), renewal(ttl)];
            assert!(patience(&batch) < ttl / 6, "{ttl:?}");
        }
        assert_eq!(patience(&[]), PATIENCE * 2);
    }
}
