//! The grammar of `tenure run`.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration::{self, Wait};
use crate::exit;
use crate::job::{Signal, signal_named};

/// What `tenure run --help` begins with.
pub(super) const ABOUT: &str = "\
Run a command while holding a lock.

The lease is renewed for as long as the command runs. If it cannot be renewed, the command and \
everything in its process group is ended before anybody else can get the lock. Processes that leave \
the group (setsid, daemons) are not covered.

tenure itself never writes to stdout here, and says nothing on stderr when all is well, \
except whom it waits for and, on a terminal, which store it uses if none was chosen (-q: neither).";

/// `tenure run NAME [OPTIONS] [--] COMMAND...`
#[derive(Debug, Args)]
#[command(
    after_help = "`tenure run --help` explains every option and lists the exit codes.",
    after_long_help = exit::help(exit::Of::Run),
    override_usage = "tenure run [OPTIONS] NAME [--] COMMAND [ARGUMENT]...\n       \
                      tenure run [OPTIONS] NAME -c STRING",
)]
pub struct RunArgs {
    /// The name of the lock: what must not happen twice at once
    pub name: String,
    /// What to run, and how.
    #[command(flatten)]
    pub job: JobArgs,
    /// What lock, and how long to wait for it.
    #[command(flatten)]
    pub lock: LockArgs,
    /// Length of the lease, renewed every third of it; at least 1s
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse_ttl)]
    pub ttl: Duration,
    /// If busy: fail (exit 75), or skip the command quietly (exit 0)
    ///
    /// Skips only what is known to be busy. While the store recovers from a loss nobody knows, and that is an
    /// error (T0307, exit 75), also with -q; so it is if several race for it on a store without a queue and nobody wins (T0308).
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub if_busy: IfBusy,
    /// If the lease is lost: kill, signal:NAME (USR1 for example), or warn
    ///
    /// With anything but kill the command keeps running while somebody else may hold the lock.
    #[arg(long, value_name = "WHAT", default_value = "kill")]
    pub on_lost: OnLost,
    /// Skip the command if it was run in this period, here or on any other machine
    ///
    /// Exits as if busy (75, or 0 with --if-busy skip) and says who ran it, when, and how it ended. By the
    /// store's clock; a period begins at whole multiples of its length (1d: at midnight UTC), so
    /// do not start commands just then.
    /// A store that loses its data forgets what was run.
    ///
    /// Whoever comes while it is being run waits for the end of that run, also with --if-busy skip, and runs it if that one
    /// fails; with --no-wait it does not wait.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        conflicts_with_all = ["shared", "slots", "hold_at_least", "inherit"]
    )]
    pub once_per: Option<Duration>,
    /// What counts as run: a success (exit code 0), or every start
    ///
    /// Counting successes, a command that fails is run again by the next machine that comes, and so is one that
    /// succeeded but died before it could say so. Counting starts, nobody makes up for one that fails or dies.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "success",
        requires = "once_per"
    )]
    pub count: Count,
    /// The period begins with the run that counts
    #[arg(long, requires = "once_per", conflicts_with = "offset")]
    pub sliding: bool,
    /// Periods begin this much later: with 1d and 6h at 6:00 UTC
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "once_per")]
    pub offset: Option<Duration>,
    /// Keep the lock for at least this long, even if the command ends sooner
    ///
    /// tenure does not wait for it: the lease stays in the store and ends by itself.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub hold_at_least: Option<Duration>,
    /// End the command after this time (exit 124)
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub hold_at_most: Option<Duration>,
    /// If a parent already holds NAME: run under its lock instead of refusing
    ///
    /// Asks the parent's store whether it still does. The parent says in TENURE_STORE which that is, unless there is
    /// a password in its URL: then give the parent --pass-store, or this command --store.
    #[arg(long)]
    pub inherit: bool,
    /// Exit code instead of 75
    #[arg(long, value_name = "CODE")]
    pub exit_busy: Option<u8>,
    /// Exit code instead of 79
    #[arg(long, value_name = "CODE")]
    pub exit_lost: Option<u8>,
}

