//! ^C, ^Z, `fg`, `bg` and reading from the terminal work as if the shell had started the job.

use rustix::process::Signal;

use super::pty::{INTERRUPT, SUSPEND, Shell};

#[test]
fn the_job_reads_from_the_terminal() {
    let mut shell = Shell::new();
    shell.line("$T -- sh -c 'echo ready-$((1+1)); read word; echo read-$word-$((2+2))'");
    shell.expect("ready-2");
    shell.line("hello");
    shell.expect("read-hello-4");
    shell.expect_code(0);
}

#[test]
fn one_interrupt_key_is_one_interrupt() {
    let mut shell = Shell::new();
    shell.line(
        "$T -- sh -c 'trap \"echo int-\\$((3+4))\" INT; trap \"exit 5\" USR1; echo ready-$((1+1)); \
         echo $$ >$D/job; while :; do sleep 0.05; done'",
    );
    shell.expect("ready-2");
    shell.press(INTERRUPT);
    shell.expect("int-7");
    let job = std::fs::read_to_string(shell.folder.path().join("job")).unwrap();
    let job = rustix::process::Pid::from_raw(job.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(job, Signal::USR1).unwrap();
    shell.expect_code(5);
    assert_eq!(shell.screen().matches("int-7").count(), 1);
}

#[test]
fn a_job_that_dies_of_the_interrupt_key_is_130_and_stops_a_loop() {
    let mut shell = Shell::new();
    shell.line(
        "while :; do $T -- sh -c 'echo ready-$((1+1)); sleep 1000'; echo again-$((1+1)); done",
    );
    shell.expect("ready-2");
    shell.press(INTERRUPT);
    shell.expect_code(130);
    assert!(!shell.screen().contains("again-2"));
}

#[test]
fn suspended_and_brought_back_the_job_goes_on_reading() {
    let mut shell = Shell::new();
    shell.line("$T -- sh -c 'echo ready-$((1+1)); read word; echo read-$word-$((2+2))'");
    shell.expect("ready-2");
    shell.press(SUSPEND);
    shell.expect("while stopped");
    shell.expect_shell();
    shell.line("fg");
    shell.line("hello");
    shell.expect("read-hello-4");
    shell.expect_code(0);
}

#[test]
fn in_the_background_the_job_leaves_the_terminal_to_the_shell() {
    let mut shell = Shell::new();
    shell.line(
        "$T -- sh -c 'echo ready-$((1+1)); until test -e $D/go; do sleep 0.05; done; \
         echo done-$((2+2)) >$D/done'",
    );
    shell.expect("ready-2");
    shell.press(SUSPEND);
    shell.expect("while stopped");
    shell.expect_shell();
    shell.line("bg");
    shell.expect_shell();
    shell.line("echo >$D/go; wait; cat $D/done");
    shell.expect("done-4");
    // Nor is it taken from the shell afterwards.
    shell.expect_shell();
}

#[test]
fn a_background_job_that_wants_to_read_waits_until_it_is_brought_back() {
    let mut shell = Shell::new();
    shell.line("$T -- sh -c 'read word; echo read-$word-$((2+2))' &");
    shell.expect("while stopped");
    shell.expect_shell();
    shell.line("fg");
    shell.line("hello");
    shell.expect("read-hello-4");
    shell.expect_code(0);
}

#[test]
fn a_pager_behind_the_job_keeps_its_keyboard() {
    let mut shell = Shell::new();
    shell.line(
        "$T -- sh -c 'echo text-$((1+1)); sleep 1000' | \
         sh -c 'read text; echo $text; read key </dev/tty; echo key-$key-$((2+2))'",
    );
    shell.expect("text-2");
    shell.line("q");
    shell.expect("key-q-4");
    // The pager is gone, the job has not noticed: the key reaches it through us.
    shell.press(INTERRUPT);
    shell.expect_shell();
}

#[test]
fn in_a_pipe_the_job_gets_the_terminal_when_it_asks() {
    let mut shell = Shell::new();
    shell.line("$T -- sh -c 'read word </dev/tty; echo read-$word-$((2+2))' | cat");
    shell.line("hello");
    shell.expect("read-hello-4");
    shell.expect_code(0);
}

#[test]
fn in_a_pipe_the_stop_key_stops_the_job_and_fg_continues_it() {
    let mut shell = Shell::new();
    shell.line(
        "$T -- sh -c 'echo ready-$((1+1)); until test -e $D/go; do sleep 0.05; done; \
         echo done-$((2+2))' | cat",
    );
    shell.expect("ready-2");
    shell.press(SUSPEND);
    shell.expect("while stopped");
    shell.expect_shell();
    shell.line("echo >$D/go; fg");
    shell.expect("done-4");
    shell.expect_code(0);
}

#[test]
fn suspended_for_longer_than_the_lease_the_job_is_gone_and_it_is_79() {
    let mut shell = Shell::new();
    shell.line("$T --ttl 1s -- sh -c 'echo $$ >$D/job; echo ready-$((1+1)); read word'");
    shell.expect("ready-2");
    shell.press(SUSPEND);
    shell.expect("while stopped");
    // The guard ends it; the shell's own children are not reaped until `fg`.
    shell.line("while kill -0 $(cat $D/job) && ! grep -q '^State:.Z' /proc/$(cat $D/job)/status; do sleep 0.05; done");
    shell.expect_shell();
    shell.line("fg");
    shell.expect("lease");
    shell.expect_code(79);
}

#[test]
fn in_the_foreground_group_keys_work_too() {
    let mut shell = Shell::new();
    shell.line("$T --foreground -- sh -c 'echo ready-$((1+1)); read word; echo read-$word-$((2+2)); sleep 1000'");
    shell.expect("ready-2");
    shell.press(SUSPEND);
    shell.expect("while stopped");
    shell.expect_shell();
    shell.line("fg");
    shell.line("hello");
    shell.expect("read-hello-4");
    shell.press(INTERRUPT);
    shell.expect_code(130);
}
