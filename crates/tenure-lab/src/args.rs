//! What can be typed after `tenure lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

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
