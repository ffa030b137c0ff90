//! The grammar of the commands that only look: `ls`, `show`, `doctor`.

use clap::Args;

/// `tenure ls [PREFIX]`
#[derive(Debug, Args)]
pub struct LsArgs {
    /// Only names that begin with this
    pub prefix: Option<String>,
    /// Also tenure's own records, whose names begin with ~ (runs that were counted, numbers in use)
    #[arg(long)]
    pub all: bool,
    /// Print an array of {"name","mode","holders":[…],"waiters":[…]}; while the store recovers from a loss, each
    /// with "recovering_ms" and "recovery_begun" (false: that long from when somebody first asks for a lock), and stderr
    /// says so: holders may be missing, also from an empty array
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
                        locks are not safe, or --init was refused, 69 the store cannot be reached, \
                        77 it refused us."
)]
pub struct DoctorArgs {
    /// Print one object
    #[arg(long)]
    pub json: bool,
    /// The servers are new: open them at once, instead of after 30 s (max_ttl)
    ///
    /// A Redis server that has just been started may have lost all of its locks, so its first use waits
    /// until they would have ended (always with Sentinel and in a quorum). This records for all clients
    /// that there were none. Refused where something speaks against it: an earlier record, a former
    /// replica, traces of a wipe, locks that are held, and for as long as somebody who held one before a
    /// restart may still come back. May be repeated.
    #[arg(long)]
    pub init: bool,
    /// With --init: whatever happened, nobody holds a lock there now
    ///
    /// Opens also a server that is known to have forgotten. If somebody does hold a lock, two hold it then. An
    /// empty `tenure ls` proves nothing while it recovers.
    #[arg(long, requires = "init")]
    pub nothing_is_held: bool,
}
