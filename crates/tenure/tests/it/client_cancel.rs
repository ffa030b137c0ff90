//! Cancel safety: every future of the client is dropped at *every* poll, and leaves nothing behind.
//!
//! [`leaves_nothing_behind`] takes any client, so each store runs the same scenarios.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tenure::test_util::{Fault, Rule};
use tenure::{Error, Guard, Tenure};

use crate::client_world::{World, acquired, millis, secs};

/// What is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scenario {
    Exclusive,
    Shared,
    Permits,
    /// While somebody else holds it, who gives it back meanwhile.
    Contended,
    ContendedLocally,
    /// The same, and a third task waits behind.
    HandedOn,
    ContendedReader,
    All,
    AllContended,
    Owner,
    Reentry,
    Try,
    Run,
    Release,
    Downgrade,
    Extend,
    LeaveFor,
    ReleaseAll,
}

pub(crate) const SCENARIOS: [Scenario; 18] = [
    Scenario::Exclusive,
    Scenario::Shared,
    Scenario::Permits,
    Scenario::Contended,
    Scenario::ContendedLocally,
    Scenario::HandedOn,
    Scenario::ContendedReader,
    Scenario::All,
    Scenario::AllContended,
    Scenario::Owner,
    Scenario::Reentry,
    Scenario::Try,
    Scenario::Run,
    Scenario::Release,
    Scenario::Downgrade,
    Scenario::Extend,
    Scenario::LeaveFor,
    Scenario::ReleaseAll,
];

type Doing = Pin<Box<dyn Future<Output = Result<Kept, Error>> + Send>>;

/// What a scenario gives if it is not dropped; dropping this must clean up as well.
#[derive(Debug)]
pub(crate) enum Kept {
    Nothing,
    Guards { _guards: Vec<Guard> },
    All { _guard: tenure::AllGuard },
    Lease(tenure::Lease),
}

/// Drops each scenario after one poll, after two, and so on until it completes, and checks after
/// each that the store knows nothing of it any more. `other` is a second client of the same store.
pub(crate) async fn leaves_nothing_behind(tenure: &Tenure, other: &Tenure) {
    for scenario in SCENARIOS {
        for polls in 1.. {
            assert!(polls < 1_000, "{scenario:?} does not end");
            if dropped_after(polls, scenario, tenure, other).await {
                break;
            }
        }
    }
}

/// Answers whether it completed before it was dropped.
async fn dropped_after(polls: usize, scenario: Scenario, tenure: &Tenure, other: &Tenure) -> bool {
    let Staged { doing, around } = stage(scenario, tenure, other).await;
    let (done, ()) = tokio::join!(poll_at_most(polls, doing), around);
    let completed = done.is_some();
    if let Some(result) = done {
        let kept = result.unwrap_or_else(|error| panic!("{scenario:?}: {error}"));
        if let Kept::Lease(lease) = kept {
            tenure.release_lease("cancel-a", lease).await.unwrap();
        }
    }
    tenure.settle().await;
    other.settle().await;
    for name in ["cancel-a", "cancel-b"] {
        let (_, snapshot) = tenure.inspect(name).await.unwrap();
        assert!(
            snapshot.holders.is_empty() && snapshot.waiters.is_empty(),
            "{scenario:?} dropped after {polls} polls left {name}: {snapshot:?}"
        );
        let attempt = other.lock(name).try_acquire().await.unwrap();
        acquired(attempt).release().await.unwrap();
    }
    completed
}

/// A scenario, ready to go.
struct Staged {
    doing: Doing,
    /// What others do meanwhile.
    around: Pin<Box<dyn Future<Output = ()>>>,
}

