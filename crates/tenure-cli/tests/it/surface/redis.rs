//! The same surface on a real redis-server.

use std::io::{BufRead, BufReader};

use super::world::World;
use crate::support::redis_server::RedisServer;

#[test]
fn a_lock_on_redis_is_taken_shown_and_released() {
    let server = RedisServer::start();
    let world = World::new();
    let url = server.url();
    let done = world
        .run(&["run", "hello", "--store", &url, "echo", "hi"])
        .exits(0)
        .silently();
    assert_eq!(done.stdout, "hi\n");
    let holder = world.hold("x", &["--store", &url]);
    world
        .run(&["run", "x", "--store", &url, "--no-wait", "true"])
        .exits(75)
        .says("held by");
    holder.end();
    world
        .run(&["run", "x", "--store", &url, "--no-wait", "true"])
        .exits(0);
}

#[test]
fn a_foreign_holder_is_labelled() {
    let server = RedisServer::start();
    let world = World::new();
    server.command(&["SET", "tenure:x", "somebody", "PX", "60000"]);
    let shown = world.json(&["show", "x", "--store", &server.url(), "--json"]);
    let holder = &shown["holders"][0];
    assert_eq!(holder["label"], "foreign");
    assert_eq!(
        (&holder["owner"], &holder["lease"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert!(
        holder["expires_in_ms"]
            .as_u64()
            .is_some_and(|left| left <= 60_000)
    );
    world
        .run(&["run", "x", "--store", &server.url(), "--no-wait", "true"])
        .exits(75)
        .says("foreign");
}

#[test]
fn a_wrong_password_is_77_and_stays_secret() {
    let server = RedisServer::start_with(&["--requirepass", "correct-horse"]);
    let world = World::new();
    let url = format!("redis://:hunter22@{}", server.address());
    for line in [
        ["ls", "--store", &url].as_slice(),
        &["doctor", "--store", &url],
    ] {
        let done = world.run(line).exits(77).says("error[T0103]");
        assert!(!done.stderr.contains("hunter22"), "{}", done.stderr);
    }
    let right = format!("redis://:correct-horse@{}?recovery=open", server.address());
    let done = world.run(&["doctor", "--store", &right]);
    assert!(!done.stdout.contains("correct-horse") && !done.stderr.contains("correct-horse"));
    let done = world.run(&["run", "x", "--store", &right, "env"]).exits(0);
    assert!(!done.stdout.contains("correct-horse"), "{}", done.stdout);
}

#[test]
fn a_store_that_hangs_at_first_contact_is_69_soon() {
    let server = RedisServer::start();
    server.stop();
    World::new()
        .run(&["run", "x", "--store", &server.url(), "true"])
        .exits(69);
}

#[test]
fn a_wait_that_is_over_before_the_store_answers_is_not_called_an_outage() {
    let server = RedisServer::start();
    server.stop();
    let world = World::new();
    let url = server.url();
    let lines: [&[&str]; 3] = [
        &["run", "x", "--if-busy", "skip", "-c", "true"],
        &["acquire", "x", "--ttl", "9s"],
        &["seq", "x"],
    ];
    for line in lines {
        world
            .run(&[line, &["--wait", "100ms", "--store", &url]].concat())
            .exits(69)
            .says("error[T0106]: the wait of 100ms was over before")
            .says("a longer --wait");
    }
}

#[test]
fn an_evicting_server_is_red_in_doctor() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let done = World::new()
        .run(&["doctor", "--store", &server.url()])
        .exits(1);
    assert!(done.stdout.contains("allkeys-lru"), "{}", done.stdout);
}

#[test]
fn a_waiter_is_let_in_when_the_holder_ends() {
    let server = RedisServer::start();
    let world = World::new();
    let url = server.url();
    let holder = world.hold("x", &["--store", &url]);
    let waiter = world.start(&[
        "run",
        "x",
        "-q",
        "--store",
        &url,
        "-c",
        "sleep 0.2; echo mine",
    ]);
    world.until_waiting_in(&["--store", &url], "x", 1);
    holder.end();
    let done = waiter.finish().exits(0).silently();
    assert_eq!(done.stdout, "mine\n");
}

#[test]
fn a_waiter_says_why_the_server_refuses_to_work() {
    let server = RedisServer::start();
    let world = World::new();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let mut waiter = world.start(&["run", "x", "--store", &server.url(), "echo", "mine"]);
    let stderr = waiter.0.as_mut().and_then(|child| child.stderr.take());
    let mut line = String::new();
    BufReader::new(stderr.expect("piped"))
        .read_line(&mut line)
        .expect("a line");
    assert!(
        line.contains("store refuses to work") && line.contains("memory"),
        "{line}"
    );
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(waiter.finish().exits(0).stdout, "mine\n");
}

#[test]
fn whoever_asks_for_a_longer_lease_than_is_protected_is_told() {
    let (server, world) = (RedisServer::start(), World::new());
    let run = |ttl: &str, options: &str| {
        let url = format!("redis://{}?recovery={options}", server.address());
        world.run(&["run", "x", "--store", &url, "--ttl", ttl, "true"])
    };
    run("30s", "open").exits(0).silently();
    run("31s", "open").exits(0).says("30s are protected");
    run("31s", "strict").exits(64).says("?max_ttl=");
    let longer = "open&prefix=longer:&max_ttl=31s";
    run("31s", longer).exits(0).silently();
}

#[test]
fn what_a_server_that_forgot_shows_is_not_taken_for_all_there_is() {
    let (server, world) = (RedisServer::start(), World::new());
    let url = format!("redis://{}", server.address());
    let at = ["--store", &url];
    // A detached lease is not renewed: it is never seen again.
    world
        .run(&["acquire", "x", "--ttl", "30s", "--store", &server.url()])
        .exits(0);
    let shown = world.json(&[&["show", "x", "--json"], &at[..]].concat());
    assert!(shown.get("recovering_ms").is_none(), "{shown}");
    server.command(&["FLUSHALL"]);

    let listed = world.run(&[&["ls", "-q"], &at[..]].concat()).exits(0);
    assert!(!listed.stderr.contains("no locks held"));
    listed
        .says("no locks known yet")
        .says("whoever first asks for a lock waits ")
        .says("is not shown before it has renewed");
    let listed = world.run(&[&["ls", "--json"], &at[..]].concat()).exits(0);
    assert_eq!(listed.says("whoever first asks").stdout, "[]\n");
    let shown = world
        .run(&[&["show", "x"], &at[..]].concat())
        .exits(0)
        .stdout;
    assert!(
        shown.starts_with("x  held or free, not known yet\n"),
        "{shown}"
    );
    assert!(shown.contains("whoever first asks"), "{shown}");
    // Nobody who only looks begins it; somebody who asks does.
    let asks = ["run", "y", "--no-wait", "--store", &url, "true"];
    world.run(&asks).exits(75);
    let shown = world.run(&[&["show", "x"], &at[..]].concat()).exits(0);
    assert!(shown.stdout.contains("recovering, "), "{}", shown.stdout);
    let shown = world.json(&[&["show", "x", "--json"], &at[..]].concat());
    assert_eq!(shown["recovery_begun"], true, "{shown}");
    let left = shown["recovering_ms"].as_u64();
    assert!(
        left.is_some_and(|left| left > 0 && left <= 31_000),
        "{shown}"
    );
    let refused = world
        .run(&[&["doctor", "--init"], &at[..]].concat())
        .exits(1);
    assert!(
        refused
            .stdout
            .contains("an empty `tenure ls` proves nothing")
    );
}

#[test]
fn what_is_not_known_to_be_busy_is_not_skipped() {
    let (server, world) = (RedisServer::start(), World::new());
    let url = format!("redis://{}", server.address());
    let skip = ["--no-wait", "--if-busy", "skip", "-q", "--store", &url];
    for more in [&[][..], &["--once-per", "1d"], &["--exit-busy", "0"]] {
        let line = [&["run", "f1"], &skip[..], more, &["true"]].concat();
        let done = world.run(&line).exits(75);
        assert!(!done.stderr.contains("is busy (exit"), "{}", done.stderr);
        done.says("error[T0307]: the store is recovering, and whether \"f1\" is busy is not known");
    }
}

#[test]
fn a_server_that_may_have_forgotten_says_so_and_for_how_long() {
    let server = RedisServer::start();
    let world = World::new();
    let url = format!("redis://{}", server.address());
    world
        .run(&["run", "x", "--store", &url, "--no-wait", "true"])
        .exits(75)
        .says("recovering")
        .says("left: the store has just started, or lost data")
        .says("tenure doctor");
    let examined = world.run(&["doctor", "--store", &url]).exits(0);
    assert!(
        examined.stdout.contains("recovering"),
        "{}",
        examined.stdout
    );
}
