//! What happens to a job whose lease is lost.

use rustix::process::Signal;

use super::world::{Setup, gone, lives};

#[test]
fn a_lease_that_is_not_renewed_ends_the_job_in_peace_first() {
    let line = "trap 'echo >$D/term; exit 0' TERM; echo >$D/ready; while :; do sleep 0.05; done";
    let mut run = Setup::new(line).lease(6_000, 5_000).start();
    run.wait_for_file("ready");
    run.wait_for("at risk");
    assert_eq!(run.end(), ("Lost(Expired) orphans=0".to_owned(), 79));
    run.wait_for_file("term");
}

#[test]
fn a_job_that_ignores_term_is_killed_with_its_whole_group() {
    let line = "trap '' TERM; sh -c 'echo $$ >$D/grandchild; while :; do sleep 0.05; done' & \
                while :; do sleep 0.05; done";
    let mut run = Setup::new(line).lease(1_500, 700).start();
    let grandchild = run.pid_in("grandchild");
    assert_eq!(run.end().1, 79);
    assert!(!lives(grandchild));
}

#[test]
fn a_leader_that_moved_to_another_group_is_ended_too() {
    // The leader joins the group of its own child.
    let mover = "import os, time\n\
                 child = os.fork()\n\
                 os.setpgid(child, child) if child else time.sleep(1000)\n\
                 os.setpgid(0, child)\n\
                 open(os.environ['D'] + '/pid', 'w').write(f'{os.getpid()}\\n')\n\
                 open(os.environ['D'] + '/child', 'w').write(f'{child}\\n')\n\
                 time.sleep(1000)\n";
    let setup = Setup::new("exec python3 $D/mover.py").lease(3_000, 1_000);
    std::fs::write(setup.folder.path().join("mover.py"), mover).unwrap();
    let mut run = setup.start();
    let (job, child) = (run.pid_in("pid"), run.pid_in("child"));
    run.send(Signal::STOP);
    gone(job);
    run.send(Signal::CONT);
    assert_eq!(run.end().1, 79);
    let _ = rustix::process::kill_process(child, Signal::KILL);
}

#[test]
fn renewals_keep_the_job_alive_and_the_guard_hears_of_them() {
    let line = "echo $$ >$D/pid; until test -e $D/go; do sleep 0.02; done; exit 6";
    let mut run = Setup::new(line).lease(5_000, 1_000).start();
    let job = run.pid_in("pid");
    run.tell("renew 3600000");
    a_lease_of(5_500);
    assert!(lives(job));
    std::fs::write(run.path("go"), "").unwrap();
    assert_eq!(run.end().1, 6);
}

#[test]
fn a_renewal_after_term_does_not_take_the_stop_back() {
    let line = "trap 'echo >$D/term; until test -e $D/go; do sleep 0.02; done; exit 0' TERM; \
                echo >$D/ready; while :; do sleep 0.05; done";
    let mut run = Setup::new(line).lease(5_000, 4_000).start();
    run.wait_for_file("term");
    run.tell("renew 3600000");
    a_lease_of(5_500);
    std::fs::write(run.path("go"), "").unwrap();
    assert_eq!(run.end(), ("Lost(Expired) orphans=0".to_owned(), 79));
}

/// Waits until a lease of so many milliseconds, taken now, has ended.
fn a_lease_of(millis: u64) {
    let mut other = Setup::new("sleep 1000").lease(millis, 100).start();
    assert_eq!(other.end().1, 79);
}

#[test]
fn a_store_that_says_lost_ends_the_job_at_once() {
    let line = "trap 'echo >$D/term; exit 0' TERM; echo >$D/ready; while :; do sleep 0.05; done";
    let mut run = Setup::new(line).start();
    run.wait_for_file("ready");
    run.tell("told released by ops: stuck");
    run.wait_for("lease lost: released by ops: stuck");
    let (end, code) = run.end();
    assert_eq!(code, 79);
    assert!(end.contains("ToldByStore"));
    run.wait_for_file("term");
}

#[test]
fn on_lost_warn_lets_the_job_go_on_and_still_says_79() {
    let line = "until test -e $D/go; do sleep 0.02; done; exit 0";
    let mut run = Setup::new(line)
        .lease(600, 300)
        .with(|script| script.on_lost = "warn".to_owned())
        .start();
    run.wait_for("at risk");
    run.wait_for("lease lost");
    std::fs::write(run.path("go"), "").unwrap();
    assert_eq!(run.end().1, 79);
}

#[test]
fn on_lost_signal_sends_it_and_lets_the_job_go_on() {
    let line = "trap 'echo >$D/usr1' USR1; echo >$D/ready; \
                until test -e $D/usr1 && test -e $D/go; do sleep 0.02; done; exit 0";
    let mut run = Setup::new(line)
        .lease(3_000, 500)
        .with(|script| script.on_lost = "USR1".to_owned())
        .start();
    run.wait_for_file("ready");
    run.wait_for("lease lost");
    run.wait_for_file("usr1");
    std::fs::write(run.path("go"), "").unwrap();
    assert_eq!(run.end().1, 79);
}

#[test]
fn tenure_stopped_alone_the_guard_ends_the_job_and_after_cont_it_is_79() {
    let line = "echo $$ >$D/pid; sh -c 'echo $$ >$D/grandchild; sleep 1000' & sleep 1000";
    let mut run = Setup::new(line).lease(3_000, 1_000).start();
    let (job, grandchild) = (run.pid_in("pid"), run.pid_in("grandchild"));
    run.send(Signal::STOP);
    gone(job);
    gone(grandchild);
    run.send(Signal::CONT);
    let (end, code) = run.end();
    assert!(end.starts_with("Lost(Expired)"), "{end}");
    assert_eq!(code, 79);
}

#[test]
fn tenure_stopped_alone_a_job_that_only_warns_is_left_alone() {
    let line = "echo $$ >$D/pid; until test -e $D/go; do sleep 0.02; done";
    let mut run = Setup::new(line)
        .lease(300, 100)
        .with(|script| script.on_lost = "warn".to_owned())
        .start();
    let job = run.pid_in("pid");
    run.send(Signal::STOP);
    a_lease_of(600);
    assert!(lives(job));
    run.send(Signal::CONT);
    run.wait_for("lease lost");
    std::fs::write(run.path("go"), "").unwrap();
    assert_eq!(run.end().1, 79);
}
