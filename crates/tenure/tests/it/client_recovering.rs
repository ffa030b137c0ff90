//! A store that forgot something takes back the holds that are renewed: nobody may renew what it has given up.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use tenure::core::{
    Action, BoxFuture, Finding, Guarantees, Inbox, Listener, Listing, LockName, Outcome,
    Recovering, Reply, Request, Shard,
};
use tenure::stores::memory::MemoryStore;
use tenure::test_util::{Fault, Rule, ScriptedStore, VirtualClock};
use tenure::{Error, Moment, Store, Tenure};

use crate::client_world::{acquired, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn a_downgrade_that_goes_on_does_not_bring_back_what_was_dropped() {
    let (tenure, store) = world().await;
    let writer = tenure.rwlock("x").write().try_acquire().await.unwrap();
    let writer = acquired(writer);
    store.script(Rule::on("convert").does(Fault::Delay(secs(1))));
    assert!(writer.downgrade().now_or_never().is_none());
    drop(writer);
    tenure.settle().await;
    tenure.clock().sleep(secs(5)).await;
    assert_eq!(store.count("convert"), 1);
    assert_eq!(store.count("renew"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_is_given_back_once_more_after_an_extension_that_was_under_way() {
    let (tenure, store) = world().await;
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    store.script(Rule::on("renew").does(Fault::Delay(secs(1))));
    let started = tenure.clock().now();
    assert!(guard.extend(secs(60)).now_or_never().is_none());
    drop(guard);
    tenure.settle().await;
    tenure.clock().sleep(secs(5)).await;
    let after = releases_after(started, &store);
    assert!(after[0] < secs(1), "at once: {after:?}");
    assert!(after.last() >= Some(&secs(1)), "and after it: {after:?}");
}

/// It was carried out after the release, and answered before it.
#[tokio::test(start_paused = true)]
async fn release_all_gives_back_once_more_after_an_extension_that_was_under_way() {
    let (tenure, store) = world().await;
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    store.script(Rule::on("renew").does(Fault::Delay(millis(500))));
    store.script(Rule::on("release").does(Fault::DelayReply(secs(1))));
    let started = tenure.clock().now();
    assert!(guard.extend(secs(60)).now_or_never().is_none());
    others_act().await;
    tenure.release_all().await.unwrap();
    tenure.settle().await;
    let after = releases_after(started, &store);
    assert!(after.last() >= Some(&millis(500)), "after it: {after:?}");
}

fn releases_after(started: Moment, store: &ScriptedStore) -> Vec<Duration> {
    let calls = store.calls().into_iter();
    let releases = calls.filter(|call| call.requests[0].action.word() == "release");
    releases.map(|call| call.at.since(started)).collect()
}

async fn world() -> (Tenure, Arc<ScriptedStore>) {
    let clock = Arc::new(VirtualClock::new());
    let store = Arc::new(Recovers(MemoryStore::new(clock.clone())));
    let store = ScriptedStore::new(store, clock.clone());
    let tenure = Tenure::new(store.clone(), clock).await.unwrap();
    (tenure, store)
}

/// Has forgotten what is to be converted.
#[derive(Debug)]
struct Recovers(MemoryStore);

impl Store for Recovers {
    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(async {
            let mut replies = self.0.apply(batch).await;
            for (request, reply) in batch.iter().zip(&mut replies) {
                if let (Action::Convert(_), Ok(reply)) = (&request.action, reply) {
                    let until = reply.now.plus(secs(60));
                    reply.outcome = Outcome::Forgotten { until };
                }
            }
            replies
        })
    }

    fn shard(&self, name: &LockName) -> Shard {
        self.0.shard(name)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        self.0.list(prefix)
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.0.listen(inbox, listener)
    }

    fn recovering<'a>(
        &'a self,
        name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        self.0.recovering(name)
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        self.0.diagnose()
    }
}
