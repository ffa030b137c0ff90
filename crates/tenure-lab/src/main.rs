//! The lab as a program of its own, for its tests; users say `tenure lab`.

use std::process::ExitCode;

use clap::Parser;
use tenure_lab::{LabArgs, Program};

/// Break every lock on purpose, and see that tenure holds.
#[derive(Parser)]
#[command(name = "tenure-lab", version)]
struct Cli {
    #[command(flatten)]
    lab: LabArgs,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let program = Program::this(&[]);
    ExitCode::from(tenure_lab::execute(cli.lab, &program))
}
