//! What was typed: the grammar of the command line and nothing about its meaning.

pub mod duration;
mod elect;
mod entry;
mod inspect;
mod lease;
mod run;
mod seq;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use self::elect::ElectArgs;
pub use self::entry::{Answer, ShortHelp, color, command, json_target, parse};
pub use self::inspect::{DoctorArgs, LsArgs, ShowArgs};
pub use self::lease::{
    AcquireArgs, CheckArgs, ForceReleaseArgs, LeaseArgs, ReleaseArgs, RenewArgs,
};
pub use self::run::{
    Count, IfBusy, JobArgs, JsonTarget, LockArgs, OnLost, Orphans, PartyArgs, RunArgs,
};
pub use self::seq::SeqArgs;

/// Run a command while holding a distributed lock.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options that every command has.
#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// Where the locks live: sqlite:PATH, redis://HOST, redis://HOST:PORT/DB, rediss://…,
    /// redis+sentinel://HOST1,HOST2,HOST3/SERVICE, redis+cluster://HOST1,HOST2,
    /// redlock://HOST1,HOST2,HOST3
    ///
    /// Redlock is a majority of three or more independent Redis servers; redis+all://HOST1,HOST2 needs
    /// all of two or more; redlocks:// and rediss+all:// are the same with TLS.
    ///
    /// Options of a Redis server follow after `?`, with `&` between: max_ttl=30s (the longest lease that
    /// is protected if it forgets), recovery=careful|strict|open|off, replicas=none (it has no replica that
    /// could ever take its place), min_replicas=N, prefix=TEXT, call_timeout=2s and others.
    ///
    /// Without it: $TENURE_STORE, then `store = "…"` in ./tenure.toml, in
    /// $XDG_CONFIG_HOME/tenure/config.toml or in /etc/tenure/config.toml, then a SQLite file in your
    /// state folder, which is shared by the processes of this machine only.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Common options"
    )]
    pub store: Option<String>,
    /// Say nothing but errors
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Common options"
    )]
    pub quiet: bool,
    /// Say what is being done
    #[arg(short, long, global = true, help_heading = "Common options")]
    pub verbose: bool,
    /// Colours on stderr and in tables
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        help_heading = "Common options"
    )]
    pub color: Color,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command while holding a lock
    #[command(long_about = run::ABOUT)]
    Run(Box<RunArgs>),
    /// Run a command while being the leader, and again after leading again
    #[command(long_about = elect::ABOUT)]
    Elect(Box<ElectArgs>),
    /// List locks: who holds them, who waits
    Ls(LsArgs),
    /// Show one lock
    Show(ShowArgs),
    /// Take a lock that outlives this process, for scripts
    #[command(long_about = lease::ACQUIRE)]
    Acquire(AcquireArgs),
    /// Extend a lease that `acquire` gave
    Renew(RenewArgs),
    /// Give back a lease that `acquire` gave
    #[command(long_about = lease::RELEASE)]
    Release(ReleaseArgs),
    /// Ask whether a lease is still ours
    #[command(long_about = lease::CHECK)]
    Check(CheckArgs),
    /// Take a lock away from its holder
    #[command(long_about = lease::FORCE_RELEASE)]
    ForceRelease(ForceReleaseArgs),
    /// Print a number that nobody else gets
    #[command(long_about = seq::ABOUT)]
    Seq(SeqArgs),
    /// Examine the store: can it be reached, what does it promise, what is set up wrongly
    Doctor(DoctorArgs),
    /// Break locks on purpose, with real processes and servers, and see which hold
    Lab(tenure_lab::LabArgs),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// Of this command only, `run` for example
        #[arg(value_name = "COMMAND")]
        page: Option<String>,
    },
}
