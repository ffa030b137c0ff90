//! How a job ends, and what it leaves behind.

use rustix::process::Signal;

use super::world::{Setup, eventually, gone, lives};

#[test]
fn the_jobs_own_exit_code_is_kept() {
    let mut run = Setup::new("exit 3").start();
    assert_eq!(run.end(), ("Exited(3) orphans=0".to_owned(), 3));
    assert_eq!(run.seen.len(), 1, "nothing to tell: {:?}", run.seen);
}

#[test]
fn a_job_that_died_of_a_signal_says_so() {
    let mut run = Setup::new("kill -USR1 $$").start();
    assert_eq!(run.end(), ("Signalled(10) orphans=0".to_owned(), 138));
}

#[test]
fn hold_at_most_ends_the_job_with_124() {
    let setup = Setup::new("trap 'exit 5' TERM; while :; do sleep 0.1; done");
    let mut run = setup
        .with(|script| script.hold_at_most_millis = Some(300))
        .start();
    assert_eq!(
        run.end(),
        ("HoldAtMost(Exited(5)) orphans=0".to_owned(), 124)
    );
}

#[test]
fn hold_at_most_kills_what_does_not_obey() {
    let setup = Setup::new("trap '' TERM; while :; do sleep 0.1; done").lease(3_600_000, 300);
    let mut run = setup
        .with(|script| script.hold_at_most_millis = Some(300))
        .start();
    assert_eq!(
        run.end(),
        ("HoldAtMost(Signalled(9)) orphans=0".to_owned(), 124)
    );
}

#[test]
fn orphans_are_ended_before_the_lock_may_go() {
    let mut run = Setup::new("sleep 1000 & echo $! >$D/child; exit 4").start();
    let orphan = run.pid_in("child");
    assert_eq!(run.end(), ("Exited(4) orphans=1".to_owned(), 4));
    assert!(!lives(orphan));
    assert!(run.seen[0].contains(&format!("({})", orphan.as_raw_nonzero())));
}

#[test]
fn orphans_that_ignore_term_are_killed_after_the_grace_time() {
    let line = "(trap '' TERM; while :; do sleep 0.1; done) & echo $! >$D/child; exit 0";
    let mut run = Setup::new(line).lease(3_600_000, 300).start();
    let orphan = run.pid_in("child");
    assert_eq!(run.end().1, 0);
    assert!(!lives(orphan));
}

#[test]
fn a_grandchild_whose_parent_left_the_group_is_an_orphan_too() {
    // setsid leaves the group; what it had started before stays a member.
    let line = "sh -c 'sleep 1000 & echo $! >$D/child; exec setsid sleep 1000' & \
                until test -s $D/child; do sleep 0.01; done; echo $! >$D/pid; exit 0";
    let mut run = Setup::new(line).start();
    let (orphan, away) = (run.pid_in("child"), run.pid_in("pid"));
    assert_eq!(run.end().1, 0);
    assert!(!lives(orphan));
    let _ = rustix::process::kill_process(away, Signal::KILL);
}

#[test]
fn the_lock_can_be_kept_until_orphans_have_ended() {
    let line = "(until test -e $D/go; do sleep 0.02; done) & echo $! >$D/child; exit 0";
    let mut run = Setup::new(line)
        .with(|script| script.orphans = "wait".to_owned())
        .start();
    let orphan = run.pid_in("child");
    run.wait_for("waiting for them");
    assert!(lives(orphan));
    std::fs::write(run.path("go"), "").unwrap();
    let (end, code) = run.end();
    assert!(end.starts_with("Exited(0) orphans="), "{end}");
    assert_eq!(code, 0);
    assert!(!lives(orphan));
}

#[test]
fn orphans_can_be_let_go() {
    let line = "sleep 1000 & echo $! >$D/child; exit 0";
    let mut run = Setup::new(line)
        .with(|script| script.orphans = "release".to_owned())
        .start();
    let orphan = run.pid_in("child");
    assert_eq!(run.end(), ("Exited(0) orphans=1".to_owned(), 0));
    assert!(lives(orphan));
}

#[test]
fn members_that_left_the_group_are_reaped_when_they_end() {
    let line = "setsid sh -c 'echo $$ >$D/child' & sleep 1000";
    let run = Setup::new(line).start();
    let away = run.pid_in("child");
    gone(away);
    let entry = format!("/proc/{}", away.as_raw_nonzero());
    eventually("reaping", || {
        (!std::path::Path::new(&entry).exists()).then_some(())
    });
}

#[test]
fn in_the_foreground_only_the_job_itself_is_ended() {
    let line = "echo $$ >$D/pid; sleep 1000 & echo $! >$D/child; wait";
    let mut run = Setup::new(line)
        .lease(1_500, 400)
        .with(|script| script.foreground = true)
        .start();
    let (job, child) = (run.pid_in("pid"), run.pid_in("child"));
    let own = rustix::process::getpgrp();
    assert_eq!(rustix::process::getpgid(Some(job)), Ok(own));
    assert_eq!(run.end().1, 79);
    assert!(!lives(job));
    assert!(lives(child));
    let _ = rustix::process::kill_process(child, Signal::KILL);
}
