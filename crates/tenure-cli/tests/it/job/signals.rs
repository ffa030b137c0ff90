//! Signals on their way to the job.

use rustix::process::Signal;

use super::world::{Setup, eventually, lives, raw};

#[test]
fn signals_are_passed_on_to_the_whole_group() {
    let line = "sh -c 'trap \"echo >$D/child-has-it\" USR1; echo >$D/child-ready; \
                while :; do sleep 0.05; done' & \
                trap 'echo >$D/has-it' USR1; trap 'exit 9' USR2; echo >$D/ready; \
                while :; do sleep 0.05; done";
    let mut run = Setup::new(line).start();
    run.wait_for_file("ready");
    run.wait_for_file("child-ready");
    run.send(Signal::USR1);
    run.wait_for_file("has-it");
    run.wait_for_file("child-has-it");
    run.send(Signal::USR2);
    let (end, code) = run.end();
    assert!(end.starts_with("Exited(9)"), "{end}");
    assert_eq!(code, 9);
}

#[test]
fn a_job_that_dies_of_a_passed_on_term_is_143() {
    let mut run = Setup::new("echo >$D/ready; sleep 1000").start();
    run.wait_for_file("ready");
    run.send(Signal::TERM);
    assert_eq!(run.end(), ("Signalled(15) orphans=0".to_owned(), 143));
}

#[test]
fn a_stopped_job_can_be_ended() {
    let mut run = Setup::new("echo $$ >$D/pid; sleep 1000").start();
    let job = run.pid_in("pid");
    rustix::process::kill_process_group(job, Signal::STOP).unwrap();
    run.send(Signal::TERM);
    assert_eq!(run.end(), ("Signalled(15) orphans=0".to_owned(), 143));
}

#[test]
fn the_third_term_in_a_row_kills() {
    let line = "trap 'echo x >>$D/terms' TERM; echo $$ >$D/pid; while :; do sleep 0.02; done";
    let mut run = Setup::new(line).start();
    let job = run.pid_in("pid");
    eventually("a KILL", || {
        run.send(Signal::TERM);
        (!lives(job)).then_some(())
    });
    run.wait_for("once more to kill");
    assert_eq!(run.end(), ("Signalled(9) orphans=0".to_owned(), 137));
}

#[test]
fn what_was_ignored_at_the_start_stays_ignored_here_and_in_the_job() {
    let line = "echo $$ >$D/pid; until test -e $D/go; do sleep 0.02; done; exit 0";
    let mut setup = Setup::new(line);
    setup.ignore_hangup = true;
    let mut run = setup.start();
    let job = run.pid_in("pid");
    run.send(Signal::HUP);
    rustix::process::kill_process(job, Signal::HUP).unwrap();
    assert_eq!(mask(job, "SigIgn") & 1, 1, "HUP is signal 1");
    std::fs::write(run.path("go"), "").unwrap();
    assert_eq!(run.end().1, 0);
}

#[test]
fn the_job_starts_with_default_handlers_and_nothing_blocked() {
    let run = Setup::new("echo $$ >$D/pid; exec sleep 1000").start();
    let job = run.pid_in("pid");
    // The shell that wrote the file may still be a shell; sleep has no handlers of its own.
    eventually("sleep", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", raw(job))).ok()?;
        (name.trim_end() == "sleep").then_some(())
    });
    assert_eq!(mask(job, "SigBlk"), 0);
    assert_eq!(mask(job, "SigCgt"), 0);
    // As this process was started, but for PIPE, which every Rust program ignores for itself.
    let pipe = 1 << (Signal::PIPE.as_raw() - 1);
    let inherited = mask(rustix::process::getpid(), "SigIgn") & !pipe;
    assert_eq!(mask(job, "SigIgn"), inherited);
}

fn mask(pid: rustix::process::Pid, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", raw(pid))).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let mask = line.split_ascii_whitespace().nth(1).unwrap();
    // Without the C library's own signals from 32 on: its `posix_spawn` ignores them for a child.
    u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff
}
