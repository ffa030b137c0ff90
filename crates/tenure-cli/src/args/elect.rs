//! The grammar of `tenure elect`.

use std::time::Duration;

use clap::Args;

use super::duration;
use super::run::{JobArgs, PartyArgs};
use crate::exit;

/// What `tenure elect --help` begins with.
pub(super) const ABOUT: &str = "\
Run a command while being the leader, and again after leading again.

Of all who say the same NAME one leads and runs its command; the others are standbys. When the leader ends, the \
next in line leads at once; when it dies or loses the store, within the ttl. A leader that loses its lease ends \
its command and everything in its process group before anybody else can lead, and becomes a standby.

When the command ends by itself, tenure resigns and exits with its exit code. It is the lock NAME: `tenure \
show NAME` says who leads, and `tenure run NAME` waits for it.";

/// `tenure elect NAME [OPTIONS] [--] COMMAND...`
#[derive(Debug, Args)]
#[command(
    after_help = "`tenure elect --help` explains every option and lists the exit codes.",
    after_long_help = exit::help(exit::Of::Elect),
    override_usage = "tenure elect [OPTIONS] NAME [--] COMMAND [ARGUMENT]...\n       \
                      tenure elect [OPTIONS] NAME -c STRING",
)]
pub struct ElectArgs {
    /// The name of the election
    pub name: String,
    /// What to run, and how.
    #[command(flatten)]
    pub job: JobArgs,
    /// Length of the lease: how long a leader that died still counts as one; at least 1s
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse_ttl)]
    pub ttl: Duration,
    /// Who asks.
    #[command(flatten)]
    pub party: PartyArgs,
}
