//! One server, one voice: servers of a quorum that turn out to be one and the same, at first or later.

use tenure::{ErrorKind, Guard, Loss, Severity, Tenure};

use crate::client_world::{acquired, millis, secs};
use crate::redlock::{PATIENT, Servers};
use crate::support::proxy::Proxy;
use crate::support::wait::{eventually_async, real_time};

#[tokio::test]
async fn one_server_under_several_names_is_refused() {
    let servers = Servers::start(2);
    let (one, two) = (servers.0[0].port(), servers.0[1].address());
    let url = format!("redlock://127.0.0.1:{one},{two},localhost:{one}?{PATIENT}");
    let error = tenure::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    assert!(error.to_string().contains("the same server"), "{error}");

    let url = format!("redlock://127.0.0.1:{one},{two}");
    let error = tenure::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
}

#[tokio::test]
async fn a_duplicate_that_was_not_there_at_first_gets_no_vote_later() {
    let mut servers = Servers::start(2);
    let (one, two) = (servers.0[0].address(), servers.0[1].address());
    let proxy = Proxy::to(one.clone()).await;
    proxy.refuse(true);
    let proxied = proxy.address();
    let url = format!("redlock://{one},{two},{proxied}?{PATIENT}");
    let tenure = tenure::connect(&url).await.unwrap();
    proxy.refuse(false);
    let noticed = async || {
        let findings = tenure.diagnose().await.unwrap();
        let found = findings
            .iter()
            .find(|finding| finding.subject == "duplicate");
        found.map(|finding| finding.severity)
    };
    let severity = eventually_async("it is noticed", noticed).await;
    assert_eq!(severity, Severity::Danger);
    // Two voices are a majority of three; the second voice of the first server is none.
    drop(acquired(tenure.lock("job").try_acquire().await.unwrap()));
    servers.0[1].kill();
    let error = async || tenure.lock("other").try_acquire().await.err();
    let error = eventually_async("one voice is not enough", error).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

/// Its renewal would be the second voice of one server.
#[tokio::test]
async fn a_duplicate_that_was_not_there_at_first_does_not_keep_a_lock_alive() {
    let mut servers = Servers::start(2);
    let (one, two) = (servers.0[0].address(), servers.0[1].address());
    let proxy = Proxy::to(one.clone()).await;
    proxy.refuse(true);
    let proxied = proxy.address();
    let url = format!("redlock://{one},{two},{proxied}?{PATIENT}");
    let tenure = tenure::connect(&url).await.unwrap();
    let lock = tenure.lock("job").ttl(secs(6));
    let guard = acquired(lock.try_acquire().await.unwrap());
    let renewed = async || {
        let left = guard.remaining();
        real_time(millis(5)).await;
        (guard.remaining() > left).then_some(())
    };
    // The next renewal is two seconds away: none is under way when the second server dies.
    eventually_async("it is renewed", renewed).await;
    servers.0[1].kill();
    proxy.refuse(false);
    let mut left = guard.remaining();
    let over = async || {
        let now = guard.remaining();
        assert!(now <= left, "it was renewed: {now:?} instead of {left:?}");
        left = now;
        (!guard.is_valid()).then_some(())
    };
    eventually_async("it ends", over).await;
    assert_eq!(guard.lost().await, Loss::Expired);
}

/// Three servers, the third of which is reached by an address that can be led somewhere else.
struct Redirected {
    servers: Servers,
    proxy: Proxy,
    tenure: Tenure,
}

impl Redirected {
    async fn start(recovery: &str) -> Self {
        let servers = Servers::start(3);
        let proxy = Proxy::to(servers.0[2].address()).await;
        let (one, two, three) = (
            servers.0[0].address(),
            servers.0[1].address(),
            proxy.address(),
        );
        let url = format!("redlock://{one},{two},{three}?node_timeout=1s&recovery={recovery}");
        let tenure = tenure::connect(&url).await.unwrap();
        Self {
            servers,
            proxy,
            tenure,
        }
    }

    /// A hold by all three votes, with nothing under way.
    async fn hold(&self) -> Guard {
        let lock = self.tenure.lock("job").ttl(secs(4));
        let guard = acquired(lock.try_acquire().await.unwrap());
        let all = async || (self.servers.votes(0..3, "tenure:job") == 3).then_some(());
        eventually_async("all three have the vote", all).await;
        self.tenure.settle().await;
        guard
    }

    /// Everybody has been asked, and nothing is under way.
    async fn settled(&self) {
        self.hold().await.release().await.unwrap();
        let none = async || (self.servers.votes(0..3, "tenure:job") == 0).then_some(());
        eventually_async("nothing is left", none).await;
        real_time(millis(100)).await;
    }

    /// The third address leads to the first server, and the second server is gone: one is left.
    async fn leave_one(&mut self) {
        self.proxy.redirect(self.servers.0[0].address());
        self.proxy.cut();
        self.servers.0[1].kill();
        // So that the client has noticed: nothing may be under way when the connection is lost, or the call
        // fails and says so.
        real_time(millis(100)).await;
    }
}

#[tokio::test]
async fn an_address_that_leads_to_another_member_all_of_a_sudden_does_not_vote_twice() {
    let mut world = Redirected::start("open").await;
    world.settled().await;
    world.leave_one().await;
    for _ in 0..3 {
        let error = world.tenure.lock("other").try_acquire().await;
        let error = error.expect_err("one server is no majority");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn an_address_that_leads_to_another_member_all_of_a_sudden_does_not_keep_a_lock_alive() {
    let mut world = Redirected::start("open").await;
    let guard = world.hold().await;
    world.leave_one().await;
    let over = async || (!guard.is_valid()).then_some(());
    eventually_async("one server cannot keep it alive", over).await;
    assert_eq!(guard.lost().await, Loss::Expired);
}

/// As a proxy does that speaks Redis itself. What gives it away is that the life is another one.
#[tokio::test]
async fn a_connection_that_leads_to_another_member_all_of_a_sudden_does_not_vote_twice() {
    let mut world = Redirected::start("open").await;
    world.settled().await;
    let first = world.servers.0[0].address();
    world.proxy.redirect_open(first);
    world.servers.0[1].kill();
    real_time(millis(100)).await;
    for _ in 0..3 {
        let error = world.tenure.lock("other").try_acquire().await;
        let error = error.expect_err("one server is no majority");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

/// Addresses may be exchanged as long as each server has one voice.
#[tokio::test]
async fn an_address_that_leads_back_to_its_own_server_has_its_voice_again() {
    let mut world = Redirected::start("open").await;
    world.settled().await;
    world.leave_one().await;
    world.tenure.lock("job").try_acquire().await.unwrap_err();
    world.proxy.redirect(world.servers.0[2].address());
    world.proxy.cut();
    let back = async || world.tenure.lock("job").try_acquire().await.ok();
    let guard = acquired(eventually_async("two servers are a majority", back).await);
    guard.release().await.unwrap();
}
