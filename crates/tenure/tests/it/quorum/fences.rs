//! Fences and validity of a lock on several stores: what is agreed on, whichever majority it was. In
//! virtual time, so every bound is exact.

use std::sync::Arc;
use std::time::Duration;

use tenure::ErrorKind;
use tenure::clock::Clock;
use tenure::stores::quorum::Settings;
use tenure::test_util::{Fault, VirtualClock};

use super::world::Quorum;
use crate::client_world::{acquired, millis, others_act, secs};

const NODE_TIMEOUT: Duration = Settings::NODE_TIMEOUT;

#[tokio::test(start_paused = true)]
async fn fences_grow_whichever_majority_gave_them() {
    let quorum = Quorum::of(5);
    let mut last = None;
    for round in 0..30_usize {
        // Another minority is away each time.
        for member in &quorum.members {
            member.resume().await;
        }
        let tenure = quorum.client().await;
        quorum.all([round % 5, (round * 3 + 1) % 5], Fault::Fail);
        let guard = acquired(tenure.lock("x").ttl(secs(1)).try_acquire().await.unwrap());
        assert!(Some(guard.fence()) > last, "round {round}");
        last = Some(guard.fence());
        guard.release().await.unwrap();
        quorum.pass(secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_with_a_higher_fence_raises_the_others_before_anybody_is_told() {
    let quorum = Quorum::of(3);
    let ahead = tenure::Fence::from_u64(9_000_000_000_000_000);
    for member in 0..2 {
        quorum.leap_ahead(member, "x", ahead).await;
    }
    let tenure = quorum.client().await;
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    assert!(guard.fence() > ahead);
    others_act().await;
    let mut written = 0;
    for member in 0..3 {
        written += usize::from(quorum.peek(member, "x").await.last_fence >= guard.fence());
    }
    assert!(written >= 2);
    let fence = guard.fence();
    guard.release().await.unwrap();
    // The next majority has one of those two.
    quorum.all([0], Fault::Fail);
    let next = acquired(tenure.lock("x").try_acquire().await.unwrap());
    assert!(next.fence() > fence);
}

#[tokio::test(start_paused = true)]
async fn validity_is_that_of_the_slowest_of_the_majority() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    quorum.all([1], Fault::Delay(millis(20)));
    quorum.all([2], Fault::Delay(millis(40)));
    let guard = acquired(
        tenure
            .lock("x")
            .ttl(secs(1))
            .no_renew()
            .try_acquire()
            .await
            .unwrap(),
    );
    // Counted from before the first was asked, whenever the others answered.
    let left = guard.remaining();
    assert!(left <= millis(1000 - 20 - 50), "{left:?}");
    assert!(left > millis(800), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_slower_than_the_ttl_allows_is_not_granted() {
    let quorum = Quorum::of(3);
    let tenure = quorum.client().await;
    // They must agree on a fence first, and two rounds are too many for so short a ttl.
    let far = tenure::Fence::from_u64(9_000_000_000_000);
    quorum.leap_ahead(0, "x", far).await;
    quorum.all([2], Fault::Fail);
    quorum.all([0, 1], Fault::DelayReply(millis(30)));
    let lock = tenure.lock("x").ttl(millis(100));
    let error = lock.try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("too slowly"), "{error}");
    quorum.pass(secs(1)).await;
    assert_eq!(quorum.votes("x").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_lies_about_the_time_changes_nothing() {
    let mut quorum = Quorum::of(3);
    // Years ahead: its own clock, which nobody else goes by.
    let ahead = std::sync::Arc::new(tenure::test_util::VirtualClock::new());
    ahead.jump(secs(300_000_000));
    let memory = std::sync::Arc::new(tenure::stores::memory::MemoryStore::new(ahead));
    quorum.members[1] = tenure::test_util::ScriptedStore::new(memory.clone(), quorum.clock.clone());
    quorum.memories[1] = memory;
    let tenure = quorum.client().await;
    let first = acquired(tenure.lock("x").ttl(secs(9)).try_acquire().await.unwrap());
    assert!(first.remaining() > secs(8));
    assert!(first.fence().as_u64() < 10_000_000_000, "{}", first.fence());
    quorum.pass(secs(20)).await;
    first.ensure().unwrap();
    let fence = first.fence();
    first.release().await.unwrap();
    let second = acquired(tenure.lock("x").try_acquire().await.unwrap());
    assert!(second.fence() > fence);
}

/// A client that was idle for a month knows the clocks no better than its own.
#[tokio::test(start_paused = true)]
async fn a_fence_is_near_the_clocks_of_the_members_also_after_a_month() {
    let clocks: Vec<_> = (0..3).map(|_| Arc::new(VirtualClock::new())).collect();
    let quorum = Quorum::on(&clocks);
    let tenure = quorum.client().await;
    quorum.pass(secs(30 * 86_400)).await;
    for clock in &clocks {
        // Faster than the client's by almost 0.1 %.
        clock.jump(secs(2_500));
    }
    let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
    let now = clocks[0].now().as_nanos() / 1_000;
    let apart = guard.fence().as_u64().abs_diff(now);
    assert!(apart < 1_000_000, "{} s apart", apart / 1_000_000);
}

/// Two of three have been read, and the first of them is two days late: what is known of the third counts as well.
#[tokio::test(start_paused = true)]
async fn a_clock_far_behind_sets_no_fence_back_after_a_pause() {
    for behind in 0..3 {
        let clocks: Vec<_> = (0..3).map(|_| Arc::new(VirtualClock::new())).collect();
        let right = (behind + 1) % 3;
        for (index, clock) in clocks.iter().enumerate() {
            clock.jump(secs(if index == behind { 0 } else { 2 * 86_400 }));
        }
        let quorum = Quorum::on(&clocks);
        let tenure = quorum.client().await;
        quorum.pass(secs(301)).await;
        quorum.all([(behind + 2) % 3], Fault::Delay(millis(40)));
        let guard = acquired(tenure.lock("x").try_acquire().await.unwrap());
        let now = clocks[right].now().as_nanos() / 1_000;
        let apart = guard.fence().as_u64().abs_diff(now);
        assert!(apart < 1_000_000, "{} s apart", apart / 1_000_000);
    }
}
