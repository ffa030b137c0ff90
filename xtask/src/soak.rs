//! `cargo xtask soak`: random faults against every shape of store, for as long as one likes.

use std::process::Command;

use crate::options::SoakOptions;
use crate::shell::{self, Failure};

/// What `tenure lab chaos` can start.
pub(crate) const SHAPES: [&str; 6] = [
    "redis",
    "sentinel",
    "cluster",
    "redlock:3",
    "redlock:5",
    "sqlite",
];

/// Breaks each shape for so many minutes, with seed after seed. Goes on after a violation, so that one
/// night shows them all.
///
/// # Errors
/// When something does not build, and when anything was found; what was kept and how to see it again
/// has been said by then.
pub(crate) fn soak(options: &SoakOptions) -> Result<(), Failure> {
    if !shell::succeeds(Command::new("redis-server").arg("--version")) {
        return Err(Failure("install redis-server first: it is needed".into()));
    }
    shell::heading("build");
    shell::run(&mut shell::cargo([
        "build",
        "--release",
        "-p",
        "tenure-lab",
    ]))?;
    let program = shell::target_folder().join("release").join("tenure-lab");
    let mut failed = Vec::new();
    for shape in &options.shapes {
        for round in 0..u64::from(options.seeds) {
            let seed = (options.seed + round).to_string();
            shell::heading(&format!("{shape}, seed {seed}"));
            let mut chaos = Command::new(&program);
            chaos.args(["chaos", "--start", shape, "--seed", &seed]);
            chaos.args(["--for", &format!("{}m", options.minutes)]);
            if shell::run(&mut chaos).is_err() {
                failed.push(format!("{shape} with seed {seed}"));
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure(format!("found something: {}", failed.join(", ")))),
    }
}
