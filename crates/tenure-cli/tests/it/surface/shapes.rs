//! The same surface on every shape of Redis, with real servers: a majority, write-all, sentinels, a
//! cluster.

use std::any::Any;

use super::world::World;
use crate::support::cluster::Cluster;
use crate::support::redis_server::RedisServer;
use crate::support::sentinels::{Passwords, Watched};

/// A store that runs, and what it runs on.
struct Shape {
    url: String,
    queues: bool,
    /// What doctor says of it and of nothing else.
    mark: &'static str,
    _running: Box<dyn Any>,
}

const PATIENT: &str = "node_timeout=1s&recovery=open";

fn quorum(scheme: &str, count: usize) -> Shape {
    let servers: Vec<_> = (0..count).map(|_| RedisServer::start()).collect();
    let hosts: Vec<_> = servers.iter().map(RedisServer::address).collect();
    Shape {
        url: format!("{scheme}://{}?{PATIENT}", hosts.join(",")),
        queues: false,
        mark: "servers answer, and it takes",
        _running: Box::new(servers),
    }
}

#[test]
fn a_majority() {
    serves(&quorum("redlock", 3));
}

#[test]
fn all_that_must_agree() {
    serves(&quorum("redis+all", 2));
}

#[test]
fn sentinels() {
    let watched = Watched::start_calm();
    serves(&Shape {
        url: watched.url_with("", "?recovery=open"),
        queues: true,
        mark: "sentinel",
        _running: Box::new(watched),
    });
}

#[test]
fn a_cluster() {
    let cluster = Cluster::start();
    serves(&Shape {
        url: cluster.url(),
        queues: true,
        mark: "cluster",
        _running: Box::new(cluster),
    });
}

fn serves(shape: &Shape) {
    let world = World::new();
    runs_commands(&world, shape);
    shows_who_holds(&world, shape);
    gives_leases_to_scripts(&world, shape);
    says_how_it_is(&world, shape);
}

fn runs_commands(world: &World, shape: &Shape) {
    let store = ["--store", shape.url.as_str()];
    let line = [&["run", "hello"], &store[..], &["echo", "hi"]].concat();
    let done = world.run(&line).exits(0).silently();
    assert_eq!(done.stdout, "hi\n");
    let holder = world.hold("turn", &store);
    let line = [&["run", "turn", "-q"], &store[..], &["echo", "mine"]].concat();
    let waiter = world.start(&line);
    if shape.queues {
        world.until_waiting_in(&store, "turn", 1);
    }
    holder.end();
    assert_eq!(waiter.finish().exits(0).silently().stdout, "mine\n");

    let line = [&["run", "gpu", "--slots", "2"], &store[..], &["true"]].concat();
    let done = world.run(&line);
    if shape.queues {
        done.exits(0);
    } else {
        done.exits(69).says("majorities do not bound a sum");
    }
}

fn shows_who_holds(world: &World, shape: &Shape) {
    let store = ["--store", shape.url.as_str()];
    let holder = world.hold("x", &["--store", &shape.url, "--label", "nightly"]);
    let busy = [&["run", "x", "--no-wait"], &store[..], &["true"]].concat();
    world.run(&busy).exits(75).says("held by").says("nightly");
    let listed = world.run(&[&["ls"], &store[..]].concat()).exits(0).stdout;
    assert!(
        listed.contains('x') && listed.contains("exclusive"),
        "{listed}"
    );
    let show = [&["show", "x", "--json"], &store[..]].concat();
    let shown = world.json(&show);
    let held = &shown["holders"][0];
    assert_eq!(held["label"], "nightly", "{shown}");
    assert!(
        held["expires_in_ms"]
            .as_u64()
            .is_some_and(|left| left <= 30_000)
    );

    let lease = held["lease"].as_str().expect("ours has one");
    let force = ["force-release", "x", "--lease", lease, "--reason", "stuck"];
    world.run(&[&force, &store[..]].concat()).exits(0);
    holder.finish().exits(79).says("stuck");
    let shown = world.json(&show);
    assert_eq!(
        shown["holders"].as_array().map(Vec::len),
        Some(0),
        "{shown}"
    );
}

fn gives_leases_to_scripts(world: &World, shape: &Shape) {
    let store = ["--store", shape.url.as_str()];
    let on_lease = |verb: &str, lease: &str, code: i32| {
        let line = [&[verb, "batch", "--lease", lease], &store[..]].concat();
        world.run(&line).exits(code)
    };
    let acquire = [&["acquire", "batch", "--ttl", "25s"], &store[..]].concat();
    let lease = world.run(&acquire).exits(0).silently().stdout;
    let lease = lease.trim();
    on_lease("check", lease, 0).silently();
    let renew = ["renew", "batch", "--lease", lease, "--ttl", "29s", "--json"];
    let renewed = world.json(&[&renew, &store[..]].concat());
    let left = renewed["expires_in_ms"].as_u64().expect("a number");
    assert!(left > 20_000, "{renewed}");
    let no_wait = [&acquire[..], &["--no-wait"]].concat();
    world.run(&no_wait).exits(75);
    on_lease("release", lease, 0).silently();
    assert_ne!(on_lease_code(world, &store, lease), Some(0), "released");
    let next = world.run(&no_wait).exits(0).stdout;
    on_lease("release", next.trim(), 0);
}

