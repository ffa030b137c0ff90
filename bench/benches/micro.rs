//! Micro-benchmarks of what runs at every request: the decision, the memory store, and the client's
//! own share of acquire and release. Run with `cargo xtask bench`.
//!
//! For finding out what a change did to one step; the comparison with others is `cargo xtask
//! compare`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark is no API, and may end with a panic"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tenure::clock::SystemClock;
use tenure::core::{
    Acquire, Action, Decision, Everyone, Fence, Inbox, LockName, LockState, Mode, Outcome, OwnerId,
    Party, Release, Renew, Request, Store, Timestamp, Ttl, Waiting, decide,
};
use tenure::stores::memory::MemoryStore;
use tokio::runtime::Runtime;

criterion_group!(benches, decisions, memory_store, client);
criterion_main!(benches);

const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    let free = LockState::default();
    let (held, fence) = held();
    let step = |state: &LockState, action: &Action| decide(state.clone(), action, NOW, &Everyone);
    group.bench_function("acquire a free lock", |bencher| {
        let action = acquire(1, Waiting::No);
        bencher.iter(|| step(black_box(&free), black_box(&action)));
    });
    group.bench_function("acquire a held lock", |bencher| {
        let action = acquire(2, Waiting::No);
        bencher.iter(|| step(black_box(&held), black_box(&action)));
    });
    group.bench_function("renew", |bencher| {
        let action = renew(1, fence);
        bencher.iter(|| step(black_box(&held), black_box(&action)));
    });
    for waiters in [0, 10, 100] {
        let crowded = with_waiters(held.clone(), waiters);
        let action = release(1, fence);
        group.bench_function(format!("release with {waiters} waiters"), |bencher| {
            bencher.iter(|| step(black_box(&crowded), black_box(&action)));
        });
    }
    group.finish();
}

fn memory_store(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let clock = {
        let _inside = runtime.enter();
        Arc::new(SystemClock::start().unwrap())
    };
    let store = MemoryStore::new(clock);
    let mut group = criterion.benchmark_group("memory store");
    for size in [1_u8, 64] {
        let batch: Vec<Request> = (0..size).map(pair_half).collect();
        group.bench_function(format!("acquire and release {size} names"), |bencher| {
            bencher.to_async(&runtime).iter(|| async {
                let replies = store.apply(&batch).await;
                let releases: Vec<Request> = replies
                    .iter()
                    .zip(&batch)
                    .map(|(reply, request)| match &reply.as_ref().unwrap().outcome {
                        Outcome::Granted(grant) => {
                            let Action::Acquire(acquire) = &request.action else {
                                unreachable!("the batch acquires")
                            };
                            let release = Release {
                                owner: acquire.owner,
                                fence: grant.fence,
                            };
                            Action::Release(release).on(request.name.clone())
                        }
                        other => panic!("a free lock was not granted: {other:?}"),
                    })
                    .collect();
                store.apply(&releases).await
            });
        });
    }
    group.finish();
}

fn client(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let tenure = runtime.block_on(tenure::connect("memory:")).unwrap();
    let mut group = criterion.benchmark_group("client");
    group.bench_function("acquire and release", |bencher| {
        bencher.to_async(&runtime).iter(|| async {
            let guard = tenure.lock("bench").acquire().await.unwrap();
            guard.release().await.unwrap();
        });
    });
    group.bench_function("try a lock that is busy", |bencher| {
        let _guard = runtime.block_on(tenure.lock("busy").acquire()).unwrap();
        bencher
            .to_async(&runtime)
            .iter(|| async { tenure.lock("busy").try_acquire().await.unwrap() });
    });
    group.bench_function("is_valid", |bencher| {
        let guard = runtime.block_on(tenure.lock("valid").acquire()).unwrap();
        bencher.iter(|| guard.is_valid());
    });
    group.finish();
}

/// A lock that owner 1 holds, and its fence.
fn held() -> (LockState, Fence) {
    let action = acquire(1, Waiting::No);
    let Decision { state, outcome, .. } = decide(LockState::default(), &action, NOW, &Everyone);
    match outcome {
        Outcome::Granted(grant) => (state, grant.fence),
        other => panic!("a free lock was not granted: {other:?}"),
    }
}

fn with_waiters(state: LockState, count: u8) -> LockState {
    (0..count).fold(state, |state, waiter| {
        let waiting = Waiting::Queue {
            inbox: Inbox::from_bytes([waiter; 16]),
            alive_for: Duration::from_secs(15),
        };
        decide(state, &acquire(100 + waiter, waiting), NOW, &Everyone).state
    })
}

fn acquire(owner: u8, waiting: Waiting) -> Action {
    Action::Acquire(Acquire {
        owner: OwnerId::from_bytes([owner; 16]),
        mode: Mode::Exclusive,
        ttl: Ttl::DEFAULT,
        party: Party::default(),
        waiting,
        anchor: None,
        not_after: None,
    })
}

fn renew(owner: u8, fence: Fence) -> Action {
    Action::Renew(Renew {
        owner: OwnerId::from_bytes([owner; 16]),
        fence,
        ttl: Ttl::DEFAULT,
        detach: false,
        terms: None,
    })
}

fn release(owner: u8, fence: Fence) -> Action {
    Action::Release(Release {
        owner: OwnerId::from_bytes([owner; 16]),
        fence,
    })
}

/// The acquire of one name of a batch.
fn pair_half(index: u8) -> Request {
    let name = LockName::new(format!("bench:{index}")).unwrap();
    acquire(index, Waiting::No).on(name)
}
