//! Numbers that are never given twice: to nobody, not by a store that restarted, forgot or was away.

use std::collections::HashSet;

use super::Place;
use tenure::{ErrorKind, Sequence};

/// Two clients with some tasks each take numbers, single ones and blocks, as fast as they can.
pub(super) async fn never_gives_a_number_twice(place: &Place) {
    let (one, two) = place.two().await;
    let tasks = (0..8).map(|task| {
        let tenure = if task % 2 == 0 { &one } else { &two };
        let sequence = tenure.sequence("orders");
        tokio::spawn(async move {
            let mut numbers = Vec::new();
            for _ in 0..10 {
                numbers.push(sequence.next().await.unwrap());
            }
            assert!(numbers.is_sorted(), "{numbers:?}");
            numbers.extend(sequence.next_block(20).await.unwrap());
            numbers
        })
    });
    let mut seen = HashSet::new();
    for task in tasks.collect::<Vec<_>>() {
        for number in task.await.unwrap() {
            assert!(i64::try_from(number).is_ok(), "{number} fits no BIGINT");
            assert!(seen.insert(number), "{number} was given twice");
        }
    }
    let highest = seen.iter().filter(|number| **number < 1 << 53).max();
    let next = two.sequence("orders").next().await.unwrap();
    assert!(Some(&next) > highest);
    let other = one.sequence("invoices").next().await.unwrap();
    assert!(other > 0, "another sequence knows nothing of it");
    one.settle().await;
    two.settle().await;
    let left = one.list("~sequence:").await.unwrap();
    assert!(left.locks.is_empty(), "{left:?}");
}

#[tokio::test]
async fn names_and_blocks_are_checked() {
    let tenure = tenure::connect("memory:").await.unwrap();
    let refused = tenure.sequence("").next().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    for count in [0, Sequence::LARGEST_BLOCK + 1] {
        let refused = tenure.sequence("x").next_block(count).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
    let block = tenure.sequence("x").next_block(1).await.unwrap();
    assert_eq!(block.start(), block.end());
}

#[cfg(feature = "test-util")]
mod in_virtual_time {
    use tenure::test_util::{Fault, Rule};

    use super::*;
    use crate::client_world::{World, millis, secs};

    #[tokio::test(start_paused = true)]
    async fn a_lost_reply_costs_a_number_and_never_gives_it_twice() {
        let world = World::new().await;
        let sequence = world.tenure.sequence("orders");
        let before = sequence.next().await.unwrap();
        let lost = Rule::on("acquire").times(1).does(Fault::LoseReply);
        world.script(lost);
        let after = sequence.next().await.unwrap();
        assert!(after > before);
        world.tenure.settle().await;
        assert!(world.is_idle("~sequence:orders").await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_on_time_when_the_store_is_away() {
        for fault in [Fault::Hang, Fault::Fail] {
            let world = World::new().await;
            world.script(Rule::on_everything().does(fault));
            let sequence = world.tenure.sequence("orders").wait(secs(1));
            let began = world.now();
            let error = sequence.next().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(world.now().since(began) <= millis(1_010));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_at_once_are_one_call() {
        let world = World::new().await;
        let sequence = world.tenure.sequence("orders");
        sequence.next().await.unwrap();
        world.tenure.settle().await;
        world.script(Rule::on_everything().does(Fault::DelayReply(millis(5))));
        let before = world.store.calls().len();
        let many = (0..20).map(|_| sequence.next());
        for number in futures_util::future::join_all(many).await {
            number.unwrap();
        }
        let calls = world.store.calls().len() - before;
        assert!(calls <= 6, "{calls} calls for 20 numbers");
    }
}

#[cfg(feature = "redis")]
mod on_redis {
    use crate::support::redis_server::RedisServer;

    #[tokio::test]
    async fn a_server_that_forgot_everything_still_gives_higher_numbers() {
        let mut server = RedisServer::start();
        let url = format!("redis://{}?max_ttl=3s", server.address());
        let connect = async || {
            let url = format!("{url}&recovery=open");
            tenure::connect(&url).await.unwrap()
        };
        let before = connect().await.sequence("orders").next().await.unwrap();
        let tenure = connect().await;
        server.kill();
        server.restart();
        // It knew the server before, so it waits until what may be forgotten has ended.
        let after = tenure.sequence("orders").next().await.unwrap();
        assert!(after > before);
        let newcomer = connect().await.sequence("orders").next().await.unwrap();
        assert!(newcomer > after);
    }
}
