//! What can be typed after `tenure lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::worker::WorkerArgs;

/// The arguments of `tenure lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What the lab can do.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List what can go wrong with a lock
    List,
    /// Play what goes wrong, with a naive lock and with ours, and show what happened
    Run(RunArgs),
    /// Take part in a play
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Judge a history: what processes wrote down, one event per line
    ///
    /// Exit code 0: no violation. 1: a violation, shown with the smallest piece of history that proves
    /// it. 66: there is no such history.
    Check(CheckArgs),
    /// Become another program that dies with us
    #[command(hide = true)]
    Launch {
        /// Who starts it.
        #[arg(long)]
        parent: u32,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

/// The arguments of `tenure lab check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The history
    pub file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `tenure lab run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Which: A1 to A20
    #[arg(value_name = "ANOMALY", required_unless_present = "all")]
    pub anomalies: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "anomalies")]
    pub all: bool,
    /// Also write one HTML page with everything, pictures included
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How many to play at the same time
    #[arg(long, value_name = "N", default_value = "4")]
    pub parallel: usize,
    /// Play ours where the naive one should be: the verdict must then be that nothing was shown
    #[arg(long, hide = true)]
    pub swap: bool,
}
