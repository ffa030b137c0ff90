//! Looking changes nothing: `ls`, `show` and `doctor` leave every server as they found it, and may be asked
//! where nothing can be written.

use super::world::World;
use crate::support::cluster::Cluster;
use crate::support::redis_server::RedisServer;
use crate::support::sentinels::Watched;
use crate::support::wait::eventually;

/// All keys of a server with their values, as text that nobody has to understand, and how often it was written to.
fn everything(server: &RedisServer) -> (String, String) {
    let keys = server.command(&["KEYS", "*"]);
    let about = server.command(&["INFO", "persistence"]);
    let writes = about
        .lines()
        .find(|line| line.starts_with("rdb_changes_since_last_save:"));
    (keys, writes.expect("every server says so").to_owned())
}

/// Looks at a store that nobody has used in every way there is.
#[track_caller]
fn is_only_looked_at(url: &str, servers: &[RedisServer]) {
    let world = World::new();
    let before: Vec<_> = servers.iter().map(everything).collect();
    let at = ["--store", url];
    let listed = world.run(&[&["ls"], &at[..]].concat()).exits(0);
    let first = "whoever first asks for a lock";
    listed.says("no locks known yet").says(first);
    let shown = world.run(&[&["show", "x"], &at[..]].concat()).exits(0);
    assert!(shown.stdout.contains(first), "{}", shown.stdout);
    // It does not get less by waiting.
    assert!(!shown.stdout.contains(" left"), "{}", shown.stdout);
    let shown = world.json(&[&["show", "x", "--json"], &at[..]].concat());
    assert_eq!(shown["recovery_begun"], false, "{shown}");
    let examined = world.run(&[&["doctor"], &at[..]].concat()).exits(0);
    let told = examined.stdout.contains(first);
    assert!(told, "{}", examined.stdout);
    let after: Vec<_> = servers.iter().map(everything).collect();
    assert_eq!(before, after, "{url}");
}

#[test]
fn at_a_server_of_its_own() {
    let servers = [RedisServer::start()];
    let address = servers[0].address();
    // As old as that it will not be before the end.
    is_only_looked_at(&format!("redis://{address}?max_ttl=10m"), &servers);
    is_only_looked_at(&format!("redis://{address}?recovery=strict"), &servers);
}

#[test]
fn at_a_majority() {
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    let hosts: Vec<_> = servers.iter().map(RedisServer::address).collect();
    let url = format!("redlock://{}?node_timeout=1s", hosts.join(","));
    is_only_looked_at(&url, &servers);
}

#[test]
fn under_sentinel() {
    let watched = Watched::start_calm();
    is_only_looked_at(&watched.url_with("", "?recovery=strict"), &watched.servers);
}

#[test]
fn at_a_cluster() {
    let cluster = Cluster::start();
    let url = format!("redis+cluster://{}", cluster.nodes[1].address());
    is_only_looked_at(&url, &cluster.nodes);
}

#[test]
fn a_replica_may_be_looked_at_and_what_it_cannot_know_is_said() {
    let (primary, replica, world) = (RedisServer::start(), RedisServer::start(), World::new());
    let held = world.run(&["acquire", "x", "--ttl", "10m", "--store", &primary.url()]);
    held.exits(0);
    let port = primary.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    eventually("the replica has what the primary has", || {
        let name = replica.command(&["EXISTS", "tenure:x"]);
        (name == "1").then_some(())
    });
    let url = format!("redis://{}", replica.address());
    let at = ["--store", &url];
    let unknown = "not known whether the store recovers";
    let listed = world
        .run(&[&["ls"], &at[..]].concat())
        .exits(0)
        .says(unknown);
    assert!(listed.stdout.contains('x'), "{}", listed.stdout);
    let shown = world
        .run(&[&["show", "x"], &at[..]].concat())
        .exits(0)
        .says(unknown);
    assert!(shown.stdout.contains("held by"), "{}", shown.stdout);
    let listed = world
        .run(&[&["ls", "--json"], &at[..]].concat())
        .exits(0)
        .says(unknown);
    assert!(
        !listed.stdout.contains("recovering_ms"),
        "{}",
        listed.stdout
    );
}
