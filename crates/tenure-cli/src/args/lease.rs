//! The grammar of the commands that handle leases: `acquire`, `renew`, `release`, `check`,
//! `force-release`.

use std::time::Duration;

use clap::Args;

use super::duration;
use super::run::LockArgs;

/// What `tenure acquire --help` begins with.
pub(super) const ACQUIRE: &str = "\
Take a lock that outlives this process, for scripts.

Nobody renews it: it ends after --ttl unless `tenure renew` or `tenure release` comes first. \
To protect a single command use `tenure run`, which renews and ends the command in time.

Prints the lease, which `renew`, `release` and `check` want. Whoever knows it can release \
the lock.";

/// `tenure acquire NAME --ttl DURATION`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lease=$(tenure acquire deploy --ttl 10m --wait 1m) || exit\n  \
                  ...\n  tenure release deploy --lease \"$lease\""
)]
pub struct AcquireArgs {
    /// The name of the lock
    pub name: String,
    /// How long the lease lasts; at least 1s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_ttl)]
    pub ttl: Duration,
    /// What lock, and how long to wait for it.
    #[command(flatten)]
    pub lock: LockArgs,
    /// Print {"lease","fence","ttl_ms","expires_in_ms"}
    #[arg(long)]
    pub json: bool,
    /// No live line while waiting on a terminal
    #[arg(long)]
    pub no_progress: bool,
}

/// `tenure renew [NAME] --lease LEASE`
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 renewed, 79 the lease is lost (nothing was changed).")]
pub struct RenewArgs {
    /// Which lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// How long it lasts from now on; at least 1s [default: $TENURE_TTL_MS, else 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_ttl)]
    pub ttl: Option<Duration>,
    /// Print {"lease","fence","ttl_ms","expires_in_ms"}
    #[arg(long)]
    pub json: bool,
}

/// What `tenure release --help` begins with.
pub(super) const RELEASE: &str = "\
Give back a lease that `acquire` gave.

The lock of a `tenure run` is given back by that run when its command has ended. Inside of it, \
`release` without --lease is refused: the command would go on without its lock.";

/// `tenure release [NAME] --lease LEASE`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 released, 79 the lease had been lost before: expired, released \
                        already, or taken away by force."
)]
pub struct ReleaseArgs {
    /// Which lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
}

/// What `tenure check --help` begins with.
pub(super) const CHECK: &str = "\
Ask the store whether a lease is still ours.

Inside `tenure run` no arguments are needed. The answer is true at the moment it was given; \
only a resource that refuses old fences ($TENURE_FENCE) can be sure at the moment of writing.";

/// `tenure check [NAME] [--lease LEASE] [--at-least DURATION]`
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 still ours, 79 lost (or less than --at-least is left).")]
pub struct CheckArgs {
    /// Which lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Also fail if less than this is left of it
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub at_least: Option<Duration>,
    /// Print {"held","lease","fence","expires_in_ms"}
    #[arg(long)]
    pub json: bool,
}

/// A lease by name and token.
#[derive(Clone, Debug, Args)]
pub struct LeaseArgs {
    /// The name of the lock [default: $TENURE_LOCK]
    pub name: Option<String>,
    /// The lease as `tenure acquire` printed it [default: $TENURE_LEASE]
    #[arg(long, value_name = "LEASE")]
    pub lease: Option<String>,
}

/// What `tenure force-release --help` begins with.
pub(super) const FORCE_RELEASE: &str = "\
Take a lock away from its holder.

THE OLD HOLDER IS NOT STOPPED BY THIS. It learns of it at its next renewal; until then, two may \
believe they hold the lock. Its writes are refused only where the fence is checked. `tenure run` \
ends its command as soon as it learns.

The id keeps you from hitting a new holder when the one you meant has just left.";

/// `tenure force-release NAME --lease ID --reason TEXT`
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 taken away, 79 there is no such holder (any more).")]
pub struct ForceReleaseArgs {
    /// The name of the lock
    pub name: String,
    /// The holder's lease id as `tenure ls` and `tenure show` print it; any unique beginning of at
    /// least 4 characters
    #[arg(long, value_name = "ID")]
    pub lease: String,
    /// Why, for the old holder to read
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Do not ask for the name on a terminal
    #[arg(short, long)]
    pub yes: bool,
}
