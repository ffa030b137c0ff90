//! Waiting for a lock: what is said, and how it ends.

use std::io::{BufRead, BufReader};

use rustix::process::Signal;

use super::world::{World, user};

#[test]
fn a_waiter_starts_when_the_holder_ends() {
    let world = World::new();
    let holder = world.hold("x", &[]);
    let waiter = world.start(&["run", "x", "-q", "echo", "mine"]);
    world.until_waiting("x", 1);
    holder.end();
    let done = waiter.finish().exits(0).silently();
    assert_eq!(done.stdout, "mine\n");
}

#[test]
fn without_a_terminal_one_line_says_who_is_waited_for() {
    let world = World::new();
    let holder = world.hold("x", &[]);
    let mut waiter = world.start(&["run", "x", "true"]);
    let stderr = waiter
        .0
        .as_mut()
        .and_then(|child| child.stderr.take())
        .expect("piped");
    let mut line = String::new();
    BufReader::new(stderr).read_line(&mut line).expect("a line");
    let pid = holder.pid().as_raw_nonzero();
    let start = format!("tenure: waiting for \"x\", held by {}@", user());
    assert!(line.starts_with(&start), "{line}");
    assert!(line.contains(&format!("pid {pid}")), "{line}");
}

#[test]
fn a_signal_while_waiting_leaves_the_queue_at_once() {
    let world = World::new();
    let _holder = world.hold("x", &[]);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let waiter = world.start(&["run", "x", "true"]);
        world.until_waiting("x", 1);
        waiter.signal(signal);
        let done = waiter.finish();
        use std::os::unix::process::ExitStatusExt;
        let code_seen = done
            .code
            .or(done.status.signal().map(|number| number + 128));
        assert_eq!(code_seen, Some(code), "{}", done.stderr);
        assert_eq!(
            world.json(&["show", "x", "--json"])["waiters"],
            serde_json::json!([])
        );
    }
}
