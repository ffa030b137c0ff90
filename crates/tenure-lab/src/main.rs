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
    /// The store to break
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
}

fn main() -> ExitCode {
    let mut cli = Cli::parse();
    cli.lab.store = cli.store;
    let program = Program::this(&[]);
    ExitCode::from(tenure_lab::execute(cli.lab, &program))
}