fn on_lease_code(world: &World, store: &[&str], lease: &str) -> Option<i32> {
    let line = [&["check", "batch", "--lease", lease], store].concat();
    world.run(&line).code
}

fn says_how_it_is(world: &World, shape: &Shape) {
    let done = world.run(&["doctor", "--store", &shape.url]).exits(0);
    assert!(done.stdout.contains(shape.mark), "{}", done.stdout);
    assert!(done.stdout.contains("Fit for locks"), "{}", done.stdout);
    let shown = world.json(&["doctor", "--json", "--store", &shape.url]);
    assert_eq!(shown["fit"], true, "{shown}");
}

#[test]
fn what_is_wrong_with_a_url_is_said() {
    let world = World::new();
    for (url, words) in [
        ("redlock:a,b,c", "two slashes are missing"),
        ("redlock://", "a host is missing"),
        ("redlock://a,,b", "a host is missing"),
        ("redlock://a,b", "Name 3 or more"),
        ("redlock://a,a,b", "a is named twice"),
        ("redlock://a,b,c/x", "not a database number"),
        ("redlock://a,b,c?node_timeout=1h", "from 1ms to 1s"),
        ("redlock://a,b,c?nonsense=1", "no option `nonsense`"),
        ("redlock://a,b,c#x", "%23"),
        ("redis+all://a", "Name 2 or more"),
        ("redis+all://a,b?recovery=maybe", "strict, open or off"),
        ("redis+all://u:p@a,u:p@b", "credentials stand once"),
        ("redis+sentinel://a,b,c", "does not say which service"),
        ("redis+sentinel:///locks", "the address of a sentinel"),
        ("redis+sentinel://a/locks/x", "not a database number"),
        ("redis+cluster://a,b/3", "only one database"),
        ("redis+cluster://a:99999", "the address of a node"),
        ("redis+magic://a", "redis+sentinel: "),
    ] {
        let done = world.run(&["ls", "--store", url]);
        done.exits(64).says("error[T0105]").says(words);
    }
}

/// In a URL that is wrong, in one that reaches nobody, in one with the wrong password, and in what is
/// said when all is well.
#[test]
fn a_password_stays_secret_in_every_shape() {
    let world = World::new();
    let protected = ["--requirepass", "correct-horse"];
    let servers: Vec<_> = (0..3)
        .map(|_| RedisServer::start_with(&protected))
        .collect();
    let hosts: Vec<_> = servers.iter().map(RedisServer::address).collect();
    let (all, two) = (hosts.join(","), hosts[..2].join(","));
    let watched = Watched::start_protected(&Passwords {
        sentinels: "wrong-horse",
        servers: "correct-horse",
    });
    let sentinels = |password: &str| watched.url_with(&format!(":{password}@"), "");
    for url in [
        format!("redlock://:hunter22@{all}?{PATIENT}"),
        format!("redis+all://:hunter22@{two}?{PATIENT}"),
        format!("redis+cluster://:hunter22@{}", hosts[0]),
        sentinels("hunter22"),
    ] {
        for verb in ["ls", "doctor"] {
            let done = world.run(&[verb, "--store", &url]).exits(77);
            is_hidden("hunter22", &done.says("error[T0103]").stderr);
        }
    }
    for url in [
        "redlock://:hunter22@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
        "redis+all://:hunter22@127.0.0.1:1,127.0.0.1:2",
        "redis+sentinel://:hunter22@127.0.0.1:1/locks?sentinel_password=hunter22",
        "redis+cluster://:hunter22@127.0.0.1:1",
        "redlock://:hunter22@a,b",
        "redis+all://:hunter22@a,b?hunter=hunter22",
        "redis+sentinel://:hunter22@a,b",
        "redis+cluster://:hunter22@a/hunter22",
    ] {
        let done = world.run(&["ls", "--store", url]);
        assert!(matches!(done.code, Some(64 | 69)), "{}", done.stderr);
        is_hidden("hunter22", &done.stderr.replace("`hunter", ""));
    }
    let right = format!("redlock://:correct-horse@{all}?{PATIENT}");
    for line in [
        ["doctor", "--store", &right].as_slice(),
        &["doctor", "--json", "--store", &right],
        &["run", "x", "--store", &right, "env"],
        &["ls", "--store", &right],
    ] {
        let done = world.run(line);
        assert_eq!(done.code, Some(0), "{line:?}: {}", done.stderr);
        is_hidden("correct-horse", &done.stdout);
        is_hidden("correct-horse", &done.stderr);
    }
}

#[track_caller]
fn is_hidden(secret: &str, said: &str) {
    assert!(!said.contains(secret), "{said}");
}

#[test]
fn a_server_that_is_no_sentinel_is_called_that() {
    let world = World::new();
    let plain = RedisServer::start();
    let closed = RedisServer::start_with(&["--requirepass", "hunter22"]);
    let at = |address: &str| {
        let url = format!("redis+sentinel://{address}/mymaster");
        world.run(&["ls", "--store", &url])
    };
    for server in [&plain, &closed] {
        let refused = at(&server.address())
            .exits(64)
            .says("this is not a sentinel");
        assert!(!refused.stderr.contains("know of no service"));
    }
}
