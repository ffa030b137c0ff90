//! Redlock on real servers: some of them hang, die or come back empty. Those that turn out to be one and the
//! same: `redlock_identity`. Beside others who lock the same keys: `redlock_interop`.

use tenure::{Attempt, ErrorKind, Loss, Tenure};

use crate::client_world::{acquired, millis, secs};
use crate::support::redis_server::RedisServer;
use crate::support::wait::{PATIENCE, elapsed, eventually_async, real_time};

/// Nothing below is about this time-out, and a busy machine needs its time.
pub(crate) const PATIENT: &str = "node_timeout=1s&recovery=open";

pub(crate) struct Servers(pub(crate) Vec<RedisServer>);

impl Servers {
    pub(crate) fn start(count: usize) -> Self {
        Self((0..count).map(|_| RedisServer::start()).collect())
    }

    pub(crate) fn url(&self, scheme: &str) -> String {
        let addresses: Vec<_> = self.0.iter().map(RedisServer::address).collect();
        format!("{scheme}://{}?{PATIENT}", addresses.join(","))
    }

    pub(crate) async fn client(&self) -> Tenure {
        tenure::connect(&self.url("redlock")).await.unwrap()
    }

    /// On how many of these servers there is a key.
    pub(crate) fn votes(&self, servers: std::ops::Range<usize>, key: &str) -> usize {
        let servers = self.0[servers].iter();
        let held = servers.filter(|server| server.command(&["EXISTS", key]) == "1");
        held.count()
    }
}

#[tokio::test]
async fn five_servers_agree_in_one_round_on_plain_keys_with_an_expiry() {
    let servers = Servers::start(5);
    let tenure = servers.client().await;
    let guard = acquired(tenure.lock("job").try_acquire().await.unwrap());
    let all = async || (servers.votes(0..5, "tenure:job") == 5).then_some(());
    eventually_async("all five have the vote", all).await;
    for server in &servers.0 {
        assert_eq!(server.command(&["TYPE", "tenure:job"]), "string");
        let value = server.command(&["GET", "tenure:job"]);
        assert!(
            value.contains(&format!(" {} ", guard.lease().fence)),
            "{value}"
        );
        let left: u64 = server.command(&["PTTL", "tenure:job"]).parse().unwrap();
        assert!(left > 20_000 && left < 31_000, "{left}");
    }
    guard.release().await.unwrap();
    let none = async || (servers.votes(0..5, "tenure:job") == 0).then_some(());
    eventually_async("nothing is left", none).await;
}

/// With a node time-out of a second, waiting for the hung one even once per call would take a minute.
#[tokio::test]
async fn one_server_that_hangs_slows_nothing_down() {
    let servers = Servers::start(5);
    let (tenure, other) = (servers.client().await, servers.client().await);
    let kept = acquired(
        tenure
            .lock("kept")
            .ttl(secs(12))
            .try_acquire()
            .await
            .unwrap(),
    );
    servers.0[1].stop();
    let ((), took) = elapsed(async {
        for _ in 0..30 {
            let guard = acquired(tenure.lock("job").try_acquire().await.unwrap());
            let busy = other.lock("job").try_acquire().await.unwrap();
            assert!(matches!(busy, Attempt::Busy(_)));
            guard.release().await.unwrap();
        }
    })
    .await;
    assert!(took < PATIENCE, "{took:?}");
    let until = kept.valid_until();
    let renewed = async || (kept.valid_until() > until).then_some(());
    eventually_async("it is renewed", renewed).await;
    servers.0[1].resume();
    kept.release().await.unwrap();
    let none = async || (servers.votes(0..5, "tenure:job") == 0).then_some(());
    eventually_async("nothing is left where it hung", none).await;
}

#[tokio::test]
async fn two_of_five_may_die_and_with_three_gone_everybody_is_told_in_time() {
    let mut servers = Servers::start(5);
    let tenure = servers.client().await;
    let guard = acquired(
        tenure
            .lock("kept")
            .ttl(secs(4))
            .try_acquire()
            .await
            .unwrap(),
    );
    servers.0[0].kill();
    servers.0[4].kill();
    let job = async || tenure.lock("job").try_acquire().await.ok();
    let job = acquired(eventually_async("three are enough", job).await);
    job.release().await.unwrap();
    guard.ensure().unwrap();

    servers.0[2].kill();
    let (error, took) = elapsed(tenure.lock("job").try_acquire()).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("of 5 servers answer"), "{error}");
    assert!(took < PATIENCE, "{took:?}");
    // Told while the vote of a server that is still there lasts. (What is left there is looked at first.)
    let there: i128 = servers.0[1]
        .command(&["PTTL", "tenure:kept"])
        .parse()
        .unwrap();
    let here = guard.remaining().as_millis();
    assert!(here as i128 <= there.max(0), "{here} ms, there {there} ms");
    assert_eq!(guard.lost().await, Loss::Expired);
}

