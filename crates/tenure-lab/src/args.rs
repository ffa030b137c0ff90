//! What can be typed after `tenure lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::chaos::{FaultKind, Shape};
use crate::worker::WorkerArgs;

/// The arguments of `tenure lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
    /// What `--store` says, which `tenure` has for all its commands.
    #[arg(skip)]
    pub store: Option<String>,
}

/// What the lab can do.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List what can go wrong with a lock
    List,
    /// Play what goes wrong, with a naive lock and with ours, and show what happened
    ///
    /// `run A3`, `run A3 A14` or `run --all`. Exit code 0: the naive lock failed as described and ours did not.
    /// 1: something went another way. 69: there is no redis-server. 73: the report cannot be written.
    Run(RunArgs),
    /// Take part in a play
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Judge a history: what processes wrote down, one event per line
    ///
    /// Says of each question, C1 to C7, how much it judged, and what it did not, and why. What lines a
    /// history has is told in docs/histories.md; those of another lock can be judged as well.
    ///
    /// Exit code 0: something was judged, and there is no violation. 1: a violation, shown with the
    /// smallest piece of history that proves it. 65: the file is no history, or nothing in it could be
    /// judged. 66: there is no such file.
    Check(CheckArgs),
    /// Break a store at random while processes use its locks, and judge what happened
    ///
    /// Everything is drawn from the seed beforehand. Plan and history are kept if something is wrong
    /// (always with --keep FOLDER), and --plan carries the same plan out again. Exit code 0: no violation.
    /// 1: a violation, shown with the smallest piece of history that proves it, or nothing was proven. 69: there
    /// is no redis-server, or the store cannot be reached. 65, 66: the plan is none, or there is no such file.
    /// 70: the run broke off. 73: it cannot be kept there. 130: it was told to stop.
    Chaos(ChaosArgs),
    /// One of the processes that `chaos` breaks
    #[command(hide = true)]
    ChaosWorker(ChaosWorkerArgs),
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
    /// The history; `-` is standard input
    pub file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `tenure lab run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Which: A1 to A20, as `list` lists them; or --all
    #[arg(value_name = "ANOMALY")]
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

/// The arguments of `tenure lab chaos`.
#[derive(Debug, Args)]
pub struct ChaosArgs {
    /// What to start and break: redis, sentinel, cluster, redlock[:3|:5] or sqlite
    ///
    /// Or a store of yours, with --store: then only processes are broken. Names begin with
    /// `tenure-lab-`.
    #[arg(long, value_name = "SHAPE", value_parser = Shape::parse)]
    pub start: Option<Shape>,
    /// What everything random is drawn from; another one each time if nothing is said
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many things to break
    #[arg(long, value_name = "N", conflicts_with = "length")]
    pub steps: Option<u32>,
    /// How long to break things, `60s` or `2m`
    #[arg(
        id = "length",
        long = "for",
        value_name = "DURATION",
        value_parser = duration,
        default_value = "30s"
    )]
    pub length: Duration,
    /// What to break; if nothing is said, whatever leaves all promises standing
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub faults: Vec<FaultKind>,
    /// Carry out this plan instead of drawing one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "steps", "faults"])]
    pub plan: Option<PathBuf>,
    /// Keep plan and history here, also if all is well; a folder with those of another run is refused
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The arguments of a worker process.
#[derive(Debug, Args)]
pub struct ChaosWorkerArgs {
    /// Who started it.
    #[arg(long)]
    pub parent: u32,
    /// Its number.
    #[arg(long)]
    pub process: u32,
    /// The store.
    #[arg(long)]
    pub url: String,
    /// Where to write down what happens.
    #[arg(long)]
    pub history: PathBuf,
    /// Where the protected resource listens.
    #[arg(long)]
    pub resource: PathBuf,
    /// What its choices are drawn from.
    #[arg(long)]
    pub seed: u64,
    /// How many tasks.
    #[arg(long)]
    pub tasks: u32,
    /// How long each waits for each lock at the end.
    #[arg(long)]
    pub patience_ms: u64,
    /// Whether the store has semaphores.
    #[arg(long)]
    pub permits: bool,
}

/// A whole number of seconds or minutes: `90s`, `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.len() - usize::from(!text.is_empty()));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        _ => return Err("write a whole number of seconds or minutes: 90s, 2m".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "not a number".to_owned())?;
    match number.checked_mul(seconds) {
        Some(0) => Err("nothing can be broken in no time".to_owned()),
        Some(seconds) => Ok(Duration::from_secs(seconds)),
        None => Err("that is too long".to_owned()),
    }
}
