//! A server that is killed while all that is built on locks is in use.

use tenure::Tenure;

use super::trial::Trial;
use crate::support::cluster::Cluster;
use crate::support::redis_server::RedisServer;
use crate::support::sentinels::Watched;

/// Whatever it has answered it still knows after a crash.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

async fn clients(url: &str) -> [Tenure; 2] {
    let one = tenure::connect(url).await.unwrap();
    [one, tenure::connect(url).await.unwrap()]
}

/// Started again with its data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server() {
    let mut server = RedisServer::start_with(&DURABLE);
    let clients = clients(&format!("{}&max_ttl=3s", server.url())).await;
    let mut trial = Trial::begin(&clients);
    trial.goes_on(2, "at first").await;
    server.kill();
    server.restart();
    trial.goes_on(2, "after a crash").await;
    trial.end(&clients[0]).await;
}

/// What the replica had not got is lost. That costs neither exclusion nor order, but a run may be made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_sentinels_replace() {
    let mut watched = Watched::start();
    let clients = clients(&watched.url_with("", "?recovery=open&max_ttl=3s")).await;
    let mut trial = Trial::begin(&clients);
    trial.goes_on(2, "at first").await;
    trial.may_forget();
    tokio::task::block_in_place(|| watched.fail_over());
    trial.goes_on(2, "after a failover").await;
    trial.forgets_no_more();
    trial.goes_on(2, "at the new primary").await;
    trial.end(&clients[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_of_a_cluster() {
    let mut cluster = Cluster::start_with_replica();
    let clients = clients(&format!("{}&max_ttl=3s", cluster.url())).await;
    let mut trial = Trial::begin(&clients);
    trial.goes_on(2, "at first").await;
    trial.may_forget();
    tokio::task::block_in_place(|| cluster.fail_over());
    trial.goes_on(2, "after a failover").await;
    trial.forgets_no_more();
    trial.goes_on(2, "at the new primary").await;
    trial.end(&clients[0]).await;
}

/// One after the other, each back with its data before the next is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_three_voters() {
    let mut servers = [(); 3].map(|()| RedisServer::start_with(&DURABLE));
    let addresses = servers.each_ref().map(RedisServer::address).join(",");
    let url = format!("redlock://{addresses}?node_timeout=1s&recovery=open&max_ttl=3s");
    let clients = clients(&url).await;
    let mut trial = Trial::begin(&clients);
    for server in &mut servers {
        trial.goes_on(1, "while all three vote").await;
        server.kill();
        trial.goes_on(1, "while one is dead").await;
        server.restart();
    }
    trial.goes_on(1, "when all are back").await;
    trial.end(&clients[0]).await;
}
