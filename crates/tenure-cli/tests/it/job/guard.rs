//! The guard process: what survives the death of tenure, and what of the guard itself.

use std::fs::File;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Signal, getsid, kill_process};

use super::world::{Setup, TENURE, eventually, gone, guard_of, lives, raw};

const FAMILY: &str = "echo $$ >$D/pid; sh -c 'echo $$ >$D/child; \
                      sh -c \"echo \\$\\$ >\\$D/grandchild; sleep 1000\" & sleep 1000' & sleep 1000";

#[test]
fn when_tenure_is_killed_the_whole_group_dies_and_then_the_guard() {
    let mut run = Setup::new(FAMILY).start();
    let family = ["pid", "child", "grandchild"].map(|name| run.pid_in(name));
    let guard = run.guard();
    run.send(Signal::KILL);
    run.wait_dead();
    for pid in family {
        gone(pid);
    }
    gone(guard);
}

#[test]
fn when_tenure_is_killed_a_job_in_its_own_group_dies_alone() {
    let line = "echo $$ >$D/pid; sleep 1000 & echo $! >$D/child; wait";
    let mut run = Setup::new(line)
        .with(|script| script.foreground = true)
        .start();
    let (job, child) = (run.pid_in("pid"), run.pid_in("child"));
    let guard = run.guard();
    run.send(Signal::KILL);
    run.wait_dead();
    gone(job);
    gone(guard);
    assert!(lives(child));
    let _ = kill_process(child, Signal::KILL);
}

#[test]
fn a_guard_that_dies_is_replaced_and_the_next_one_guards() {
    let mut run = Setup::new(FAMILY).start();
    let family = ["pid", "child", "grandchild"].map(|name| run.pid_in(name));
    let first = run.guard();
    kill_process(first, Signal::KILL).unwrap();
    run.wait_for("started another");
    let second = run.guard();
    assert_ne!(first, second);
    assert!(lives(family[0]));
    run.send(Signal::KILL);
    run.wait_dead();
    for pid in family {
        gone(pid);
    }
    gone(second);
}

#[test]
fn a_new_guard_knows_the_deadline() {
    let mut run = Setup::new("echo $$ >$D/pid; sleep 1000")
        .lease(5_000, 1_000)
        .start();
    let job = run.pid_in("pid");
    kill_process(run.guard(), Signal::KILL).unwrap();
    run.wait_for("started another");
    run.send(Signal::STOP);
    gone(job);
    run.send(Signal::CONT);
    assert_eq!(run.end().1, 79);
}

#[test]
fn a_guard_that_keeps_dying_ends_the_job() {
    let line = "trap 'exit 0' TERM; echo $$ >$D/pid; while :; do sleep 0.05; done";
    let mut run = Setup::new(line).start();
    run.pid_in("pid");
    let tenure = run.tenure();
    eventually("the end of patience", || {
        if let Some(guard) = guard_of(tenure) {
            let _ = kill_process(guard, Signal::KILL);
        }
        (!lives(tenure)).then_some(())
    });
    assert_eq!(run.end(), ("Unguarded(Exited(0)) orphans=0".to_owned(), 70));
}

#[test]
fn the_guard_has_nothing_of_tenures_that_could_keep_anything_waiting() {
    let run = Setup::new("sleep 1000").start();
    let guard = run.guard();
    let proc = PathBuf::from(format!("/proc/{}", raw(guard)));
    // It takes its name early and hears of the job last.
    let descriptors = eventually("the job's descriptor", || {
        let targets: Vec<String> = std::fs::read_dir(proc.join("fd"))
            .ok()?
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .map(|target| target.to_string_lossy().into_owned())
            .collect();
        let has_job = targets.iter().any(|target| target.contains("pidfd"));
        has_job.then_some(targets)
    });
    let kinds = ["/dev/null", "timerfd", "pidfd", "socket:"];
    let counts = kinds.map(|kind| {
        let of_kind = descriptors.iter().filter(|target| target.contains(kind));
        of_kind.count()
    });
    assert_eq!(counts, [3, 1, 1, 1], "{descriptors:?}");
    assert_eq!(descriptors.len(), 6, "{descriptors:?}");
    assert_eq!(
        std::fs::read_link(proc.join("cwd")).unwrap(),
        PathBuf::from("/")
    );
    assert_eq!(std::fs::read(proc.join("environ")).unwrap(), b"");
    assert_eq!(getsid(Some(guard)), Ok(guard));
    kill_process(guard, Signal::TERM).unwrap();
    kill_process(guard, Signal::HUP).unwrap();
    assert!(lives(guard));
}

/// The key that stops tenure and its job would stop the guard, too, if the job were quicker to start.
#[test]
fn the_guard_is_in_no_group_of_ours_before_its_first_instruction() {
    let setup = Setup::new("sleep 1000").with(|script| script.guard_program = "/bin/sh".into());
    let folder = setup.folder.path();
    // What the shell finds under the word that makes a guard of tenure.
    let guard = format!(
        "read -r pid name state parent group session rest </proc/$$/stat\n\
         echo $group >{0}/group; echo $session >{0}/session; exec {TENURE} __guard\n",
        folder.display()
    );
    std::fs::write(folder.join("__guard"), guard).unwrap();
    let run = setup.start();
    let guard = run.guard();
    assert_eq!(run.pid_in("group"), guard);
    assert_eq!(run.pid_in("session"), guard);
}

#[test]
fn the_lock_file_is_held_until_no_member_of_the_group_lives() {
    let mut run = Setup::new(FAMILY);
    run.script.lock_file = Some(run.folder.path().join("alive"));
    let mut run = run.start();
    let family = ["pid", "child", "grandchild"].map(|name| run.pid_in(name));
    let file = File::open(run.path("alive")).unwrap();
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    assert!(flock(&file, exclusive).is_err());
    run.send(Signal::KILL);
    eventually("the lock file", || {
        flock(&file, exclusive).is_ok().then(|| {
            // In the very moment in which it is free.
            assert!(!family.iter().any(|pid| lives(*pid)));
        })
    });
    run.wait_dead();
}

#[test]
fn the_lock_file_is_held_while_a_member_is_still_dying() {
    // A process with much memory takes a while to die of a KILL. Without a line end in its input
    // `tail` keeps everything.
    let line = "(head -c 150000000 /dev/zero; sleep 1000) | \
                sh -c 'echo $$ >$D/child; exec tail -n 1' & echo $$ >$D/pid; wait";
    let mut run = Setup::new(line);
    run.script.lock_file = Some(run.folder.path().join("alive"));
    let mut run = run.start();
    let big = run.pid_in("child");
    eventually("a big process", || {
        let sizes = std::fs::read_to_string(format!("/proc/{}/statm", raw(big))).ok()?;
        let pages: usize = sizes.split_ascii_whitespace().nth(1)?.parse().ok()?;
        (pages * 4096 > 150_000_000).then_some(())
    });
    let file = File::open(run.path("alive")).unwrap();
    run.send(Signal::KILL);
    // Waits for as long as anybody holds it.
    flock(&file, FlockOperation::LockExclusive).unwrap();
    assert!(!lives(big));
    run.wait_dead();
}
