//! Giving back: by release, by drop, all at once, twice, too late, and with the reply lost.

use tenure::test_util::{Fault, Rule};
use tenure::{ErrorKind, Mode};

use crate::client_world::{World, acquired, millis, others_act, secs};

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_is_given_back_in_the_background() {
    let world = World::new().await;
    drop(world.tenure.lock("x").acquire().await.unwrap());
    world.tenure.settle().await;
    assert!(world.is_idle("x").await);
    assert_eq!(world.store.count("release"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_background_release_is_repeated_until_the_store_is_back() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("release").times(20));
    drop(guard);
    world.tenure.settle().await;
    assert_eq!(world.store.count("release"), 21);
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn a_background_release_that_is_refused_for_good_is_not_repeated() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("release").does(Fault::Refuse));
    drop(guard);
    world.tenure.settle().await;
    assert_eq!(world.store.count("release"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_background_release_is_given_up_when_the_lease_has_ended_anyway() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("release"));
    drop(guard);
    let started = world.now();
    world.tenure.settle().await;
    let tried = world.now().since(started);
    assert!(tried >= secs(29) && tried < secs(32), "{tried:?}");
}

#[tokio::test(start_paused = true)]
async fn many_background_releases_share_few_calls_while_the_store_hangs() {
    let world = World::new().await;
    let mut guards = Vec::new();
    for number in 0..1_000 {
        let lock = world.tenure.lock(format!("name-{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    world.script(Rule::on("release").does(Fault::Hang));
    world.store.forget_calls();
    drop(guards);
    world.pass(secs(10)).await;
    assert!(
        world.store.calls().len() <= 25,
        "{} calls",
        world.store.calls().len()
    );
    world.store.resume().await;
    world.tenure.settle().await;
    assert!(world.tenure.list("").await.unwrap().locks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn releasing_tells_the_truth() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    guard.release().await.unwrap();
    assert!(world.is_idle("x").await);

    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.store.forget(guard.name()).await.unwrap();
    let error = guard.release().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
}

#[tokio::test(start_paused = true)]
async fn releasing_what_has_expired_says_lost_at_once_and_asks_nobody() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").no_renew().acquire().await.unwrap();
    world.clock.jump(secs(31));
    let other = world.other_client().await;
    let next = acquired(other.lock("x").try_acquire().await.unwrap());
    world.script(Rule::on("release").of("x").does(Fault::Hang));
    let started = world.now();
    let error = guard.release().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(world.now(), started);
    world.store.resume().await;
    world.tenure.settle().await;
    next.ensure().unwrap();
    assert!(!world.is_idle("x").await, "the late release ended nothing");
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_reply_is_lost_is_repeated_and_counts_as_done() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("release").times(1).does(Fault::LoseReply));
    guard.release().await.unwrap();
    assert_eq!(world.store.count("release"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_cannot_be_told_says_so_when_the_lease_has_ended() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    world.script(Rule::on("release").does(Fault::Hang));
    let started = world.now();
    let error = guard.release().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(world.now().since(started) < secs(33));
}

#[tokio::test(start_paused = true)]
async fn release_all_ends_everything_and_says_how_much() {
    let world = World::new().await;
    let mut guards = Vec::new();
    for number in 0..250 {
        let lock = world.tenure.lock(format!("name-{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    let other = world.other_client().await;
    let foreign = other.lock("not-ours").acquire().await.unwrap();
    world.store.forget_calls();
    assert_eq!(world.tenure.release_all().await.unwrap(), 250);
    assert_eq!(world.store.calls().len(), 3);
    assert!(guards.iter().all(|guard| !guard.is_valid()));
    let message = guards[0].ensure().unwrap_err().to_string();
    assert!(message.contains("release_all"), "{message}");
    assert_eq!(world.tenure.release_all().await.unwrap(), 0);
    foreign.ensure().unwrap();
    // Giving back what was given back is fine.
    for guard in guards {
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_release_all_could_not_tell_the_store_is_told_later() {
    let world = World::new().await;
    let mut guards = Vec::new();
    for number in 0..250 {
        let lock = world.tenure.lock(format!("name-{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    world.script(Rule::on("release").times(300));
    let error = world.tenure.release_all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(guards.iter().all(|guard| !guard.is_valid()));
    world.tenure.settle().await;
    assert!(world.tenure.list("").await.unwrap().locks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn release_all_does_not_count_what_was_gone() {
    let world = World::new().await;
    let guard = world.tenure.lock("x").acquire().await.unwrap();
    let _other = world.tenure.lock("y").acquire().await.unwrap();
    world.store.forget(guard.name()).await.unwrap();
    assert_eq!(world.tenure.release_all().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn guards_outlive_the_client_they_came_from() {
    let world = World::new().await;
    let other = world.other_client().await;
    let guard = other.lock("x").acquire().await.unwrap();
    drop(other);
    world.pass(secs(300)).await;
    guard.ensure().unwrap();
    drop(guard);
    others_act().await;
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_lets_waiting_readers_in() {
    let world = World::new().await;
    let rwlock = world.tenure.rwlock("doc");
    let writer = rwlock.write().acquire().await.unwrap();
    let other = world.other_client().await;
    let reading = tokio::spawn(other.rwlock("doc").read().acquire());
    others_act().await;
    assert!(!reading.is_finished());
    writer.downgrade().await.unwrap();
    let reader = reading.await.unwrap().unwrap();
    assert_eq!(writer.mode(), Mode::Shared);
    assert!(writer.is_valid() && reader.is_valid());
    assert!(reader.fence() > writer.fence());
    // A second time is harmless, and a writer still has to wait for both.
    writer.downgrade().await.unwrap();
    let writing = tokio::spawn(rwlock.write().acquire());
    others_act().await;
    writer.release().await.unwrap();
    others_act().await;
    assert!(!writing.is_finished());
    reader.release().await.unwrap();
    writing.await.unwrap().unwrap().ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_a_writer_can_be_downgraded() {
    let world = World::new().await;
    let permit = world.tenure.semaphore("gpu", 2).acquire().await.unwrap();
    let error = permit.downgrade().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    permit.ensure().unwrap();
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_when_its_lock_is_lost() {
    let world = World::new().await;
    world.script(Rule::on("renew"));
    let forever = world
        .tenure
        .lock("x")
        .run(async |_| std::future::pending::<()>().await);
    let error = forever.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    world.tenure.settle().await;
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_when_everything_is_released() {
    let world = World::new().await;
    let tenure = world.tenure.clone();
    let work = world
        .tenure
        .lock("x")
        .run(async |_| std::future::pending::<()>().await);
    let (error, released) = tokio::join!(work, async {
        others_act().await;
        tenure.release_all().await.unwrap()
    });
    assert_eq!(released, 1);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_gives_its_lock_back_and_its_value() {
    let world = World::new().await;
    let clock = world.clock.clone();
    let value = world.tenure.lock("x").run(async |guard| {
        use tenure::Clock;
        clock.sleep(secs(90)).await;
        guard.ensure().unwrap();
        7
    });
    assert_eq!(value.await.unwrap(), 7);
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn the_value_of_work_does_not_wait_for_a_store_that_hangs() {
    let world = World::new().await;
    world.script(Rule::on("release").does(Fault::Hang));
    let started = world.now();
    assert_eq!(world.tenure.lock("x").run(async |_| 7).await.unwrap(), 7);
    assert!(world.now().since(started) <= secs(2) + millis(2));
    world.store.resume().await;
    world.tenure.settle().await;
    assert!(world.is_idle("x").await);
}

#[tokio::test(start_paused = true)]
async fn work_that_ended_while_the_lock_was_being_lost_is_not_reported_as_safe() {
    let world = World::new().await;
    let (store, clock) = (world.store.clone(), world.clock.clone());
    let work = world.tenure.lock("x").run(async |guard| {
        use tenure::Clock;
        store.forget(guard.name()).await.unwrap();
        clock.sleep(millis(1)).await;
    });
    assert_eq!(work.await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test(start_paused = true)]
async fn all_is_all_or_nothing() {
    let world = World::new().await;
    let other = world.other_client().await;
    let blocker = other.lock("b").acquire().await.unwrap();
    let started = world.now();
    let all = world.tenure.all(["c", "b", "a", "b"]).wait(secs(3));
    let error = all.clone().acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(world.now().since(started), secs(3));
    world.tenure.settle().await;
    assert!(world.is_idle("a").await && world.is_idle("c").await);
    blocker.release().await.unwrap();
    let guard = all.acquire().await.unwrap();
    let names: Vec<_> = guard
        .guards()
        .iter()
        .map(|guard| guard.name().as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    guard.release().await.unwrap();
    for name in names_of_all() {
        assert!(world.is_idle(name).await);
    }
}

fn names_of_all() -> [&'static str; 3] {
    ["a", "b", "c"]
}

#[tokio::test(start_paused = true)]
async fn all_in_opposite_orders_cannot_deadlock() {
    let world = World::new().await;
    let mut tasks = Vec::new();
    for number in 0..40 {
        let client = world.other_client().await;
        let names = if number % 2 == 0 {
            ["a", "b", "c"]
        } else {
            ["c", "b", "a"]
        };
        tasks.push(tokio::spawn(async move {
            client.all(names).acquire().await.unwrap().release().await
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn all_gives_up_when_one_of_them_is_lost_while_it_waits_for_another() {
    let world = World::new().await;
    let other = world.other_client().await;
    let _blocker = other.lock("b").acquire().await.unwrap();
    world.script(Rule::on("renew").of("a"));
    let error = world.tenure.all(["a", "b"]).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("\"a\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn all_refuses_a_bad_name_before_it_takes_anything() {
    let world = World::new().await;
    for names in [vec!["a", "b\n"], vec![], vec!["", "a"]] {
        let error = world.tenure.all(names).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(world.store.count("acquire"), 0);
}