async fn stage(scenario: Scenario, tenure: &Tenure, other: &Tenure) -> Staged {
    let mut around: Pin<Box<dyn Future<Output = ()>>> = Box::pin(std::future::ready(()));
    let lock = tenure.lock("cancel-a");
    let doing: Doing = match scenario {
        Scenario::Exclusive => guard(lock.acquire()),
        Scenario::Shared => guard(tenure.rwlock("cancel-a").read().acquire()),
        Scenario::Permits => guard(tenure.semaphore("cancel-a", 3).permits(2).acquire()),
        Scenario::Contended | Scenario::ContendedLocally | Scenario::ContendedReader => {
            let local = matches!(scenario, Scenario::ContendedLocally);
            let holder = if local { tenure } else { other };
            around = gives_back(holder.lock("cancel-a").acquire().await.unwrap());
            match scenario {
                Scenario::ContendedReader => guard(tenure.rwlock("cancel-a").read().acquire()),
                _ => guard(lock.acquire()),
            }
        }
        Scenario::HandedOn => {
            let (first, third) = (lock.clone().acquire().await.unwrap(), lock.clone());
            around = Box::pin(async move {
                let mut third = Box::pin(third.acquire());
                assert!(futures_util::poll!(third.as_mut()).is_pending());
                gives_back(first).await;
                third.await.unwrap().release().await.unwrap();
            });
            nothing(async move { lock.acquire().await?.release().await })
        }
        Scenario::All => all(tenure.all(["cancel-b", "cancel-a"]).acquire()),
        Scenario::AllContended => {
            around = gives_back(other.lock("cancel-b").acquire().await.unwrap());
            all(tenure.all(["cancel-b", "cancel-a"]).acquire())
        }
        Scenario::Owner => guard(tenure.owner().lock("cancel-a").acquire()),
        Scenario::Reentry => {
            let owner = tenure.owner();
            Box::pin(async move {
                let outer = owner.lock("cancel-a").acquire().await?;
                let inner = owner.lock("cancel-a").acquire().await?;
                let _guards = vec![outer, inner];
                Ok(Kept::Guards { _guards })
            })
        }
        Scenario::Try => Box::pin(async move {
            let _guards = vec![acquired(lock.try_acquire().await?)];
            Ok(Kept::Guards { _guards })
        }),
        Scenario::Run => {
            let nested = tenure.lock("cancel-b");
            Box::pin(async move {
                let run = lock.run(async |_| nested.acquire().await?.release().await);
                run.await?.map(|()| Kept::Nothing)
            })
        }
        Scenario::Release => {
            let held = lock.acquire().await.unwrap();
            nothing(async move { held.release().await })
        }
        Scenario::Downgrade => {
            let held = lock.acquire().await.unwrap();
            nothing(async move { held.downgrade().await })
        }
        Scenario::Extend => {
            let held = lock.acquire().await.unwrap();
            nothing(async move { held.extend(secs(60)).await })
        }
        Scenario::LeaveFor => {
            let held = lock.acquire().await.unwrap();
            Box::pin(async move { Ok(Kept::Lease(held.leave_for(secs(60)).await?)) })
        }
        Scenario::ReleaseAll => {
            let held = lock.acquire().await.unwrap();
            let tenure = tenure.clone();
            nothing(async move {
                let released = tenure.release_all().await;
                drop(held);
                released.map(drop)
            })
        }
    };
    Staged { doing, around }
}

fn guard(acquiring: impl Future<Output = Result<Guard, Error>> + Send + 'static) -> Doing {
    Box::pin(async move {
        let _guards = vec![acquiring.await?];
        Ok(Kept::Guards { _guards })
    })
}

fn all(acquiring: impl Future<Output = Result<tenure::AllGuard, Error>> + Send + 'static) -> Doing {
    Box::pin(async move {
        let _guard = acquiring.await?;
        Ok(Kept::All { _guard })
    })
}

fn nothing(doing: impl Future<Output = Result<(), Error>> + Send + 'static) -> Doing {
    Box::pin(async move { doing.await.map(|()| Kept::Nothing) })
}

fn gives_back(guard: Guard) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        guard.release().await.unwrap();
    })
}

