//! [`Tap`]: a store around a store that writes down what is asked, answered and pushed.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tenure::core::{BoxFuture, Inbox, Listener, Push, Recovering, Reply, Request, Shard};
use tenure::{Error, Finding, Guarantees, Listing, LockName, Store};

use crate::history::{Recorder, Said, Step, What};

/// Passes everything on, and writes it down.
#[derive(Debug)]
pub(super) struct Tap {
    store: Arc<dyn Store>,
    recorder: Recorder,
    /// Stores know listeners only weakly.
    ears: Mutex<Vec<Arc<Ear>>>,
}

impl Tap {
    pub(super) fn new(store: Arc<dyn Store>, recorder: Recorder) -> Self {
        Self {
            store,
            recorder,
            ears: Mutex::default(),
        }
    }

    fn asked(&self, request: &Request) -> u64 {
        let call = self.recorder.next_call();
        let name = request.name.to_string();
        let step = Step::from(&request.action);
        self.recorder.note(0, What::Asked { call, name, step });
        call
    }

    fn answered(&self, call: u64, result: &Result<Reply, Error>) {
        let what = match result {
            Ok(reply) => What::Answered {
                call,
                now: reply.now.as_micros(),
                said: Said::from(&reply.outcome),
            },
            Err(error) => What::Unanswered {
                call,
                why: error.to_string(),
            },
        };
        self.recorder.note(0, what);
    }
}

impl Store for Tap {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(async move {
            let calls: Vec<u64> = batch.iter().map(|request| self.asked(request)).collect();
            let results = self.store.apply(batch).await;
            for (call, result) in calls.into_iter().zip(&results) {
                self.answered(call, result);
            }
            results
        })
    }

    fn shard(&self, name: &LockName) -> Shard {
        self.store.shard(name)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        self.store.list(prefix)
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let ear = Arc::new(Ear {
            recorder: self.recorder.clone(),
            listener,
        });
        let heard: Weak<dyn Listener> = Arc::downgrade(&ear) as _;
        let mut ears = self.ears.lock().unwrap_or_else(PoisonError::into_inner);
        ears.push(ear);
        self.store.listen(inbox, heard)
    }

    fn recovering<'a>(
        &'a self,
        name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        self.store.recovering(name)
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        self.store.diagnose()
    }
}

struct Ear {
    recorder: Recorder,
    listener: Weak<dyn Listener>,
}

impl Listener for Ear {
    fn pushed(&self, push: Push) {
        if let Push::Granted(grant) = &push {
            let what = What::Pushed {
                name: grant.name.to_string(),
                owner: grant.owner,
                fence: grant.fence,
                now: grant.now.as_micros(),
            };
            self.recorder.note(0, what);
        }
        if let Some(listener) = self.listener.upgrade() {
            listener.pushed(push);
        }
    }
}

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ear").finish_non_exhaustive()
    }
}
