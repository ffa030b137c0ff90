//! Encrypted connections, to a real server with a certificate of our own.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use tenure::clock::SystemClock;
use tenure::core::Outcome;
use tenure::stores::redis::{ClusterStore, RedisStore};
use tenure::{Assurance, ErrorKind, Store};

use crate::redis_store::store;
use crate::support::cluster::Cluster;
use crate::support::peer::{Peer, bid};
use crate::support::redis_server::RedisServer;
use crate::support::sentinels::{SERVICE, Sentinel};

fn file(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/tls");
    folder.join(name).display().to_string()
}

fn encrypted() -> RedisServer {
    let arguments = arguments();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    RedisServer::start_encrypted(&arguments)
}

fn arguments() -> Vec<String> {
    let (certificate, key) = (file("server.pem"), file("server.key"));
    let authority = file("authority.pem");
    let arguments = [
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &authority,
        "--tls-auth-clients",
        "no",
    ];
    arguments.map(str::to_owned).to_vec()
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = encrypted();
    let clock = Arc::new(SystemClock::start().expect("a clock"));
    let refused = RedisStore::connect(&server.tls_url(), clock).await;
    let error = refused.expect_err("the certificate's authority is not known here");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("SSL_CERT_FILE"), "{error}");
}

/// The roots are read from the environment, which belongs to the whole process: the test runs
/// itself again in one of its own.
#[test]
fn a_trusted_certificate_makes_a_whole_lock_work() {
    const INSIDE: &str = "TENURE_TEST_TRUSTS_AUTHORITY";
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        return runtime.expect("a runtime").block_on(lock_and_hand_over());
    }
    let this = std::env::current_exe().expect("a test is a program");
    let status = Command::new(this)
        .args([
            "--exact",
            "redis_tls::a_trusted_certificate_makes_a_whole_lock_work",
        ])
        .env(INSIDE, "yes")
        .env("SSL_CERT_FILE", file("authority.pem"))
        .env_remove("SSL_CERT_DIR")
        .output()
        .expect("the test runs itself");
    let output = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(output.contains("1 passed"), "{output}");
}

async fn lock_and_hand_over() {
    let server = encrypted();
    lock_and_hand_over_at(&server.tls_url(), "alone").await;
    let settings = format!(
        "tls-replication yes\ntls-auth-clients no\n\
         tls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n",
        file("server.pem"),
        file("server.key"),
        file("authority.pem")
    );
    let sentinel = Sentinel::start_encrypted(&server, &settings);
    let watched = format!("rediss+sentinel://{}/{SERVICE}", sentinel.address());
    // No witness has confirmed what the server said to those who came by its own address.
    let opened = tenure::initialize(&watched, Assurance::NothingIsHeld).await;
    opened.expect("the certificate is trusted");
    lock_and_hand_over_at(&watched, "watched").await;
    let arguments = arguments();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let cluster = Cluster::start_encrypted(&arguments);
    let clock = Arc::new(SystemClock::start().expect("a clock"));
    for node in 0..3 {
        let connect = async || {
            let store = ClusterStore::connect(&cluster.tls_url(), clock.clone()).await;
            Peer::new(store.expect("the certificate is trusted")).await
        };
        let name = cluster.name_at(node, "spread");
        hand_over(&connect().await, &connect().await, &name).await;
    }
}

async fn lock_and_hand_over_at(url: &str, name: &str) {
    let holder = Peer::new(store(url).await).await;
    let waiter = Peer::new(store(url).await).await;
    hand_over(&holder, &waiter, name).await;
}

async fn hand_over<S: Store>(holder: &Peer<S>, waiter: &Peer<S>, name: &str) {
    let lease = holder.take(name, &bid()).await;
    let next = bid();
    waiter.queue(name, &next).await;
    assert_eq!(holder.release(name, lease).await, Outcome::Released);
    waiter.is_told(next.owner).await;
}