/// Polls `doing` at most `polls` times, then drops it.
async fn poll_at_most<T>(polls: usize, doing: impl Future<Output = T>) -> Option<T> {
    let mut doing = Box::pin(doing);
    let mut left = polls;
    let result = poll_fn(|context| {
        left -= 1;
        match doing.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    result.await
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_poll_leaves_nothing_behind_in_memory() {
    let world = World::new().await;
    let other = world.other_client().await;
    leaves_nothing_behind(&world.tenure, &other).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_before_and_after_a_slow_store_acted_leaves_nothing_behind() {
    for fault in [Fault::Delay(millis(5)), Fault::DelayReply(millis(5))] {
        let world = World::new().await;
        let other = world.other_client().await;
        for word in ["acquire", "renew", "convert", "release"] {
            world.script(Rule::on(word).does(fault));
        }
        leaves_nothing_behind(&world.tenure, &other).await;
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_while_replies_get_lost_leaves_nothing_behind() {
    let world = World::new().await;
    let other = world.other_client().await;
    for scenario in SCENARIOS {
        for polls in 1..40 {
            world.script(Rule::on("acquire").times(2).does(Fault::LoseReply));
            world.script(Rule::on("release").times(1).does(Fault::LoseReply));
            world.script(Rule::on("cancel").times(1).does(Fault::LoseReply));
            if matches!(
                scenario,
                Scenario::Try
                    | Scenario::Release
                    | Scenario::Downgrade
                    | Scenario::Extend
                    | Scenario::LeaveFor
                    | Scenario::ReleaseAll
            ) {
                // These report a lost reply instead of sitting it out.
                world.store.behave();
                world.script(Rule::on("cancel").times(1).does(Fault::LoseReply));
            }
            let staged = dropped_after_with_rules(polls, scenario, &world, &other);
            if staged.await {
                break;
            }
        }
    }
}

/// As [`dropped_after`], but well-behaved again once the future has been dropped.
async fn dropped_after_with_rules(
    polls: usize,
    scenario: Scenario,
    world: &World,
    other: &Tenure,
) -> bool {
    let Staged { doing, around } = stage(scenario, &world.tenure, other).await;
    let (done, ()) = tokio::join!(poll_at_most(polls, doing), around);
    let completed = done.is_some();
    if let Some(Ok(Kept::Lease(lease))) = done {
        let released = world.tenure.release_lease("cancel-a", lease).await;
        released.unwrap();
    } else {
        drop(done);
    }
    world.tenure.settle().await;
    other.settle().await;
    world.store.behave();
    for name in ["cancel-a", "cancel-b"] {
        assert!(
            world.is_idle(name).await,
            "{scenario:?} dropped after {polls} polls left {name}: {:?}",
            world.peek(name).await
        );
    }
    completed
}

/// Whoever asks while others do shares their calls, and must be able to leave them all the same.
#[tokio::test(start_paused = true)]
async fn a_crowd_that_gives_up_leaves_nothing_behind() {
    for fault in [Fault::Delay(millis(50)), Fault::DelayReply(millis(50))] {
        for patience in [0, 1, 49, 50, 51, 99, 100, 120, 170] {
            let world = World::new().await;
            world.script(Rule::on("acquire").does(fault));
            let crowd: Vec<_> = (0..300)
                .map(|number| tokio::spawn(world.tenure.lock(format!("name-{number}")).acquire()))
                .collect();
            world.pass(millis(patience)).await;
            crowd.iter().for_each(tokio::task::JoinHandle::abort);
            for task in crowd {
                drop(task.await);
            }
            world.tenure.settle().await;
            // What shared a call that was under way is undone right after it.
            world.pass(secs(1)).await;
            let left = world.tenure.list("").await.unwrap().locks;
            assert!(left.is_empty(), "{fault:?} after {patience} ms: {left:?}");
        }
    }
}
