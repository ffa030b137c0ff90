//! A server's wall clock is set a minute forward or back while locks are held and handed on: alone, and
//! as one of three and of five.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tenure::{Attempt, Fence, Guard, Loss, Tenure};

use crate::client_world::{acquired, millis, secs};
use crate::support::clock::ClockedServer;
use crate::support::redis_server::RedisServer;
use crate::support::wait::eventually_async;

/// Nothing ends early, and the fences do not follow the clock back.
#[tokio::test]
async fn a_clock_that_is_set_back_gives_nothing_away_and_repeats_no_fence() {
    let server = ClockedServer::start();
    // Before it was opened, as its clock then shows, it would let nobody in.
    server.set(-3_600);
    let clients = clients(&server.url()).await;
    server.set(0);
    let contest = Contest::default();
    contest.run(&clients).await;
    let kept = kept(&clients[0]).await;
    server.set(-60);
    contest.run(&clients).await;
    still_held(&kept, &clients[1]).await;
    kept.release().await.unwrap();
    contest.run(&clients).await;
}

/// S2 is not promised then: the lease has ended by the only clock there is. Whoever held it is told with
/// its next renewal, and until then its fence is the older one.
#[tokio::test]
async fn a_clock_that_leaps_ends_a_lease_early_and_a_fence_tells_who_is_the_later() {
    let server = ClockedServer::start();
    let clients = clients(&server.url()).await;
    let kept = kept(&clients[0]).await;
    server.set(60);
    let next = clients[1].lock("kept").wait(secs(15)).acquire().await;
    let next = next.unwrap();
    assert!(next.fence() > kept.fence());
    assert_eq!(kept.lost().await, Loss::Forgotten);
    next.ensure().unwrap();
    next.release().await.unwrap();
    let contest = Contest::default();
    contest.run(&clients).await;
    server.set(0);
    contest.run(&clients).await;
}

#[tokio::test]
async fn one_clock_of_three_that_jumps_changes_nothing() {
    one_clock_jumps(2).await;
}

#[tokio::test]
async fn one_clock_of_five_that_jumps_changes_nothing() {
    one_clock_jumps(4).await;
}

/// Forward, back to the truth, behind it and forward again.
async fn one_clock_jumps(others: usize) {
    let odd = ClockedServer::start();
    let others: Vec<_> = (0..others).map(|_| RedisServer::start()).collect();
    let mut addresses: Vec<_> = others.iter().map(RedisServer::address).collect();
    addresses.insert(1, odd.address());
    let options = "node_timeout=1s&recovery=open";
    let url = format!("redlock://{}?{options}", addresses.join(","));
    let clients = clients(&url).await;
    let contest = Contest::default();
    let kept = kept(&clients[0]).await;
    for seconds in [60, 0, -60, 0] {
        odd.set(seconds);
        contest.run(&clients).await;
        still_held(&kept, &clients[1]).await;
    }
    kept.release().await.unwrap();
}

async fn clients(url: &str) -> Vec<Tenure> {
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(tenure::connect(url).await.unwrap());
    }
    clients
}

async fn kept(tenure: &Tenure) -> Guard {
    let lock = tenure.lock("kept").ttl(secs(4));
    acquired(lock.try_acquire().await.unwrap())
}

/// It is renewed after this, and meanwhile nobody else gets it.
async fn still_held(kept: &Guard, other: &Tenure) {
    let left = kept.remaining();
    let renewed = async || {
        let attempt = other.lock("kept").try_acquire().await.unwrap();
        assert!(matches!(attempt, Attempt::Busy(_)), "two holders");
        kept.ensure().unwrap();
        (kept.remaining() > left.max(millis(2_500))).then_some(())
    };
    eventually_async("it is renewed", renewed).await;
}

/// Several clients that take one lock in turn.
#[derive(Clone, Default)]
struct Contest {
    inside: Arc<AtomicUsize>,
    fences: Arc<Mutex<Vec<Fence>>>,
}

impl Contest {
    /// Every client gets it ten times; never two at once, and every fence is above all before.
    async fn run(&self, clients: &[Tenure]) {
        let turns = clients.iter().map(|tenure| async {
            for _ in 0..10 {
                let guard = tenure.lock("job").wait(secs(60)).acquire().await.unwrap();
                assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                tokio::task::yield_now().await;
                guard.ensure().unwrap();
                self.note(guard.fence());
                self.inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        });
        futures_util::future::join_all(turns).await;
    }

    fn note(&self, fence: Fence) {
        let mut fences = self.fences.lock().unwrap();
        assert!(
            fences.last().is_none_or(|last| *last < fence),
            "{fence} after {:?}",
            fences.last()
        );
        fences.push(fence);
    }
}
