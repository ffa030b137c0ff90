//! Small numbers that are unique among the living, and ids that are unique for ever.

use std::collections::HashSet;
use std::time::Duration;

use tenure::{ErrorKind, Ids, Tenure, WorkerNumber};

use super::Place;

async fn take(tenure: &Tenure, size: u32) -> Result<WorkerNumber, tenure::Error> {
    let pool = tenure.worker_number("importers", size);
    pool.wait(Duration::ZERO).acquire().await
}

/// Two clients share a pool until it is empty, and again when one has left.
pub(super) async fn no_two_have_the_same_number(place: &Place) {
    let (one, two) = place.two().await;
    let mut taken = Vec::new();
    for turn in 0..6 {
        let tenure = if turn % 2 == 0 { &one } else { &two };
        taken.push(take(tenure, 6).await.unwrap());
    }
    let numbers: HashSet<u32> = taken.iter().map(WorkerNumber::number).collect();
    assert_eq!(numbers, (0..6).collect());
    let refused = take(&two, 6).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    let said = "all 6 numbers of \"importers\" are taken";
    assert!(refused.to_string().contains(said), "{refused}");
    let gone = taken.pop().unwrap();
    let (number, fence) = (gone.number(), gone.fence());
    gone.release().await.unwrap();
    let next = one.worker_number("importers", 6).acquire().await.unwrap();
    assert_eq!(next.number(), number, "the only one that is free");
    assert!(next.fence() > fence);
    for worker in taken {
        worker.ensure().unwrap();
        worker.release().await.unwrap();
    }
}

/// One number, handed from client to client as fast as possible, and ids made all the time.
pub(super) async fn no_id_is_made_twice(place: &Place) {
    let (one, two) = place.two().await;
    let mut made = Vec::new();
    for tenure in [&one, &two, &one] {
        let pool = tenure.worker_number("ids", 1).acquire().await.unwrap();
        let ids = pool.into_ids().await.unwrap();
        for _ in 0..2_500 {
            made.push(ids.next().await.unwrap());
        }
        drop(ids);
        tenure.settle().await;
    }
    assert!(
        made.is_sorted_by(|one, next| one < next),
        "in order, none twice"
    );
    assert!(made.iter().all(|id| i64::try_from(*id).is_ok()));
}

