//! [`Errand`]: a release or cancellation that nobody waits for, tried until it is done or no longer
//! matters.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Action, BoxFuture, Cancel, LockName, Moment, OwnerId, Release, Request, Retry, Ttl,
};

use crate::hold::Hold;
use crate::link::{CALL_LIMIT, Link};
use crate::random;

/// Something to be undone at the store.
#[derive(Debug)]
pub(crate) struct Errand {
    request: Request,
    /// After this long, what is to be undone has ended by itself.
    matters_for: Duration,
}

impl Errand {
    /// Ends a hold.
    pub(crate) fn release(hold: &Hold) -> Self {
        let release = Release {
            owner: hold.owner,
            fence: hold.fence,
        };
        let request = Action::Release(release).on(hold.name.clone());
        Self {
            request,
            matters_for: hold.ttl().duration(),
        }
    }

    /// Removes the place in the queue or the grant of an attempt that was given up.
    pub(crate) fn cancel(name: LockName, owner: OwnerId, ttl: Ttl) -> Self {
        let request = Action::Cancel(Cancel { owner }).on(name);
        Self {
            request,
            matters_for: ttl.duration() + crate::acquire::ALIVE_FOR,
        }
    }

    pub(super) fn run(self, link: Arc<Link>) -> BoxFuture<'static, ()> {
        let end = link.now().plus(self.matters_for);
        Box::pin(async move { while !self.done(&link, end).await {} })
    }

    async fn done(&self, link: &Link, end: Moment) -> bool {
        let batch = std::slice::from_ref(&self.request);
        let answers = link.ask_all(batch, CALL_LIMIT).await;
        let again = |answer: &Result<_, tenure_core::Error>| {
            answer
                .as_ref()
                .is_err_and(|error| error.retry() == Retry::Later)
        };
        if !answers.iter().any(again) || link.now() >= end {
            return true;
        }
        link.clock()
            .sleep(random::jittered(Duration::from_millis(250)))
            .await;
        false
    }
}
