//! From the guard of the library to the lease as the supervision of the job wants it.

use std::future::Future;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::core::Moment;
use tenure::{Guard, Loss, Standing};
use tokio::sync::watch;

use crate::job::{Boottime, Lease, LeaseStatus, LossCause};

/// What the user is told long before the job has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Renewals have failed for a while; there is time left to try on.
    InDoubt {
        /// Until the lease ends.
        left: Duration,
    },
    /// It was renewed after all.
    Renewed,
}

/// The lease as it stands now, and a future that keeps it up to date for as long as it is polled.
pub(super) fn follow<F: Fn(Change)>(
    guard: &Guard,
    tell: F,
) -> (Lease, impl Future<Output = ()> + use<F>) {
    let mut standing = guard.standing();
    // A guard that is over already has no moment any more; then the job must not start.
    let until = guard
        .valid_until()
        .map_or(Boottime::from_nanos(0), boottime);
    let (sender, receiver) = watch::channel(LeaseStatus::valid_until(until));
    update(&sender, &standing.borrow_and_update());
    let following = async move {
        let mut in_doubt = false;
        while standing.changed().await.is_ok() {
            let standing = standing.borrow_and_update();
            update(&sender, &standing);
            match *standing {
                Standing::Jeopardy { valid_until } if !in_doubt => {
                    in_doubt = true;
                    let left = valid_until.since(SystemClock::read());
                    tell(Change::InDoubt { left });
                }
                Standing::Held { .. } if in_doubt => {
                    in_doubt = false;
                    tell(Change::Renewed);
                }
                _ => {}
            }
        }
        std::future::pending::<()>().await;
    };
    (receiver, following)
}

fn update(sender: &watch::Sender<LeaseStatus>, standing: &Standing) {
    match standing {
        Standing::Held { valid_until } | Standing::Jeopardy { valid_until } => {
            sender.send_replace(LeaseStatus::valid_until(boottime(*valid_until)));
        }
        Standing::Lost(loss) => {
            sender.send_modify(|status| status.lost = Some(cause(loss)));
        }
        // Nobody but us releases it, after the job's end.
        Standing::Released => {}
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
                .into(),
        ),
        Loss::HeldTooLong => LossCause::ToldByStore("it was held as long as it may be".into()),
    }
}

fn boottime(moment: Moment) -> Boottime {
    Boottime::from_nanos(moment.as_nanos())
}
