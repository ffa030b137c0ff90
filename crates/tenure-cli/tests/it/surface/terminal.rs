//! What a person at a terminal sees.

use crate::job::pty::{INTERRUPT, Shell};

/// A shell in which `$t` is the binary, with the default store in the shell's own home folder.
fn shell() -> Shell {
    let mut shell = Shell::new();
    shell.line(concat!("t=", env!("CARGO_BIN_EXE_tenure")));
    shell.expect_shell();
    shell
}

/// The same, with somebody holding `x` in the background.
fn shell_with_holder() -> Shell {
    let mut shell = shell();
    shell.line("$t run x -q -c 'echo held-$((1+1)); exec sleep 300' &");
    shell.expect("held-2");
    shell.expect_shell();
    shell
}

#[test]
fn the_default_store_is_mentioned() {
    let mut shell = shell();
    shell.line("$t run hello -- echo hi");
    shell.expect("using sqlite:~/.local/state/tenure/locks.db - this machine only");
    shell.expect("set TENURE_STORE to share");
    shell.expect("hi");
    shell.expect_code(0);
}

#[test]
fn a_long_lease_is_remarked_upon() {
    let mut shell = shell();
    shell.line("$t run hello --ttl 1d -- true");
    shell.expect("a crash would block others for up to 1d");
    shell.expect_code(0);
}

#[test]
fn a_live_line_tells_who_holds_the_lock_and_goes_away_on_interrupt() {
    let mut shell = shell_with_holder();
    shell.line("stty cols 140");
    shell.line("$t run x --wait 10m -- true");
    shell.expect("x  held by ");
    shell.expect("you are 1st of 1");
    shell.expect("/ 10:00   ^C to give up");
    shell.press(INTERRUPT);
    shell.expect_code(130);
    shell.line("$t show x --json");
    shell.expect("\"waiters\":[]");
}

#[test]
fn without_progress_there_is_no_live_line() {
    let mut shell = shell_with_holder();
    shell.line("$t run x --no-progress -- true");
    shell.expect("tenure: waiting for \"x\", held by ");
    shell.press(INTERRUPT);
    shell.expect_code(130);
    assert!(!shell.screen().contains("to give up"), "{}", shell.screen());
}

#[test]
fn an_interrupt_while_waiting_stops_a_loop_of_the_shell() {
    let mut shell = shell_with_holder();
    shell.line("for i in 1 2 3; do echo round-$i-$((1+1)); $t run x -- true; done");
    shell.expect("round-1-2");
    shell.expect("to give up");
    shell.press(INTERRUPT);
    shell.expect_shell();
    assert!(!shell.screen().contains("round-2-2"), "{}", shell.screen());
}

#[test]
fn taking_a_lock_away_has_to_be_confirmed_by_its_name() {
    let mut shell = shell_with_holder();
    shell.line("id=$($t show x --json | sed 's/.*\"lease\":\"//; s/\".*//')");
    shell.line("$t force-release x --lease $id --reason stuck");
    shell.expect("The old holder is not stopped by this");
    shell.expect("Type the name of the lock (x) to go on:");
    shell.line("y");
    shell.expect("not confirmed; nothing was changed");
    shell.expect_code(64);
    shell.line("$t force-release x --lease $id --reason stuck");
    shell.expect("to go on:");
    shell.line("x");
    shell.expect("took \"x\" away from ");
    shell.expect_code(0);
}
