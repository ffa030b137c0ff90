//! The command line `tenure` as a library: arguments in, exit code out.
//!
//! Not an interface to build on: it exists so that the binary stays thin and tests can drive
//! single parts. Programs use the crate `tenure`.

use std::process::ExitCode;

pub mod job;

/// Runs the command line and returns its exit code.
pub fn main() -> ExitCode {
    // Before arguments and runtime: the guard must be small, quick to start and alone in its process.
    job::become_guard_if_asked();
    job::remember_ignored_signals();
    ExitCode::SUCCESS
}
