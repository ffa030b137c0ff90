//! ^C, ^Z, `fg`, `bg` and reading from the terminal work as if the shell had started the job.
//!
//! The jobs are single programs that answer a line with `got-` and the line. A shell that is just
//! about to start a command can miss a key, whoever started it; one that has answered cannot.

use std::io::Write as _;

use super::pty::{END, INTERRUPT, Shell};
use super::world::gone;

/// Answers lines from the terminal.
const READER: &str = "sed -u s/^/got-/";
/// Answers lines from the pipe [`Shell::pipe`], and leaves the terminal alone.
const LISTENER: &str = "sed -u s/^/got-/ $D/pipe";

#[test]
fn the_job_reads_from_the_terminal() {
    let mut shell = Shell::new();
    shell.line(&format!("$T -- {READER}"));
    shell.line("one");
    shell.expect("got-one");
    shell.press(END);
    shell.expect_code(0);
}

#[test]
fn one_interrupt_key_is_one_interrupt() {
    let mut shell = Shell::new();
    shell.line(
        "$T -- sh -c 'trap \"echo int-\\$((3+4))\" INT; \
         while :; do read word && echo got-$word; test \"$word\" = quit && exit 5; done'",
    );
    shell.line("one");
    shell.expect("got-one");
    shell.press(INTERRUPT);
    shell.expect("int-7");
    shell.line("quit");
    shell.expect_code(5);
    assert_eq!(shell.screen().matches("int-7").count(), 1);
}

#[test]
fn a_job_that_dies_of_the_interrupt_key_is_130_and_stops_a_loop() {
    let mut shell = Shell::new();
    shell.line(&format!(
        "while :; do $T -- {READER}; echo again-$((1+1)); done"
    ));
    shell.line("one");
    shell.expect("got-one");
    shell.press(INTERRUPT);
    shell.expect_code(130);
    assert!(!shell.screen().contains("again-2"));
}

#[test]
fn suspended_and_brought_back_the_job_goes_on_reading() {
    let mut shell = Shell::new();
    shell.line(&format!("$T -- {READER}"));
    shell.line("one");
    shell.expect("got-one");
    shell.suspend();
    shell.bring_back();
    shell.line("two");
    shell.expect("got-two");
    shell.suspend();
    shell.bring_back();
    shell.line("three");
    shell.expect("got-three");
    shell.press(END);
    shell.expect_code(0);
}

#[test]
fn in_the_background_the_job_leaves_the_terminal_to_the_shell() {
    let mut shell = Shell::new();
    let mut pipe = shell.pipe();
    shell.line(&format!("$T -- {LISTENER}"));
    pipe.write_all(b"one\n").unwrap();
    shell.expect("got-one");
    shell.suspend();
    shell.line("bg");
    shell.expect_shell();
    pipe.write_all(b"two\n").unwrap();
    shell.expect("got-two");
    shell.expect_shell();
    drop(pipe);
    shell.line("wait; echo ended-$((1+1))");
    shell.expect("ended-2");
    // Nor is it taken from the shell afterwards.
    shell.expect_shell();
}

#[test]
fn a_background_job_that_wants_to_read_waits_until_it_is_brought_back() {
    let mut shell = Shell::new();
    shell.line(&format!("$T -- {READER} &"));
    shell.expect("while stopped");
    shell.expect_shell();
    shell.bring_back();
    shell.line("one");
    shell.expect("got-one");
    shell.press(END);
    shell.expect_code(0);
}

#[test]
fn a_pager_behind_the_job_keeps_its_keyboard() {
    let mut shell = Shell::new();
    let mut pipe = shell.pipe();
    let pager = "read text; echo $text; read key </dev/tty; echo key-$key-$((2+2))";
    shell.line(&format!("$T -- {LISTENER} | sh -c '{pager}'"));
    pipe.write_all(b"one\n").unwrap();
    shell.expect("got-one");
    shell.line("q");
    shell.expect("key-q-4");
    // The pager is gone and the job has not noticed: the key reaches it through us.
    shell.press(INTERRUPT);
    shell.expect("@ ");
    shell.expect_shell();
}

#[test]
fn in_a_pipe_the_job_gets_the_terminal_when_it_asks() {
    let mut shell = Shell::new();
    shell.line(&format!("$T -- {READER} | cat"));
    shell.line("one");
    shell.expect("got-one");
    shell.press(END);
    shell.expect_code(0);
}

#[test]
fn in_a_pipe_the_job_that_asked_can_be_suspended_and_brought_back() {
    let mut shell = Shell::new();
    shell.line(&format!("$T -- {READER} | cat"));
    shell.line("one");
    shell.expect("got-one");
    shell.suspend();
    shell.bring_back();
    shell.line("two");
    shell.expect("got-two");
    shell.press(END);
    shell.expect_code(0);
}

#[test]
fn in_a_pipe_the_stop_key_stops_the_job_and_fg_continues_it() {
    let mut shell = Shell::new();
    let mut pipe = shell.pipe();
    shell.line(&format!("$T -- {LISTENER} | cat"));
    pipe.write_all(b"one\n").unwrap();
    shell.expect("got-one");
    shell.suspend();
    shell.bring_back();
    pipe.write_all(b"two\n").unwrap();
    shell.expect("got-two");
    drop(pipe);
    shell.expect_code(0);
}

#[test]
fn suspended_for_longer_than_the_lease_the_job_is_gone_and_it_is_79() {
    let mut shell = Shell::new();
    shell.line(&format!(
        "$T --ttl 4s -- sh -c 'echo $$ >$D/job; exec {READER}'"
    ));
    shell.line("one");
    shell.expect("got-one");
    shell.suspend();
    // The guard ends it; it stays a zombie until we go on.
    shell.line("until grep -q '^State:.Z' /proc/$(cat $D/job)/status; do sleep 0.05; done");
    shell.expect_shell();
    shell.bring_back();
    shell.expect("lost");
    shell.expect_code(79);
}

#[test]
fn in_our_own_group_keys_work_too() {
    let mut shell = Shell::new();
    shell.line(&format!("$T --foreground -- {READER}"));
    shell.line("one");
    shell.expect("got-one");
    shell.suspend();
    shell.bring_back();
    shell.line("two");
    shell.expect("got-two");
    shell.press(INTERRUPT);
    shell.expect_code(130);
}

#[test]
fn when_the_terminal_goes_away_so_does_the_job() {
    let mut shell = Shell::new();
    shell.line(&format!("$T -- sh -c 'echo $$ >$D/job; exec {READER}'"));
    shell.line("one");
    shell.expect("got-one");
    let pids = shell.job_and_tenure();
    shell.hang_up();
    pids.into_iter().for_each(gone);
}

#[test]
fn when_the_terminal_goes_away_so_does_a_suspended_job() {
    let mut shell = Shell::new();
    shell.line(&format!("$T -- sh -c 'echo $$ >$D/job; exec {READER}'"));
    shell.line("one");
    shell.expect("got-one");
    shell.suspend();
    let pids = shell.job_and_tenure();
    shell.hang_up();
    pids.into_iter().for_each(gone);
}
