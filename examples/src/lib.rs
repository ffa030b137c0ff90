//! What the examples share: the options that each has, what one of their processes has to know, nasty timing, and a
//! limit to the whole. How to lock is in the examples; what is done to them is in `stage.rs` and `overtake.rs`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "examples tell what they do"
)]

mod actor;
mod overtake;
mod redis;
mod shelf;
mod stage;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use actor::Actor;
pub use overtake::Resource;
pub use redis::Redis;
pub use shelf::{Shelf, tallied, tally};
pub use stage::Stage;
pub use wire::Wire;

/// Whatever can go wrong in an example.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Whatever goes wrong in an example ends it.
pub type Outcome<T = ()> = Result<T, Fault>;

/// Options that every example has; `#[command(flatten)]` them.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Where the locks live: sqlite:PATH, redis://HOST, …; if nothing is said, in a store that is thrown away.
    /// Every run uses names of its own there.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Do the same without the lock, and see the damage
    #[arg(long)]
    pub without_lock: bool,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,
    /// This process is one of several, which the example itself has started
    #[arg(long, hide = true)]
    actor: Option<usize>,
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
    /// What the names of all locks of this run begin with
    #[arg(long, hide = true)]
    run: Option<String>,
}

/// What one of the processes has to know.
#[derive(Debug)]
pub struct Part {
    /// Which of them it is, from 0.
    pub number: usize,
    /// Where the shared files are.
    pub folder: PathBuf,
    /// Where the locks live.
    pub store: String,
    run: String,
}

impl Part {
    /// A name for a lock that no other run of an example uses, nor anybody else.
    pub fn name(&self, of: &str) -> String {
        format!("{}{of}", self.run)
    }
}

/// Reads the options; lets the process that was started by hand direct, and those that it starts act. Fails with 1 if a
/// promise was broken, with 2 if it did not come to that.
pub fn play<O: clap::Parser>(
    common: fn(&O) -> &Common,
    direct: fn(&mut Stage, &O) -> Outcome,
    act: fn(&O, &Part) -> Outcome,
) -> ExitCode {
    let options = O::parse();
    let common = common(&options);
    let ended = match common.part() {
        Some(part) => {
            actor::end_with_the_director();
            act(&options, &part).map(|()| ExitCode::SUCCESS)
        }
        None => common.direct(|stage| direct(stage, &options)),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

impl Common {
    fn part(&self) -> Option<Part> {
        Some(Part {
            number: self.actor?,
            folder: self.folder.clone()?,
            store: self.store.clone()?,
            run: self.run.clone()?,
        })
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "how long an example may take is no lease"
    )]
    fn direct(&self, direct: impl FnOnce(&mut Stage) -> Outcome) -> Outcome<ExitCode> {
        let mut stage = Stage::new(self.store.clone())?;
        if self.store.is_some() {
            // What is wrong with it is told once, and not by every process.
            let client = stage.client()?;
            client.block_on(client.client().list(&stage.name("")))?;
        }
        if !self.without_lock {
            println!(
                "the locks of this run have names that begin with {}",
                stage.name("")
            );
        }
        let _ = LIMIT.set((Instant::now(), Duration::from_secs(self.limit)));
        direct(&mut stage)?;
        Ok(stage.verdict())
    }
}

/// When the director began, and how long it may take in all.
static LIMIT: OnceLock<(Instant, Duration)> = OnceLock::new();

/// A database of the example's own, in the shared folder: the resource that the lock protects.
///
/// # Errors
/// If it cannot be opened.
pub fn database(folder: &Path) -> Outcome<rusqlite::Connection> {
    let database = rusqlite::Connection::open(folder.join("shop.db"))?;
    database.busy_timeout(Duration::from_secs(30))?;
    database.pragma_update(None, "journal_mode", "wal")?;
    database.pragma_update(None, "synchronous", "off")?;
    Ok(database)
}

/// A random number below `bound`.
pub fn chance(bound: u64) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(()) % bound.max(1)
}

/// Stops somewhere between now and `longest`: the nasty timing of a busy machine.
#[allow(
    clippy::disallowed_methods,
    reason = "an example loiters on purpose; no lease depends on it"
)]
pub async fn loiter(longest: Duration) {
    let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
    tokio::time::sleep(Duration::from_micros(chance(micros))).await;
}

/// [`loiter`] for a director, who has no runtime.
///
/// # Errors
/// If the whole takes too long; everybody is sent home on the way out.
#[allow(
    clippy::disallowed_methods,
    reason = "an example loiters on purpose; no lease depends on it"
)]
pub fn pass_time(duration: Duration) -> Outcome {
    let Some((began, limit)) = LIMIT.get() else {
        std::thread::sleep(duration);
        return Ok(());
    };
    let left = limit.saturating_sub(began.elapsed());
    std::thread::sleep(duration.min(left));
    if left > duration {
        return Ok(());
    }
    let limit = limit.as_secs();
    Err(format!("not done after {limit} s: given up (--limit says how long to wait)").into())
}
