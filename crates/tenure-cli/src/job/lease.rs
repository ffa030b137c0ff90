//! What the supervision knows about the lease that the job runs under.

use tenure::{Loss, Standing};
use tokio::sync::watch;

use super::boottime::Boottime;

/// The lease, as seen by the supervision: always the latest status, and a wake-up when it changes.
///
/// If the sender goes away the last status stays in force: nobody renews, so the lease runs out.
pub type Lease = watch::Receiver<LeaseStatus>;

/// How the lease stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStatus {
    /// From this moment on somebody else may hold the lock. The job is gone before.
    pub valid_until: Boottime,
    /// Set once the lease is lost, and final: no later status takes it back.
    pub lost: Option<LossCause>,
}

impl LeaseStatus {
    /// A lease that is held until `valid_until`.
    pub fn valid_until(valid_until: Boottime) -> Self {
        Self {
            valid_until,
            lost: None,
        }
    }
}

/// Why a lease was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LossCause {
    /// It could not be renewed in time.
    Expired,
    /// The store said so (forced release, a newer holder); the text says how.
    ToldByStore(String),
}

/// The lease behind a guard of the library, whose clock must be the system's: follows
/// [`Guard::standing`](tenure::Guard::standing) in a task of the current runtime.
pub fn follow(mut standing: watch::Receiver<Standing>) -> Lease {
    let mut status = LeaseStatus::valid_until(Boottime::now());
    status.take(&standing.borrow_and_update());
    let (sender, lease) = watch::channel(status);
    tokio::spawn(async move {
        while standing.changed().await.is_ok() {
            let standing = standing.borrow_and_update().clone();
            sender.send_modify(|status| status.take(&standing));
        }
    });
    lease
}

impl LeaseStatus {
    fn take(&mut self, standing: &Standing) {
        match standing {
            Standing::Held { valid_until } | Standing::Jeopardy { valid_until } => {
                self.valid_until = Boottime::from_nanos(valid_until.as_nanos());
            }
            Standing::Lost(loss) => self.lost = Some(cause(loss)),
            // By ourselves, after the job.
            Standing::Released => {}
        }
    }
}

fn cause(loss: &Loss) -> LossCause {
    match loss {
        Loss::Expired => LossCause::Expired,
        Loss::Forced(forced) => {
            LossCause::ToldByStore(format!("released by {}: {}", forced.by, forced.reason))
        }
        Loss::Forgotten => LossCause::ToldByStore(
            "the store does not know it any more (expired there, or the store lost its data)"
                .to_owned(),
        ),
        Loss::HeldTooLong => LossCause::ToldByStore("it was held for too long".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::Moment;

    fn held(nanos: u64) -> Standing {
        Standing::Held {
            valid_until: Moment::from_nanos(nanos),
        }
    }

    #[tokio::test]
    async fn a_lease_follows_its_guard_until_it_is_lost() {
        let (guard, standing) = watch::channel(held(5));
        let mut lease = follow(standing);
        assert_eq!(lease.borrow().valid_until, Boottime::from_nanos(5));
        guard.send_replace(held(9));
        lease.changed().await.unwrap();
        assert_eq!(lease.borrow().valid_until, Boottime::from_nanos(9));
        guard.send_replace(Standing::Lost(Loss::Expired));
        lease.changed().await.unwrap();
        let status = lease.borrow().clone();
        assert_eq!(status.valid_until, Boottime::from_nanos(9));
        assert_eq!(status.lost, Some(LossCause::Expired));
    }
}
