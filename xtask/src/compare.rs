//! Measuring: the comparison with other lock libraries, and the micro-benchmarks.
//!
//! The comparison itself is `bench/peers/compare`, because its peers are written in five languages;
//! here its own side is built and it is called.

use std::path::PathBuf;
use std::process::Command;

use crate::options::CompareOptions;
use crate::shell::{self, Failure};

/// Builds our own programs and runs the comparison.
///
/// # Errors
/// One line when something of ours does not build, when Python or the Redis server is missing, or
/// when the comparison broke off. A peer that cannot be built or run is no error: the report says so.
pub(crate) fn compare(options: &CompareOptions) -> Result<(), Failure> {
    for program in ["python3", "redis-server"] {
        if !shell::succeeds(Command::new(program).arg("--version")) {
            return Err(Failure(format!("install {program} first: it is needed")));
        }
    }
    shell::heading("our own programs");
    let packages = ["-p", "tenure-bench", "-p", "tenure-cli"];
    shell::run(shell::cargo(["build", "--release"]).args(packages))?;
    shell::heading("comparison");
    let bench = shell::workspace_root().join("bench");
    let mut harness = Command::new("python3");
    harness
        .arg(bench.join("peers").join("compare"))
        .args(arguments(options))
        .arg("--shown")
        .arg(shown(options))
        .arg("--own")
        .arg(release_program("tenure-bench"))
        .arg("--cli")
        .arg(release_program("tenure"))
        .arg("--results")
        .arg(bench.join("results"));
    shell::run(&mut harness)?;
    shell::say("written: bench/results, latest.md or growth.md and their charts");
    Ok(())
}

/// Runs the micro-benchmarks.
///
/// # Errors
/// When they do not build or one of them panicked.
pub(crate) fn bench(args: &[String]) -> Result<(), Failure> {
    let mut command = shell::cargo(["bench", "-p", "tenure-bench"]);
    if !args.is_empty() {
        command.arg("--").args(args);
    }
    shell::run(&mut command)
}

/// What the harness is told of what we were told.
fn arguments(options: &CompareOptions) -> Vec<String> {
    let mut arguments = Vec::new();
    if options.quick {
        arguments.push("--quick".to_owned());
    }
    let rounds = options.rounds.map(|rounds| rounds.to_string());
    for (name, value) in [
        ("--peers", &options.peers),
        ("--scenarios", &options.scenarios),
        ("--rounds", &rounds),
    ] {
        if let Some(value) = value {
            arguments.extend([name.to_owned(), value.clone()]);
        }
    }
    arguments
}

/// The command as the reader of the report would type it.
fn shown(options: &CompareOptions) -> String {
    let mut words = vec!["cargo xtask compare".to_owned()];
    words.extend(arguments(options));
    words.join(" ")
}

fn release_program(name: &str) -> PathBuf {
    shell::target_folder().join("release").join(name)
}
