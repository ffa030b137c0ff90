//! Runs every example in a small size: green as it is, red without its lock.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a test that panics has failed, and says what it saw"
)]

use std::process::Command;

/// Runs an example and says whether it kept its promises.
fn keeps_its_promises(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    println!("{program} {arguments:?}\n{said}{complained}");
    // Neither a crash nor a wrong option counts as a broken promise.
    let judged = said.contains("kept  ") || said.contains("BROKEN");
    assert!(judged, "the example did not come to a verdict");
    assert_eq!(output.status.success(), !said.contains("BROKEN"));
    output.status.success()
}

/// Damage needs bad luck, which a small size may lack once or twice.
fn breaks_without_its_lock(program: &str, arguments: &[&str]) {
    let arguments = [arguments, &["--without-lock"]].concat();
    let broken = (0..5).any(|_| !keeps_its_promises(program, &arguments));
    assert!(broken, "five runs without the lock did no damage");
}

mod floor_numbers {
    use super::*;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_floor-numbers");
    const SMALL: [&str; 4] = ["--processes", "4", "--writers", "20"];

    #[test]
    fn are_consecutive() {
        assert!(keeps_its_promises(PROGRAM, &SMALL));
    }

    #[test]
    fn are_not_without_the_lock() {
        breaks_without_its_lock(PROGRAM, &SMALL);
    }
}
