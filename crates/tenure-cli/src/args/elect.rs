//! The grammar of `tenure elect`.

use std::time::Duration;

use clap::Args;

use super::duration::{self, Wait};
use super::run::{Count, IfBusy, JsonTarget, LockArgs, OnLost, Orphans, ProgramArgs, RunArgs};
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
    after_long_help = exit::HELP,
    override_usage = "tenure elect [OPTIONS] NAME [--] COMMAND [ARGUMENT]...\n       \
                      tenure elect [OPTIONS] NAME -c STRING",
)]
pub struct ElectArgs {
    /// The name of the election
    pub name: String,
    /// What to run.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Length of the lease: how long a leader that died still counts as one; at least 1s
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse_ttl)]
    pub ttl: Duration,
    /// Time between TERM and KILL when the command must end [default: 10s, at most a third of the ttl]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub grace: Option<Duration>,
    /// Who asks.
    #[arg(
        long,
        value_name = "TEXT",
        help = "Who you are, for those who ask who leads [default: user@host]"
    )]
    pub owner: Option<String>,
    /// What for, for those who ask who leads
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Keep the command in tenure's own process group
    ///
    /// Only the command's own process is then ended on loss, not what it started.
    #[arg(long)]
    pub foreground: bool,
    /// What to do with processes of the group that are left when the command has ended
    #[arg(long, value_name = "WHAT", default_value = "kill")]
    pub orphans: Orphans,
    /// Tell the command the store in TENURE_STORE, password included; otherwise it is removed
    #[arg(long)]
    pub pass_store: bool,
    /// Write events as JSON lines to FILE, to descriptor N (fd:N), or to stderr; never to stdout
    #[arg(
        long,
        value_name = "FILE|fd:N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "fd:2"
    )]
    pub json: Option<JsonTarget>,
    /// No live line while waiting on a terminal
    #[arg(long)]
    pub no_progress: bool,
}

impl From<ElectArgs> for RunArgs {
    /// Leading is running under a lock that is waited for; what happens after a loss is not its matter.
    fn from(args: ElectArgs) -> Self {
        Self {
            name: args.name,
            program: args.program,
            lock: LockArgs {
                wait: Some(Wait::Forever),
                no_wait: false,
                slots: None,
                shared: false,
                owner: args.owner,
                label: args.label,
                meta: Vec::new(),
            },
            ttl: args.ttl,
            if_busy: IfBusy::Fail,
            grace: args.grace,
            on_lost: OnLost::Kill,
            once_per: None,
            count: Count::Success,
            sliding: false,
            offset: None,
            hold_at_least: None,
            hold_at_most: None,
            foreground: args.foreground,
            orphans: args.orphans,
            inherit: false,
            pass_store: args.pass_store,
            exit_busy: None,
            exit_lost: None,
            json: args.json,
            no_progress: args.no_progress,
        }
    }
}
