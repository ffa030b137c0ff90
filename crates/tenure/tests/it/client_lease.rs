//! Length and end of a lease: limits, leases that are left behind or handed on, and taking by force.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::clock::Clock;
use tenure::core::BoxFuture;
use tenure::stores::memory::MemoryStore;
use tenure::test_util::{Fault, Rule, VirtualClock};
use tenure::{ErrorKind, Loss, Moment, Tenure, Ttl};

use crate::client_world::{World, acquired, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn without_renewal_a_lease_ends_after_its_ttl() {
    let world = World::new().await;
    let started = world.now();
    let guard = world
        .tenure
        .lock("x")
        .ttl(secs(5))
        .no_renew()
        .acquire()
        .await
        .unwrap();
    assert_eq!(guard.lost().await, Loss::Expired);
    let held = world.now().since(started);
    assert!(held > millis(4900) && held < secs(5), "{held:?}");
    assert_eq!(world.store.count("renew"), 0);
}

/// The clock of a store, which can be set back.
#[derive(Debug)]
struct SetBack {
    clock: VirtualClock,
    by: Mutex<Duration>,
}

impl Clock for SetBack {
    fn now(&self) -> Moment {
        self.clock.now().minus(*self.by.lock().unwrap())
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(moment)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_clock_is_set_back_and_forth_leaves_nobody_believing_for_longer() {
    let clock = VirtualClock::new();
    let set_back = Arc::new(SetBack {
        clock: clock.clone(),
        by: Mutex::default(),
    });
    let store = Arc::new(MemoryStore::new(set_back.clone()));
    let tenure = Tenure::new(store, Arc::new(clock)).await.unwrap();
    let guard = tenure.lock("x").no_renew().acquire().await.unwrap();
    *set_back.by.lock().unwrap() = secs(600);
    // To the store the lease now lasts for 630 s; when its clock is set right again, for 30 s.
    guard.extend(secs(30)).await.unwrap();
    assert!(guard.remaining() <= secs(30), "{:?}", guard.remaining());
    let left = tenure
        .renew_lease("x", guard.lease(), Ttl::DEFAULT)
        .await
        .unwrap();
    assert!(left <= secs(30), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn hold_at_most_ends_the_hold_here_and_at_the_store() {
    let world = World::new().await;
    let started = world.now();
    let lock = world.tenure.lock("x").hold_at_most(secs(100));
    let guard = lock.acquire().await.unwrap();
    assert_eq!(guard.lost().await, Loss::HeldTooLong);
    let held = world.now().since(started);
    assert!(
        held >= secs(100) && held <= secs(100) + millis(2),
        "{held:?}"
    );
    others_act().await;
    world.tenure.settle().await;
    assert!(
        world.is_idle("x").await,
        "given back although the guard lives"
    );
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_before_its_limit_has_expired_whenever_that_is_noticed() {
    let world = World::new().await;
    let lock = world.tenure.lock("x").no_renew().hold_at_most(secs(60));
    let guard = lock.acquire().await.unwrap();
    world.clock.jump(secs(120));
    assert!(!guard.is_valid());
    assert_eq!(guard.lost().await, Loss::Expired);
}

#[tokio::test(start_paused = true)]
async fn extend_prolongs_and_later_renewals_keep_the_new_ttl() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").ttl(secs(5)).acquire().await.unwrap();
    guard.extend(secs(60)).await.unwrap();
    assert!(world.lasts("x").await == secs(60));
    assert!(guard.remaining() > secs(59));
    world.pass(secs(300)).await;
    assert!(world.lasts("x").await > secs(35));
    world.store.forget(guard.name()).await.unwrap();
    let error = guard.extend(secs(60)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(!guard.is_valid(), "what the store said counts at once");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_repeated_for_as_long_as_the_longest_lease_that_was_asked_for() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").ttl(secs(2)).acquire().await.unwrap();
    world.script(Rule::on("renew").times(1).does(Fault::LoseReply));
    guard.extend(secs(3600)).await.unwrap_err();
    guard.extend(secs(1)).await.unwrap();
    assert!(world.lasts("x").await > secs(3000), "never shortened");
    world.script(Rule::on("release"));
    drop(guard);
    world.pass(secs(60)).await;
    world.store.behave();
    world.pass(secs(2)).await;
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn a_failed_extend_leaves_the_hold_as_it_was() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("renew").times(1));
    let error = guard.extend(secs(60)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    guard.ensure().unwrap();
    let error = guard.extend(millis(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    guard.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn leave_for_leaves_exactly_that_long() {
    for rest in [secs(5), secs(100)] {
        let world = World::new().await;
        let guard = world.tenure.lock("x").acquire().await.unwrap();
        let lease = guard.leave_for(rest).await.unwrap();
        assert_eq!(world.lasts("x").await, rest);
        let other = world.other_client().await;
        let started = world.now();
        let next = other.lock("x").acquire().await.unwrap();
        let waited = world.now().since(started);
        assert!(waited >= rest && waited < rest + millis(100), "{waited:?}");
        assert!(next.fence() > lease.fence);
        assert_eq!(world.store.count("release"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_on_its_way_does_not_prolong_what_is_left_behind() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("renew").times(1).does(Fault::Delay(secs(1))));
    while world.store.count("renew") == 0 {
        world.pass(millis(10)).await;
    }
    guard.leave_for(secs(5)).await.unwrap();
    assert_eq!(world.lasts("x").await, secs(5));
    world.pass(secs(3)).await;
    assert_eq!(world.lasts("x").await, secs(2));
}

/// A store that recovers would take it for a holder that comes back.
#[tokio::test(start_paused = true)]
async fn a_renewal_on_its_way_does_not_outlive_the_release() {
    for dropped in [false, true] {
        let world = World::new().await;
        let guard = world.tenure.lock("x").acquire().await.unwrap();
        world.script(Rule::on("renew").times(1).does(Fault::Delay(secs(1))));
        while world.store.count("renew") == 0 {
            world.pass(millis(10)).await;
        }
        let started = world.now();
        if dropped {
            drop(guard);
            world.pass(secs(3)).await;
            assert_eq!(world.store.count("release"), 2, "again when it has arrived");
        } else {
            guard.release().await.unwrap();
            assert!(world.now().since(started) >= millis(900), "after it");
            assert_eq!(world.store.count("release"), 1);
        }
        assert!(world.is_idle("x").await);
    }
}

#[tokio::test(start_paused = true)]
async fn leave_for_insists_while_the_store_is_away() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("renew").times(5));
    guard.leave_for(secs(60)).await.unwrap();
    assert_eq!(world.lasts("x").await, secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_handed_on_is_not_released_by_anybody() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").detached().acquire().await.unwrap();
    // A renewal is on its way when the lease is handed on; its answer must not undo that.
    world.script(Rule::on("renew").times(1).does(Fault::DelayReply(secs(1))));
    while world.store.count("renew") == 0 {
        world.pass(millis(10)).await;
    }
    let lease = guard.into_lease();
    world.pass(secs(5)).await;
    world.tenure.settle().await;
    assert!(world.lasts("x").await > secs(20));
    assert_eq!(world.store.count("release"), 0);
    assert_eq!(world.store.count("renew"), 1, "and nobody renews it");

    let other = world.other_client().await;
    let left = other.renew_lease("x", lease, Ttl::DEFAULT).await.unwrap();
    assert!(left > secs(29));
    other.release_lease("x", lease).await.unwrap();
    let again = other.release_lease("x", lease).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Lost);
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_ousted_learns_by_whom_and_why() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let other = world.other_client().await;
    other
        .force_release("x", guard.lease(), "stuck since Monday")
        .await
        .unwrap();
    let next = acquired(other.lock("x").try_acquire().await.unwrap());
    let Loss::Forced(forced) = guard.lost().await else {
        panic!("lost for another reason");
    };
    assert_eq!(forced.reason, "stuck since Monday");
    assert_eq!(forced.by.pid(), std::process::id());
    let message = guard.ensure().unwrap_err().to_string();
    assert!(message.contains("stuck since Monday"), "{message}");
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    world.tenure.settle().await;
    next.ensure().unwrap();
    assert!(
        !world.is_idle("x").await,
        "the late release ends nobody else's hold"
    );
}

#[tokio::test(start_paused = true)]
async fn what_others_held_meanwhile_cannot_be_extended() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").no_renew().acquire().await.unwrap();
    let lease = guard.lease();
    world.clock.jump(secs(31));
    let other = world.other_client().await;
    let next = acquired(other.lock("x").try_acquire().await.unwrap());
    next.release().await.unwrap();
    // Free again, and still not the first one's: neither by the guard nor by its lease.
    let error = guard.extend(secs(60)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    let error = other.renew_lease("x", lease, Ttl::DEFAULT).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Lost);
    assert!(world.is_idle("x").await);
}
