//! The grammar of the commands that only look: `ls`, `show`, `doctor`.

use clap::Args;

/// `tenure ls [PREFIX]`
#[derive(Debug, Args)]
pub struct LsArgs {
    /// Only names that begin with this
    pub prefix: Option<String>,
    /// Print an array of {"name","mode","holders":[…],"waiters":[…]}
    #[arg(long)]
    pub json: bool,
}

/// `tenure show NAME`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The name of the lock
    pub name: String,
    /// Print one object as `ls --json` prints many
    #[arg(long)]
    pub json: bool,
}

/// `tenure doctor`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 fit for use (warnings included), 1 something is set up so that \
                        locks are not safe, 69 the store cannot be reached, 77 it refused us."
)]
pub struct DoctorArgs {
    /// Print one object
    #[arg(long)]
    pub json: bool,
}
