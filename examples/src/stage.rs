//! [`Stage`]: several processes, what they share, and whether what was promised to them was kept.

use std::cell::OnceCell;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tempfile::TempDir;
use tenure::blocking;

use crate::actor::Actor;
use crate::redis::Redis;
use crate::wire::Wire;
use crate::{Outcome, chance, pass_time};

/// A folder for shared files, a store for locks, and processes that work on them.
#[derive(Debug)]
pub struct Stage {
    // In this order: they are gone before their server and their folder are.
    pub(crate) actors: Vec<Actor>,
    wires: Vec<Wire>,
    redis: Option<Redis>,
    folder: TempDir,
    store: Option<String>,
    run: String,
    /// A look at the store, from the first time on.
    client: OnceCell<blocking::Tenure>,
    broken: usize,
}

impl Stage {
    pub(crate) fn new(store: Option<String>) -> Outcome<Self> {
        Ok(Self {
            actors: Vec::new(),
            wires: Vec::new(),
            redis: None,
            folder: tempfile::tempdir()?,
            store,
            run: format!("example-{:08x}/", chance(1 << 32)),
            client: OnceCell::new(),
            broken: 0,
        })
    }

    /// Where the shared files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// As [`Part::name`](crate::Part::name).
    pub fn name(&self, of: &str) -> String {
        format!("{}{of}", self.run)
    }

    /// Where the locks live.
    pub(crate) fn store(&self) -> String {
        let local = || format!("sqlite:{}", self.folder().join("locks.db").display());
        self.store.clone().unwrap_or_else(local)
    }

    /// The director's own client of that store.
    pub(crate) fn client(&self) -> Outcome<blocking::Tenure> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let client = blocking::connect(&self.store())?;
        Ok(self.client.get_or_init(|| client).clone())
    }

    /// Starts as many processes of this same program, numbered on from those that there are.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn start(&mut self, count: usize) -> Outcome {
        for _ in 0..count {
            self.start_on(&self.store())?;
        }
        Ok(())
    }

    /// The same, each with a line of its own to the store, which can be cut, if that is one Redis server. If no store was
    /// named, one is started.
    ///
    /// # Errors
    /// If something cannot be started.
    pub fn start_wired(&mut self, count: usize) -> Outcome {
        if self.store.is_none() {
            let redis = Redis::start(self.folder())?;
            self.store = Some(redis.url());
            self.redis = Some(redis);
        }
        for _ in 0..count {
            let store = self.store();
            match Wire::instead_of(&store)? {
                Some((wire, url)) => {
                    self.start_on(&url)?;
                    self.wires.push(wire);
                }
                None => self.start_on(&store)?,
            }
        }
        Ok(())
    }

    /// The line of a process that was started with one, if it has one.
    pub fn wire(&self, actor: usize) -> Option<&Wire> {
        self.wires.get(actor)
    }

    /// The processes, in order.
    pub fn actors(&mut self) -> &mut [Actor] {
        &mut self.actors
    }

    /// Waits until all have ended by themselves or were killed.
    ///
    /// # Errors
    /// If one fails, or the whole takes too long.
    pub fn wait(&mut self) -> Outcome {
        for actor in &mut self.actors {
            while !actor.has_ended()? {
                pass_time(Duration::from_millis(5))?;
            }
        }
        Ok(())
    }

    /// Says whether a promise was kept, and what was found.
    pub fn promise(&mut self, kept: bool, promise: &str, found: &str) {
        let verdict = if kept { "kept  " } else { "BROKEN" };
        println!("{verdict}  {promise}: {found}");
        self.broken += usize::from(!kept);
    }

    /// Says whether somebody who came too late was refused.
    pub fn promise_refusals(&mut self, late: u64) {
        let found = format!("{late} late writes were refused");
        self.promise(late > 0, "who was overtaken writes nothing", &found);
    }

    /// Fails if a promise was broken.
    pub(crate) fn verdict(self) -> ExitCode {
        if self.broken == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn start_on(&mut self, store: &str) -> Outcome {
        let number = self.actors.len();
        let actor = Actor::start(number, self.folder.path(), store, &self.run)?;
        self.actors.push(actor);
        Ok(())
    }
}
