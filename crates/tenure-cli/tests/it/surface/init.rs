//! `tenure doctor --init`: a server that is known to be new need not be waited for, and one that is not
//! is not opened.

use super::world::{Done, World};
use crate::support::redis_server::RedisServer;

fn strict(server: &RedisServer) -> String {
    format!("redis://{}?recovery=strict", server.address())
}

fn of(scheme: &str, servers: &[RedisServer]) -> String {
    let hosts: Vec<_> = servers.iter().map(RedisServer::address).collect();
    format!("{scheme}://{}?node_timeout=1s", hosts.join(","))
}

/// Asks for a lock at once.
fn asks(world: &World, store: &str) -> Done {
    world.run(&["run", "x", "--store", store, "--no-wait", "true"])
}

fn init(world: &World, store: &str) -> Done {
    world.run(&["doctor", "--init", "--store", store])
}

/// Says that nobody holds anything, because a server has just been started for the first time.
fn sure(world: &World, store: &str) -> Done {
    world.run(&["doctor", "--init", "--nothing-is-held", "--store", store])
}

#[test]
fn a_server_that_has_just_been_started_opens_for_whoever_is_sure_and_saying_so_again_changes_nothing()
 {
    let (server, world) = (RedisServer::start(), World::new());
    let store = strict(&server);
    // Whoever waits is told where the reason is, and nothing that would be refused now.
    let told = asks(&world, &store).exits(75).says("tenure doctor");
    assert!(!told.stderr.contains("--init"), "{}", told.stderr);
    let done = init(&world, &store).exits(1);
    assert!(done.stdout.contains("may still come"), "{}", done.stdout);
    asks(&world, &store).exits(75);
    let done = sure(&world, &store).exits(0);
    assert!(done.stdout.contains("recorded as new"), "{}", done.stdout);
    asks(&world, &store).exits(0);
    let record = server.command(&["GET", "~tenure:{tenure:}:life"]);
    let done = init(&world, &store).exits(0);
    assert!(done.stdout.contains("was open already"), "{}", done.stdout);
    assert_eq!(record, server.command(&["GET", "~tenure:{tenure:}:life"]));
}

#[test]
fn a_server_that_restarted_is_not_opened_unless_nothing_is_held() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "everysec"];
    let (mut server, world) = (RedisServer::start_with(&arguments), World::new());
    let store = strict(&server);
    sure(&world, &store).exits(0);
    server.restart();
    let done = init(&world, &store).exits(1);
    assert!(done.stdout.contains("has restarted"), "{}", done.stdout);
    assert!(done.stdout.contains("--nothing-is-held"), "{}", done.stdout);
    asks(&world, &store).exits(75);
    let shown = world.run(&["doctor", "--init", "--json", "--store", &store]);
    let shown: serde_json::Value = serde_json::from_str(&shown.exits(1).stdout).expect("JSON");
    assert_eq!(shown["init"][0]["outcome"], "refused", "{shown}");

    sure(&world, &store).exits(0);
    asks(&world, &store).exits(0);
}

#[test]
fn a_server_with_locks_that_was_wiped_or_was_a_replica_is_not_opened() {
    let world = World::new();
    let foreign = RedisServer::start();
    foreign.command(&["SET", "tenure:y", "somebody", "PX", "60000"]);
    let wiped = RedisServer::start();
    wiped.command(&["FLUSHALL"]);
    let promoted = RedisServer::start();
    promoted.command(&["REPLICAOF", "127.0.0.1", "1"]);
    promoted.command(&["REPLICAOF", "NO", "ONE"]);
    for (server, why) in [
        (&foreign, "\"y\" is held"),
        (&wiped, "wiped"),
        (&promoted, "was a replica"),
    ] {
        let done = init(&world, &strict(server)).exits(1);
        assert!(done.stdout.contains(why), "{}", done.stdout);
        asks(&world, &strict(server)).exits(75);
    }
}

#[test]
fn servers_that_hold_locks_together_are_opened_together() {
    let world = World::new();
    for (scheme, count) in [("redlock", 3), ("redis+all", 2)] {
        let mut servers: Vec<_> = (0..count).map(|_| RedisServer::start()).collect();
        let store = of(scheme, &servers);
        asks(&world, &store).exits(75);
        let done = init(&world, &store).exits(1);
        assert_eq!(done.stdout.matches("is young").count(), count);
        let done = sure(&world, &store).exits(0);
        assert_eq!(done.stdout.matches("recorded as new").count(), count);
        asks(&world, &store).exits(0);
        init(&world, &store).exits(0);

        // One that comes back empty may have forgotten its votes.
        servers[0].restart();
        let done = init(&world, &store).exits(1);
        assert!(done.stdout.contains("is in use already"), "{}", done.stdout);
        servers[0].kill();
        init(&world, &store).exits(69);
    }
}

#[test]
fn a_store_that_is_never_waited_for_says_so() {
    let done = World::new().run(&["doctor", "--init"]).exits(0);
    assert!(done.stdout.contains("was open already"), "{}", done.stdout);
    let usage = World::new().run(&["doctor", "--nothing-is-held"]);
    usage.exits(64);
}