/// What is run while the lock is held, and how: shared by `run` and `elect`.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// The command and its arguments; it starts at the first word after NAME that is no option
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        required_unless_present = "shell",
        conflicts_with = "shell"
    )]
    pub command: Vec<OsString>,
    /// Run STRING through /bin/sh -c; without it no shell is involved
    #[arg(short = 'c', value_name = "STRING")]
    pub shell: Option<OsString>,
    /// Time between TERM and KILL when the command must end [default: 10s, at most a third of the ttl]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub grace: Option<Duration>,
    /// Keep the command in tenure's own process group
    ///
    /// Only the command's own process is then ended on loss, not what it started.
    #[arg(long)]
    pub foreground: bool,
    /// What to do with processes of the group that are left when the command has ended
    #[arg(long, value_name = "WHAT", default_value = "kill")]
    pub orphans: Orphans,
    /// Tell the command the store in TENURE_STORE even if there is a password in its URL; otherwise such a URL is
    /// removed
    #[arg(long)]
    pub pass_store: bool,
    /// Write events as JSON lines to FILE, to descriptor N (fd:N), or to stderr; never to stdout
    ///
    /// The last line is {"event":"end","outcome":…}. On stderr the events replace all other messages.
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

/// In which way, for whom, and how long to wait: shared by `run` and `acquire`.
#[derive(Clone, Debug, Args)]
pub struct LockArgs {
    /// Wait at most this long; `forever` and 0 are allowed [default: forever]
    #[arg(long, value_name = "DURATION", conflicts_with = "no_wait", value_parser = duration::parse_wait)]
    pub wait: Option<Wait>,
    /// Do not wait
    #[arg(long)]
    pub no_wait: bool,
    /// Let up to N hold the lock at once (a semaphore; everybody must say the same N)
    #[arg(long, value_name = "N", conflicts_with = "shared", value_parser = parse_slots)]
    pub slots: Option<NonZeroU32>,
    /// Share the lock with others who say --shared (a read lock); excludes those who do not
    #[arg(long)]
    pub shared: bool,
    /// Who asks.
    #[command(flatten)]
    pub party: PartyArgs,
}

/// What others read about who asks: shared by all that take a lock.
#[derive(Clone, Debug, Args)]
pub struct PartyArgs {
    /// Who asks.
    #[arg(
        long,
        value_name = "TEXT",
        help = "Who you are, for those who wait or look [default: user@host]"
    )]
    pub owner: Option<String>,
    /// What for, for those who wait or look
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// More of the same as key=value; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_meta)]
    pub meta: Vec<String>,
}

/// What to do when the lock is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IfBusy {
    /// Exit 75
    Fail,
    /// Exit 0 without running the command
    Skip,
}

/// Which runs count for `--once-per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Count {
    /// Those that end with exit code 0
    Success,
    /// All that start
    Start,
}

/// What to do with processes that the command left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Orphans {
    /// TERM, then KILL after the grace time, then release
    Kill,
    /// Hold the lock until they have ended
    Wait,
    /// Release the lock and let them run
    Release,
}

/// What to do when the lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLost {
    /// End the command before anybody else can get the lock.
    Kill,
    /// Send this signal and let it run.
    Signal(Signal),
    /// Say so and let it run.
    Warn,
}

impl FromStr for OnLost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "kill" => Ok(Self::Kill),
            "warn" => Ok(Self::Warn),
            _ => {
                let name = text
                    .strip_prefix("signal:")
                    .ok_or("say kill, warn or signal:USR1")?;
                signal_named(name).map(Self::Signal).ok_or_else(|| {
                    format!("unknown signal '{name}': known are HUP INT QUIT USR1 USR2 TERM CONT")
                })
            }
        }
    }
}

/// Where JSON events go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonTarget {
    /// An open descriptor.
    Descriptor(i32),
    /// A file that is created or appended to.
    File(PathBuf),
}

impl FromStr for JsonTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("fd:") {
            None if text.is_empty() => Err("say --json=FILE or --json=fd:3".into()),
            None => Ok(Self::File(text.into())),
            Some("1") => Err("stdout belongs to the command: use fd:2, fd:3 or a file".into()),
            Some(number) => match number.parse() {
                Ok(number) if number >= 2 => Ok(Self::Descriptor(number)),
                _ => Err("a descriptor is a number from 2 on: fd:3".into()),
            },
        }
    }
}

fn parse_slots(text: &str) -> Result<NonZeroU32, String> {
    text.parse()
        .map_err(|_| "say a number of at least 1, --slots 4 for example".to_owned())
}

fn parse_meta(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.is_empty() => Ok(text.to_owned()),
        _ => Err("say key=value".into()),
    }
}
