//! `tenure seq`: numbers for scripts.

use super::world::World;
use crate::support::redis_server::RedisServer;

fn numbers(world: &World, arguments: &[&str]) -> Vec<u64> {
    let done = world.run(arguments).exits(0).silently();
    let lines = done.stdout.lines();
    lines.map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn numbers_grow_from_process_to_process() {
    let world = World::new();
    let all: Vec<u64> = (0..5)
        .flat_map(|_| numbers(&world, &["seq", "orders"]))
        .collect();
    assert_eq!(all.len(), 5);
    assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
    world.run(&["ls"]).exits(0).says("no locks");
}

#[test]
fn a_block_is_consecutive_and_apart_from_all_others() {
    let server = RedisServer::start();
    let url = server.url();
    let world = World::new();
    let block = || numbers(&world, &["seq", "orders", "--block", "3", "--store", &url]);
    let (one, two) = (block(), block());
    assert_eq!(one, [one[0], one[0] + 1, one[0] + 2]);
    assert!(two[0] > one[2]);
    let single = numbers(&world, &["seq", "orders", "--store", &url]);
    assert!(single[0] < one[0], "singles and blocks are apart");
}

#[test]
fn what_cannot_be_is_refused() {
    let world = World::new();
    world.run(&["seq", "orders", "--block", "513"]).exits(64);
    world.run(&["seq", " "]).exits(64);
    world
        .run(&["seq", "~x"])
        .exits(64)
        .says("a name that begins with ~");
    world
        .run(&["seq", "x", "--store", "redis://127.0.0.1:1", "--wait", "0"])
        .exits(69);
}

#[test]
fn a_number_that_does_not_come_is_explained_in_the_users_words() {
    let world = World::new();
    let server = RedisServer::start();
    // Without `recovery=open`: it has just started, and may have forgotten something.
    let url = format!("redis://{}", server.address());
    let done = world
        .run(&["seq", "orders", "--store", &url, "--wait", "300ms"])
        .exits(75)
        .says("error[T0307]: no number of \"orders\" yet")
        .says("recovering");
    for internal in ["~sequence", "lock", "µs", "ns"] {
        assert!(!done.stderr.contains(internal), "{}", done.stderr);
    }
    world
        .run(&["ls", "--all", "--store", &url])
        .exits(0)
        .says("no locks known yet");
}

#[test]
fn whoever_waits_for_a_number_is_told_that_the_store_recovers() {
    let (server, world) = (RedisServer::start(), World::new());
    let url = format!("redis://{}", server.address());
    world
        .run(&["seq", "a", "--store", &url, "--wait", "4s"])
        .exits(75)
        .says("tenure: waiting for a number of \"a\", store recovering, ");
}
