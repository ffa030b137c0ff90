//! A store that answers only when it is let, and counts what travels together.

use std::sync::{Arc, Mutex, Weak};

use tenure_core::{
    Acquire, BoxFuture, ErrorKind, Finding, Guarantees, Inbox, Listener, Listing, LockName, Mode,
    Outcome, OwnerId, Party, Recovering, Reply, Shard, Snapshot, Store, Ttl, Waiting,
};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::*;
use crate::clock::VirtualClock;
use crate::stores::memory::MemoryStore;

/// The memory store behind a door: calls are recorded, then wait to be let in.
#[derive(Debug)]
struct Door {
    store: MemoryStore,
    let_in: Semaphore,
    calls: Mutex<Vec<Vec<Request>>>,
    /// Refused where it was, and to be asked for in another shard from then on.
    moves: Mutex<Option<LockName>>,
    moved: Mutex<Option<LockName>>,
}

impl Door {
    /// How many requests each call had so far.
    fn sizes(&self) -> Vec<usize> {
        self.calls.lock().unwrap().iter().map(Vec::len).collect()
    }
}

impl Store for Door {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        self.calls.lock().unwrap().push(batch.to_vec());
        Box::pin(async move {
            self.let_in.acquire().await.unwrap().forget();
            let mut replies = self.store.apply(batch).await;
            let mut moves = self.moves.lock().unwrap();
            let index = batch.iter().position(|it| Some(&it.name) == moves.as_ref());
            if let Some(index) = index {
                replies[index] = Err(Error::new(ErrorKind::Refused, "it is moving"));
                *self.moved.lock().unwrap() = moves.take();
            }
            replies
        })
    }

    /// Names that begin with `far` are kept elsewhere.
    fn shard(&self, name: &LockName) -> Shard {
        if self.moved.lock().unwrap().as_ref() == Some(name) {
            return Shard::new(2);
        }
        Shard::new(usize::from(name.as_str().starts_with("far")))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        self.store.list(prefix)
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.store.listen(inbox, listener)
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

struct World {
    door: Arc<Door>,
    link: Arc<Link>,
}

impl World {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let door = Arc::new(Door {
            store: MemoryStore::new(Arc::new(clock.clone())),
            let_in: Semaphore::new(0),
            calls: Mutex::default(),
            moves: Mutex::default(),
            moved: Mutex::default(),
        });
        let link = Link::new(door.clone(), Arc::new(clock), Handle::current());
        Self {
            door,
            link: Arc::new(link),
        }
    }

    /// Somebody who acquires a name of their own.
    fn asker(&self, number: u8) -> JoinHandle<Result<Answer, Error>> {
        let link = self.link.clone();
        tokio::spawn(async move { link.ask(&name(number), acquire(number)).await })
    }

    /// So many askers at once, all of them on their way.
    async fn crowd(&self, count: u8) -> Vec<JoinHandle<Result<Answer, Error>>> {
        let askers = (0..count).map(|number| self.asker(number)).collect();
        settle().await;
        askers
    }

    async fn let_in(&self, calls: usize) {
        self.door.let_in.add_permits(calls);
        settle().await;
    }

    async fn snapshot(&self, number: u8) -> Snapshot {
        let inspect = [Action::Inspect.on(name(number))];
        let mut replies = self.door.store.apply(&inspect).await;
        match replies.remove(0).unwrap().outcome {
            Outcome::State(snapshot) => snapshot,
            other => panic!("inspect answered {other:?}"),
        }
    }
}

fn name(number: u8) -> LockName {
    let place = if number > 250 { "far" } else { "name" };
    LockName::new(format!("{place} {number}")).unwrap()
}

fn acquire(number: u8) -> Action {
    Action::Acquire(Acquire {
        owner: OwnerId::from_bytes([number; 16]),
        mode: Mode::Exclusive,
        ttl: Ttl::DEFAULT,
        party: Party::default(),
        waiting: Waiting::No,
        anchor: None,
        not_after: None,
    })
}

/// Lets every task go as far as it can: on one thread, nothing runs but by turns.
async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_store_gets_a_request_at_once() {
    let world = World::new();
    let asker = world.asker(1);
    settle().await;
    assert_eq!(world.door.sizes(), [1]);
    world.let_in(1).await;
    assert!(matches!(
        asker.await.unwrap().unwrap().outcome,
        Outcome::Granted(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn what_arrives_while_calls_are_under_way_shares_the_next() {
    let world = World::new();
    let askers = world.crowd(50).await;
    assert_eq!(world.door.sizes(), [1, 1, 1, 1]);
    world.let_in(1).await;
    assert_eq!(world.door.sizes(), [1, 1, 1, 1, 46]);
    world.let_in(4).await;
    for asker in askers {
        let answer = asker.await.unwrap().unwrap();
        assert!(matches!(answer.outcome, Outcome::Granted(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_hangs_holds_up_no_other() {
    let world = World::new();
    let _stuck = world.crowd(10).await;
    assert_eq!(world.door.sizes(), [1, 1, 1, 1]);
    let _asker = world.asker(251);
    settle().await;
    assert_eq!(world.door.sizes(), [1, 1, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_elsewhere_by_now_is_asked_for_there_and_holds_up_nobody() {
    for alone in [true, false] {
        let world = World::new();
        let mut askers = world.crowd(if alone { 4 } else { 10 }).await;
        let mover = if alone { 0 } else { 9 };
        *world.door.moves.lock().unwrap() = Some(name(mover));
        // Its call, and in its own lane it still waits while the others go on.
        world.let_in(if alone { 4 } else { 5 }).await;
        let moving = askers.remove(usize::from(mover));
        for asker in askers {
            assert!(asker.await.unwrap().is_ok());
        }
        assert!(!moving.is_finished());
        let calls = world.door.calls.lock().unwrap().clone();
        let last = calls.last().expect("it was sent on");
        assert_eq!((last.len(), &last[0].name), (1, &name(mover)));
        world.let_in(1).await;
        assert!(moving.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_has_more_than_its_share() {
    let world = World::new();
    let askers = world.crowd(200).await;
    world.let_in(100).await;
    assert!(world.door.sizes().iter().all(|size| *size <= BATCH));
    for asker in askers {
        assert!(asker.await.unwrap().is_ok());
    }
    // And the way is free again.
    let calls = world.door.sizes().len();
    let asker = world.asker(250);
    settle().await;
    assert_eq!(world.door.sizes().len(), calls + 1);
    assert!(asker.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn whoever_left_the_queue_is_not_asked_for() {
    let world = World::new();
    let askers = world.crowd(10).await;
    askers[9].abort();
    settle().await;
    world.let_in(10).await;
    assert_eq!(world.door.sizes(), [1, 1, 1, 1, 5]);
    assert!(world.snapshot(9).await.holders.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_was_under_way_when_its_asker_left_is_undone() {
    let world = World::new();
    let askers = world.crowd(10).await;
    world.let_in(1).await;
    assert_eq!(world.door.sizes(), [1, 1, 1, 1, 6]);
    askers[9].abort();
    settle().await;
    world.let_in(10).await;
    assert!(world.snapshot(9).await.holders.is_empty());
    assert_eq!(world.snapshot(8).await.holders.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn time_in_the_queue_counts_as_the_stores_time() {
    let world = World::new();
    let askers = world.crowd(100).await;
    // Nothing moves, so the clock leaps.
    for asker in askers {
        let error = asker.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    // Those who only stood in the queue were never sent.
    assert_eq!(world.door.sizes(), [1, 1, 1, 1]);
}
