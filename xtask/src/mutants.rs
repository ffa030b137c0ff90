//! `cargo xtask mutants`: every small change of the core, one at a time, must make a test fail.

use crate::shell::{self, Failure};

/// The tests that visit every state take most of the time and are not what finds a changed line.
const SKIPPED: [&str; 2] = ["forgetful", "queue_model"];

/// What survives because it changes nothing: the fences compared there cannot be equal (decision 015).
const EQUIVALENT: [&str; 2] = [
    "reinstate.rs.* replace < with <= in reinstate",
    "reinstate.rs.* replace > with >= in was_succeeded",
];

/// Runs cargo-mutants on the core, with `args` beside ours.
///
/// # Errors
/// When it is not installed, or a change survived.
pub(crate) fn mutants(args: &[String]) -> Result<(), Failure> {
    if !shell::succeeds(&mut shell::cargo(["mutants", "--version"])) {
        return Err(Failure::new(
            "cargo-mutants is missing: `cargo install cargo-mutants --locked`",
        ));
    }
    let mut command = shell::cargo(["mutants", "--package", "tenure-core"]);
    // A change that makes a loop endless counts as noticed.
    command.args(["--baseline", "skip", "--timeout", "120"]);
    for same in EQUIVALENT {
        command.args(["--exclude-re", same]);
    }
    command.args(args);
    command.args(["--", "--lib", "--test", "it", "--"]);
    for slow in SKIPPED {
        command.args(["--skip", slow]);
    }
    shell::run(&mut command)
}
