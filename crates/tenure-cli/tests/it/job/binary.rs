//! Supervision by the real binary, where no script can stand in.

use crate::support::signals::as_from_a_shell;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::world::{eventually, gone};

/// `tenure run` on a lock of this test's own.
fn tenure(folder: &TempDir, arguments: &[&str]) -> Command {
    as_from_a_shell();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command
        .args(["run", "lock", "--store", &store(folder)])
        .args(arguments)
        .stdin(Stdio::null());
    command
}

fn store(folder: &TempDir) -> String {
    format!("sqlite:{}", folder.path().join("locks.db").display())
}

fn output(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    tenure(&folder, arguments).output().unwrap()
}

#[test]
fn what_the_job_prints_is_all_that_is_printed() {
    let output = output(&["--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_reader_of_our_output_sees_its_end_when_we_end() {
    let folder = tempfile::tempdir().unwrap();
    // Would wait for ever if the guard, or anything else, still held the pipe.
    let mut child = tenure(&folder, &["--", "true"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut child.stdout.take().unwrap(), &mut text).unwrap();
    child.wait().unwrap();
    assert_eq!(text, b"");
}

#[test]
fn the_job_inherits_no_descriptor_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let listed = |command: &mut Command| {
        let output = command.output().unwrap();
        let names = String::from_utf8(output.stdout).unwrap();
        names.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let plain = listed(Command::new("ls").arg("/proc/self/fd").stdin(Stdio::null()));
    assert_eq!(
        listed(&mut tenure(&folder, &["--", "ls", "/proc/self/fd"])),
        plain
    );
}

#[test]
fn signals_are_ignored_in_the_job_exactly_if_they_were_when_we_started() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let tenure = format!(
        "{} run lock --store {store} --",
        env!("CARGO_BIN_EXE_tenure")
    );
    for setting in ["", "trap '' HUP INT QUIT PIPE USR1 TSTP TTOU CHLD;"] {
        let ignored = |starter: &str| {
            let line = format!("{setting} exec {starter} grep ^SigIgn: /proc/self/status");
            let output = Command::new("sh").args(["-c", &line]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mask = text
                .split_whitespace()
                .nth(1)
                .expect("a line about signals");
            // Above are signals that belong to the C library, which sets them when a thread starts.
            u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff
        };
        assert_eq!(ignored(&tenure), ignored(""), "with {setting:?}");
    }
}

#[test]
fn a_job_that_died_of_an_interrupt_takes_us_along() {
    let status = output(&["--", "sh", "-c", "kill -INT $$"]).status;
    assert_eq!(status.signal(), Some(2));
}

#[test]
fn stopped_alone_past_its_lease_it_is_79_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let line = format!("echo $$ >{}; sleep 1000", file.display());
    let child = tenure(&folder, &["--ttl", "1s", "-c", &line])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let job = eventually("the job", || {
        let text = std::fs::read_to_string(&file).ok()?;
        Pid::from_raw(text.strip_suffix('\n')?.parse().ok()?)
    });
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    gone(job);
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(79));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("lost"), "{text}");
}
