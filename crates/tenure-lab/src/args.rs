//! What can be typed after `tenure lab`.

use std::ffi::OsString;

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