#[tokio::test]
async fn a_server_that_comes_back_empty_gets_the_vote_of_a_holder_again() {
    let mut servers = Servers::start(3);
    let tenure = servers.client().await;
    let lock = tenure.lock("job").ttl(PATIENCE);
    let guard = acquired(lock.try_acquire().await.unwrap());
    // One after the other: with each renewal the majority is whole again.
    for index in 0..3 {
        servers.0[index].kill();
        servers.0[index].restart();
        let back = async || {
            // Renewed at once: by itself that would be in a third of a ttl that is long enough for a slow machine.
            let _ = guard.extend(PATIENCE).await;
            (servers.votes(0..3, "tenure:job") == 3).then_some(())
        };
        eventually_async("all three have the vote", back).await;
        guard.ensure().unwrap();
    }
    guard.release().await.unwrap();
}

/// A14: the server that makes the majority restarts empty and would vote for somebody else.
#[tokio::test]
async fn a_server_that_restarts_empty_does_not_give_a_held_lock_to_a_newcomer() {
    let mut servers = Servers::start(3);
    let addresses: Vec<_> = servers.0.iter().map(RedisServer::address).collect();
    let url = format!(
        "redlock://{}?node_timeout=1s&max_ttl=3s",
        addresses.join(",")
    );
    let (one, two) = (
        tenure::connect(&url).await.unwrap(),
        tenure::connect(&url).await.unwrap(),
    );
    // New servers are recovering, too: what they may have forgotten has ended after max_ttl.
    let lock = || one.lock("job").ttl(secs(3)).no_renew();
    drop(lock().wait(PATIENCE).acquire().await.unwrap());
    one.settle().await;

    servers.0[2].stop();
    let guard = lock().wait(PATIENCE).acquire().await.unwrap();
    servers.0[1].kill();
    servers.0[1].restart();
    // So late that the vote which the third was asked for is not given any more.
    real_time(millis(1_700)).await;
    servers.0[2].resume();
    let mut tried = 0;
    while guard.is_valid() {
        let attempt = two.lock("job").ttl(secs(3)).try_acquire().await;
        let valid = guard.is_valid();
        assert!(
            !(matches!(attempt, Ok(Attempt::Acquired(_))) && valid),
            "two holders"
        );
        tried += 1;
    }
    assert!(tried > 0, "nobody tried while it was held");
    let next = two.lock("job").ttl(secs(3)).wait(PATIENCE).acquire().await;
    assert!(next.unwrap().fence() > guard.fence());
}

/// A lease that outlasts the recovery of the servers would be given away by those that forgot it.
#[tokio::test]
async fn a_lease_longer_than_what_recovery_protects_is_refused() {
    let servers = Servers::start(3);
    let addresses: Vec<_> = servers.0.iter().map(RedisServer::address).collect();
    let url = format!(
        "redlock://{}?node_timeout=1s&max_ttl=3s",
        addresses.join(",")
    );
    let tenure = tenure::connect(&url).await.unwrap();
    let error = tenure.lock("job").ttl(secs(4)).try_acquire().await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("max_ttl"), "{error}");
}

/// A waiter asks by itself every 5 s: whoever gets it sooner was told.
#[tokio::test]
async fn waiters_are_told_and_one_after_the_other_gets_it() {
    let servers = Servers::start(3);
    let holder = servers.client().await;
    let guard = holder.lock("job").acquire().await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let tenure = servers.client().await;
        waiting.push(tokio::spawn(async move {
            let guard = tenure.lock("job").acquire().await.unwrap();
            let fence = guard.fence();
            guard.release().await.unwrap();
            fence
        }));
    }
    let watched = async || {
        let info = servers.0[0].command(&["INFO", "stats"]);
        let keys = info
            .lines()
            .find(|line| line.starts_with("tracking_total_items"))?;
        (!keys.trim().ends_with(":0")).then_some(())
    };
    eventually_async("the key is watched", watched).await;
    let first = guard.fence();
    let (fences, took) = elapsed(async {
        guard.release().await.unwrap();
        let mut fences = Vec::new();
        for waiter in waiting {
            fences.push(waiter.await.unwrap());
        }
        fences
    })
    .await;
    assert!(took < secs(4), "somebody was not told: {took:?}");
    assert!(fences.iter().all(|fence| *fence > first));
}

#[tokio::test]
async fn dual_primary_takes_both_and_refuses_while_one_is_down() {
    let mut servers = Servers::start(2);
    let tenure = tenure::connect(&servers.url("redis+all")).await.unwrap();
    let guard = acquired(tenure.lock("job").ttl(secs(3)).try_acquire().await.unwrap());
    assert_eq!(servers.votes(0..2, "tenure:job"), 2);
    servers.0[1].kill();
    let error = tenure.lock("other").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(servers.votes(0..1, "tenure:other"), 0, "rolled back");
    let renewed = async || (guard.remaining() > millis(2_500)).then_some(());
    eventually_async("a holder keeps what it has", renewed).await;
    guard.release().await.unwrap();
}
