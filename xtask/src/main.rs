//! Project chores, started as `cargo xtask <chore>`. This file only reads the command line and
//! hands over: a new chore is a module of its own and one arm of the `match` below.
//!
//! No dependencies: the test command must build in a second on a machine that has only Rust.

mod cargo_test;
mod compare;
mod counts;
mod features;
mod mutants;
mod needs;
mod options;
mod package_manager;
mod python;
mod shell;
mod soak;
mod steps;
mod theirs;

use std::process::ExitCode;

use options::{Chore, HELP};

fn main() -> ExitCode {
    match options::parse(std::env::args().skip(1)) {
        Ok(Chore::Help) => {
            shell::say(HELP);
            ExitCode::SUCCESS
        }
        Ok(Chore::Test(options)) => steps::test(&options),
        Ok(Chore::Compare(options)) => close(compare::compare(&options)),
        Ok(Chore::Soak(options)) => close(soak::soak(&options)),
        Ok(Chore::Bench(args)) => close(compare::bench(&args)),
        Ok(Chore::Mutants(args)) => close(mutants::mutants(&args)),
        Err(complaint) => {
            shell::complain(&format!("{complaint}; see `cargo xtask help`"));
            // EX_USAGE, as the `tenure` command itself answers.
            ExitCode::from(64)
        }
    }
}

fn close(result: Result<(), shell::Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            shell::complain(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}