#[tokio::test]
async fn names_sizes_and_numbers_are_checked() {
    let tenure = tenure::connect("memory:").await.unwrap();
    for pool in [tenure.worker_number("", 4), tenure.worker_number("x", 0)] {
        let refused = pool.acquire().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
    let large = tenure.worker_number("x", u32::MAX).acquire().await.unwrap();
    assert!(large.number() >= 1_024, "one in four million is not");
    let refused = large.into_ids().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[cfg(feature = "test-util")]
mod in_virtual_time {
    use tenure::Loss;
    use tenure::test_util::{Fault, Rule};

    use super::*;
    use crate::client_world::{World, millis, secs};

    async fn ids(tenure: &Tenure) -> Ids {
        let worker = tenure.worker_number("ids", 1).acquire().await.unwrap();
        worker.into_ids().await.unwrap()
    }

    fn time_of(id: u64) -> Duration {
        Duration::from_millis(id >> 21)
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_numbers_do_not_need_a_thousand_questions() {
        let world = World::new().await;
        let mut taken = Vec::new();
        for _ in 0..1_000 {
            taken.push(take(&world.tenure, 1_024).await.unwrap());
        }
        let before = world.store.calls().len();
        taken.push(take(&world.tenure, 1_024).await.unwrap());
        let calls = world.store.calls().len() - before;
        assert!(calls <= 20, "{calls} calls with 24 of 1024 left");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_gets_the_number_of_one_who_died() {
        let world = World::new().await;
        let dead = world.tenure.worker_number("ids", 1).ttl(secs(2));
        let dead = dead.acquire().await.unwrap();
        world.script(Rule::on("renew").does(Fault::Fail));
        let other = world.other_client().await;
        let next = other.worker_number("ids", 1).acquire().await.unwrap();
        assert_eq!(dead.lost().await, Loss::Expired);
        assert!(next.fence() > dead.fence());
    }

    #[tokio::test(start_paused = true)]
    async fn a_generator_whose_number_is_lost_makes_no_more_ids() {
        let world = World::new().await;
        let ids = ids(&world.tenure).await;
        let last = ids.next().await.unwrap();
        world.script(Rule::on("renew").does(Fault::Fail));
        world.pass(secs(31)).await;
        assert_eq!(ids.try_next().unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(ids.next().await.unwrap_err().kind(), ErrorKind::Lost);
        world.store.behave();
        let other = world.other_client().await;
        let successor = super::in_virtual_time::ids(&other).await;
        assert!(successor.next().await.unwrap() > last);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_ids_follows_the_stores_clock_closely_for_a_day() {
        let world = World::new().await;
        let ids = ids(&world.tenure).await;
        for _ in 0..24 {
            world.pass(secs(3_600)).await;
            ids.next().await.unwrap(); // looks at the store's clock
            let time = time_of(ids.next().await.unwrap());
            let (now, _) = world.peek("x").await;
            let lag = Duration::from_micros(now.as_micros()).checked_sub(time);
            assert!(
                lag.unwrap() < millis(65),
                "{lag:?}: never ahead, never far behind"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_seldom_heard_of_costs_accuracy_only() {
        let world = World::new().await;
        // Renewed every third of a day.
        let pool = world.tenure.worker_number("ids", 1).ttl(secs(86_400));
        let ids = pool.acquire().await.unwrap().into_ids().await.unwrap();
        world.script(Rule::on("inspect").does(Fault::Fail));
        let mut last = 0;
        for _ in 0..100 {
            world.pass(secs(100)).await;
            let id = ids.next().await.unwrap();
            assert!(id > last);
            last = id;
        }
        let (now, _) = world.peek("x").await;
        let lag = Duration::from_micros(now.as_micros()) - time_of(last);
        assert!(
            lag > secs(9) && lag < secs(11),
            "a thousandth of 10,000 s: {lag:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_millisecond_is_waited_for() {
        let world = World::new().await;
        let ids = ids(&world.tenure).await;
        world.pass(millis(5)).await;
        let mut count = 0;
        while ids.try_next().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 2_048);
        let before = world.now();
        ids.next().await.unwrap();
        assert!(world.now().since(before) <= millis(3));
    }
}

#[cfg(feature = "redis")]
mod on_redis {
    use super::*;
    use crate::support::clock::ClockedServer;
    use crate::support::redis_server::RedisServer;

    /// What a failover to a server with the same data and a clock that is behind looks like to everybody.
    #[tokio::test]
    async fn no_id_is_made_twice_when_the_next_server_is_three_seconds_behind() {
        let server = ClockedServer::start();
        // Opened long ago, by either clock.
        server.set(-3_600);
        let (one, two) = Place::new(server.url(), ()).two().await;
        server.set(0);
        let pool = |tenure: &Tenure| tenure.worker_number("ids", 1).acquire();
        let ids = pool(&one).await.unwrap().into_ids().await.unwrap();
        let mut made = Vec::new();
        make(&ids, &mut made, 700).await;
        server.set(-3);
        make(&ids, &mut made, 300).await;
        // The one who drops it has not heard of the new clock yet.
        drop(ids);
        let next = pool(&two).await.unwrap();
        let fence = Duration::from_micros(next.fence().as_u64());
        let next = next.into_ids().await.unwrap();
        let first = next.next().await.unwrap();
        assert!(Duration::from_millis(first >> 21) > fence + Duration::from_millis(999));
        made.push(first);
        make(&next, &mut made, 1_500).await;
        let repeated = made.len() - made.iter().collect::<HashSet<_>>().len();
        assert_eq!(repeated, 0, "of {}", made.len());
    }

    /// Whoever lives through it follows the new clock, and waits for it.
    #[tokio::test]
    async fn a_living_worker_follows_the_clock_of_the_next_server() {
        let server = ClockedServer::start();
        server.set(-3_600);
        let tenure = tenure::connect(&server.url()).await.unwrap();
        server.set(0);
        let worker = tenure.worker_number("ids", 1).acquire().await.unwrap();
        let ids = worker.into_ids().await.unwrap();
        let last = ids.next().await.unwrap();
        server.set(-3);
        let (there, _) = tenure.inspect("anything").await.unwrap();
        assert!(Duration::from_micros(there.as_micros()) < Duration::from_millis(last >> 21));
        let mut rest = Vec::new();
        while let Some(id) = ids.try_next().unwrap() {
            rest.push(id);
        }
        assert!(
            rest.iter().all(|id| id >> 21 == last >> 21),
            "no later than it"
        );
        let next = ids.next().await.unwrap();
        assert!(next >> 21 > last >> 21);
        let (there, _) = tenure.inspect("anything").await.unwrap();
        assert!(Duration::from_micros(there.as_micros()) >= Duration::from_millis(next >> 21));
        server.set(-30);
        tenure.inspect("anything").await.unwrap();
        let refused = ids.try_next().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    }

    /// Some in every millisecond, for so many milliseconds.
    async fn make(ids: &Ids, made: &mut Vec<u64>, millis: u64) {
        let first = ids.next().await.unwrap();
        made.push(first);
        while made
            .last()
            .is_some_and(|last| last >> 21 < (first >> 21) + millis)
        {
            made.push(ids.next().await.unwrap());
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_server_that_recovers_is_not_taken_for_a_full_pool() {
        let server = RedisServer::start();
        let url = format!("redis://{}", server.address());
        let tenure = tenure::connect(&url).await.unwrap();
        let refused = take(&tenure, 6).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("before the store has recovered"), "{text}");
        assert!(!text.contains("numbers of"), "{text}");
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    }

    #[tokio::test]
    async fn a_server_that_forgot_gives_nobody_a_number_that_is_taken() {
        let mut server = RedisServer::start();
        let url = format!("redis://{}?max_ttl=3s&recovery=open", server.address());
        let holder = tenure::connect(&url).await.unwrap();
        let pool = |tenure: &Tenure| tenure.worker_number("ids", 1).ttl(Duration::from_secs(3));
        let worker = pool(&holder).acquire().await.unwrap();
        let ids = worker.into_ids().await.unwrap();
        let before = ids.next().await.unwrap();
        let other = tenure::connect(&url).await.unwrap();
        server.kill();
        server.restart();
        let wait = Duration::from_secs(5);
        let refused = pool(&other).wait(wait).acquire().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        ids.worker().ensure().unwrap();
        let after = ids.next().await.unwrap();
        assert!(after > before);
        drop(ids);
        let next = pool(&other).acquire().await.unwrap();
        let next = next.into_ids().await.unwrap();
        assert!(next.next().await.unwrap() > after);
    }
}
