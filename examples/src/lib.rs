//! What the examples share: the options that each has, a stage with several processes on it that can be
//! killed, paused and overtaken, nasty timing, and a verdict. How to lock is in the examples.

#![allow(clippy::print_stdout, reason = "examples tell what they do")]

mod actor;
mod redis;
mod shelf;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tempfile::TempDir;

pub use actor::Actor;
pub use redis::Redis;
pub use shelf::{Shelf, tallied, tally};
pub use wire::Wire;

/// Whatever goes wrong in an example ends it.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Options that every example has; `#[command(flatten)]` them.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Where the locks live: sqlite:PATH, redis://HOST, … [default: a SQLite file that is thrown away]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Do the same without the lock, and see the damage
    #[arg(long)]
    pub without_lock: bool,
    /// This process is one of several, which the example itself has started
    #[arg(long, hide = true)]
    actor: Option<usize>,
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
}

/// What this process is.
#[derive(Debug)]
pub enum Role {
    /// The one that was started by hand: it starts the others, disturbs them, and checks.
    Director(Stage),
    /// One of the others.
    Actor(Part),
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
}

/// A folder for shared files, a store for locks, and processes that work on them.
#[derive(Debug)]
pub struct Stage {
    // Before the folder: they are gone before it is.
    actors: Vec<Actor>,
    folder: TempDir,
    store: String,
    broken: usize,
}

impl Common {
    /// What this process is. An actor ends itself when its director is gone.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub fn role(&self) -> Outcome<Role> {
        if let (Some(number), Some(folder), Some(store)) = (self.actor, &self.folder, &self.store) {
            actor::end_with_the_director();
            let (folder, store) = (folder.clone(), store.clone());
            return Ok(Role::Actor(Part {
                number,
                folder,
                store,
            }));
        }
        let folder = tempfile::tempdir()?;
        let local = || format!("sqlite:{}", folder.path().join("locks.db").display());
        Ok(Role::Director(Stage {
            store: self.store.clone().unwrap_or_else(local),
            folder,
            actors: Vec::new(),
            broken: 0,
        }))
    }
}

impl Stage {
    /// Where the shared files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the locks live.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Starts as many processes of this same program, numbered on from those that there are.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn start(&mut self, count: usize) -> Outcome {
        for _ in 0..count {
            let number = self.actors.len();
            let actor = Actor::start(number, self.folder.path(), &self.store)?;
            self.actors.push(actor);
        }
        Ok(())
    }

    /// The processes, in order.
    pub fn actors(&mut self) -> &mut [Actor] {
        &mut self.actors
    }

    /// Freezes whichever process holds this lock, in the middle of what it does, until somebody else has
    /// got the lock. (Its lease is ended by force, so that nobody has to wait for its end.) `None` if
    /// nobody holds it for long enough to be caught.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub fn overtake_holder(&mut self, name: &str) -> Outcome<Option<&mut Actor>> {
        let tenure = tenure::blocking::connect(&self.store)?;
        for _ in 0..200 {
            pass_time(Duration::from_millis(1));
            let Ok((_, seen)) = tenure.block_on(tenure.client().inspect(name)) else {
                continue;
            };
            let Some(holder) = seen.holders.into_iter().next() else {
                continue;
            };
            let mut actors = self.actors.iter();
            let pid = holder.party.pid();
            let (Some(index), Some(owner), Some(fence)) = (
                actors.position(|actor| actor.id() == pid),
                holder.owner,
                holder.fence,
            ) else {
                continue;
            };
            let actor = &mut self.actors[index];
            actor.pause();
            let lease = tenure::Lease { owner, fence };
            let end = tenure.client().force_release(name, lease, "overtaken");
            let ended = tenure.block_on(async {
                tokio::select! {
                    ended = end => ended.is_ok(),
                    // It was stopped in the middle of writing to the store, and blocks it for all.
                    () = tenure.client().clock().sleep(Duration::from_millis(300)) => false,
                }
            });
            if ended {
                pass_time(Duration::from_millis(50));
                return Ok(Some(&mut self.actors[index]));
            }
            actor.resume();
        }
        Ok(None)
    }

    /// Waits until all have ended by themselves or were killed.
    ///
    /// # Errors
    /// If one fails, or has not ended after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Outcome {
        for actor in &mut self.actors {
            actor.wait(limit)?;
        }
        Ok(())
    }

    /// Says whether a promise was kept.
    pub fn promise(&mut self, kept: bool, what: &str) {
        println!("{}  {what}", if kept { "kept  " } else { "BROKEN" });
        self.broken += usize::from(!kept);
    }

    /// Fails if a promise was broken.
    pub fn verdict(self) -> ExitCode {
        if self.broken == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

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
#[allow(
    clippy::disallowed_methods,
    reason = "an example loiters on purpose; no lease depends on it"
)]
pub fn pass_time(duration: Duration) {
    std::thread::sleep(duration);
}
