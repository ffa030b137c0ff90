//! Members that have forgotten something and give no votes for a while.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tenure::clock::Clock;
use tenure::core::{
    Action, Ballot, BoxFuture, Cancel, Contention, Finding, Guarantees, Inbox, Listener, Listing,
    LockName, Outcome, Recovering, Reply, Request, Shard,
};
use tenure::stores::memory::MemoryStore;
use tenure::stores::quorum::{QuorumStore, Rule as Electing, Settings};
use tenure::test_util::{Fault, Rule, ScriptedStore, VirtualClock};
use tenure::{Attempt, Error, ErrorKind, Store, Tenure};

use crate::client_world::{acquired, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn a_race_is_a_race_also_while_one_of_three_recovers() {
    let world = World::new();
    let (one, two) = (world.client().await, world.client().await);
    // Each is first at one of the two others.
    let late = Fault::Delay(millis(5));
    world.members[0].script(Rule::on("vote").after(1).times(1).does(late));
    world.members[1].script(Rule::on("vote").times(1).does(late));
    let (one, two) = (one.lock("x"), two.lock("x"));
    let (one, two) = tokio::join!(one.try_acquire(), two.try_acquire());
    let (one, two) = (one.unwrap(), two.unwrap());
    let got = |it: &Attempt| matches!(it, Attempt::Acquired(_));
    assert!(got(&one) != got(&two), "{one:?} {two:?}");
}

#[tokio::test(start_paused = true)]
async fn one_of_three_that_recovers_keeps_nobody_out() {
    let world = World::new();
    let (one, two) = (world.client().await, world.client().await);
    let _held = acquired(one.lock("x").try_acquire().await.unwrap());
    others_act().await;
    drop(acquired(two.lock("y").try_acquire().await.unwrap()));
    let Attempt::Busy(blocked) = two.lock("x").try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    assert_eq!(blocked.recovering(), None, "{blocked}");
    // With another one away, it does.
    world.members[0].script(Rule::on_everything().does(Fault::Hang));
    let Attempt::Busy(blocked) = two.lock("y").try_acquire().await.unwrap() else {
        panic!("one of three votes is enough");
    };
    assert_eq!(blocked.recovering(), Some(FOR), "{blocked}");
}

/// One that is open has its vote, and the one that recovers may have had the other.
#[tokio::test(start_paused = true)]
async fn whom_a_member_that_recovers_may_have_forgotten_is_not_overlooked() {
    let world = World::new();
    let (one, two) = (world.client().await, world.client().await);
    let lock = one.lock("x").no_renew();
    let guard = acquired(lock.try_acquire().await.unwrap());
    others_act().await;
    world.members[1].forget(guard.name()).await.unwrap();
    world.clock.sleep(secs(5)).await;
    let (_, snapshot) = two.inspect("x").await.unwrap();
    assert_eq!(snapshot.holders.len(), 1, "it is not called free");
    assert_eq!(two.list("").await.unwrap().locks.len(), 1);
    let (busy, started) = (two.lock("x"), world.clock.now());
    let Attempt::Busy(blocked) = busy.try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    assert_eq!(blocked.contention.holder_count, 1, "{blocked}");
    assert!(!blocked.nobody_won(), "{blocked}");
    assert!(world.clock.now().since(started) < secs(1), "at once");
}

/// The one that is silent and the one that recovers are enough to keep it.
#[tokio::test(start_paused = true)]
async fn nobody_is_said_to_hold_it_by_the_word_of_a_member_that_recovers() {
    let world = World::new();
    let tenure = world.client().await;
    tenure.inspect("x").await.unwrap();
    world.members[0].script(Rule::on_everything().does(Fault::Fail));
    let error = tenure.inspect("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    world.members[0].behave();
    let (_, snapshot) = tenure.inspect("x").await.unwrap();
    assert!(snapshot.holders.is_empty());
}

#[tokio::test(start_paused = true)]
async fn looks_at_many_locks_do_not_hold_each_other_up() {
    let world = World::new();
    let (one, two) = (world.client().await, world.client().await);
    let mut guards = Vec::new();
    for number in 0..40 {
        let lock = one.lock(format!("job {number}")).no_renew();
        let guard = acquired(lock.try_acquire().await.unwrap());
        world.members[1].forget(guard.name()).await.unwrap();
        guards.push(guard);
    }
    others_act().await;
    let started = world.clock.now();
    let looks = guards
        .iter()
        .map(|guard| two.inspect(guard.name().as_str()));
    for seen in join_all(looks).await {
        let (_, snapshot) = seen.unwrap();
        assert_eq!(snapshot.holders.len(), 1);
    }
    let took = world.clock.now().since(started);
    assert!(took < millis(500), "{took:?}");
}

/// Three members, the last of which recovers.
struct World {
    clock: Arc<VirtualClock>,
    members: Vec<Arc<ScriptedStore>>,
}

const FOR: Duration = secs(3_600);

impl World {
    fn new() -> Self {
        let clock = Arc::new(VirtualClock::new());
        let memory = || -> Arc<dyn Store> { Arc::new(MemoryStore::new(clock.clone())) };
        let recovers = Recovers(memory(), clock.clone());
        let stores = [memory(), memory(), Arc::new(recovers)];
        let scripted = stores.map(|store| ScriptedStore::new(store, clock.clone()));
        Self {
            members: scripted.to_vec(),
            clock,
        }
    }

    async fn client(&self) -> Tenure {
        let members = self.members.iter().enumerate().map(|(index, member)| {
            let member: Arc<dyn Store> = member.clone();
            (format!("member {index}"), member)
        });
        let settings = Settings::new(Electing::Majority);
        let store = QuorumStore::connect(members.collect(), settings, self.clock.clone());
        let store = Arc::new(store.await.unwrap());
        Tenure::new(store, self.clock.clone()).await.unwrap()
    }
}

/// Never gives its vote to a newcomer, and takes its time to say why.
#[derive(Debug)]
struct Recovers(Arc<dyn Store>, Arc<VirtualClock>);

impl Store for Recovers {
    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(async {
            let mut replies = self.0.apply(batch).await;
            for (request, reply) in batch.iter().zip(&mut replies) {
                let Action::Vote(vote) = &request.action else {
                    continue;
                };
                let (Ballot::New { .. }, Ok(reply)) = (vote.ballot, reply) else {
                    continue;
                };
                let cancel = Action::Cancel(Cancel { owner: vote.owner });
                self.0.apply(&[cancel.on(request.name.clone())]).await;
                reply.outcome = Outcome::Busy(Contention {
                    recovering: Some(reply.now.plus(FOR)),
                    ..Contention::default()
                });
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
        _name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        Box::pin(async {
            self.1.sleep(millis(40)).await;
            Ok(Some(Recovering::Left(FOR)))
        })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        self.0.diagnose()
    }
}
