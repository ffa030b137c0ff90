//! A cache entry is gone, and 500 readers want it at once. The slow loader runs once, not 500 times.
//! Three acts: all is well; the loader fails twice, and each time *one* reader takes over; the process
//! that loads dies, and one takes over when its lease has ended.
//!
//! The cache is this example's own; `tenure::RedisCache` is a ready one.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use stage::{Common, Outcome, Part, Shelf, Stage, loiter, tallied, tally};
use tenure::{Cached, Fence, Tenure};

/// Lets 500 readers miss a cached page at once; the slow loader runs once
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
    /// How many readers in all
    #[arg(long, default_value_t = 500)]
    readers: usize,
    /// In how many processes
    #[arg(long, default_value_t = 5)]
    processes: usize,
}

/// What the readers of a process share.
struct Pages {
    tenure: Tenure,
    cache: Shelf,
    folder: PathBuf,
    act: &'static str,
    key: String,
}

fn main() -> ExitCode {
    stage::play(|options: &Options| &options.common, direct, read)
}

/// What happens, and how often the loader then runs.
const ACTS: [(&str, usize); 3] = [("all is well", 1), ("it fails twice", 3), ("it dies", 2)];
const DOWN: &str = "the source is down";
const PAGE: &str = "<h1>a page</h1>";

#[tokio::main]
async fn read(options: &Options, actor: &Part) -> Outcome {
    let act = ACTS[actor.number / options.processes].0;
    let pages = Arc::new(Pages {
        tenure: tenure::connect(&actor.store).await?,
        cache: Shelf::open(&actor.folder)?,
        folder: actor.folder.clone(),
        act,
        key: actor.name(act),
    });
    let without_lock = options.common.without_lock;
    let readers = (0..options.readers / options.processes).map(|_| {
        let pages = pages.clone();
        tokio::spawn(async move {
            if !without_lock {
                return pages.page().await;
            }
            if let Some(found) = pages.cached()? {
                return Ok(found.value);
            }
            let page = pages.load().await?;
            pages.write(&page, Fence::NONE)?;
            Ok(page)
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        let answer = reader.await?.unwrap_or_else(|error| error.to_string());
        if ![PAGE, DOWN].contains(&answer.as_str()) {
            return Err(answer.into());
        }
    }
    Ok(())
}

impl Pages {
    async fn page(&self) -> Outcome<String> {
        // Somebody dies, and nobody wants to wait long for the end of its lease.
        let ttl = if self.act == "it dies" { 4 } else { 30 };
        let page = self.tenure.coalesce(&self.key);
        let page = page.ttl(Duration::from_secs(ttl));
        let write = |page: String, fence| async move { self.write(&page, fence) };
        let got = page.get(|| async { self.cached() }, || self.load(), write);
        Ok(got.await?.value)
    }

    fn cached(&self) -> Outcome<Option<Cached<String>>> {
        Ok(self.cache.read(self.act)?.map(Cached::fresh))
    }

    fn write(&self, page: &str, fence: Fence) -> Outcome {
        self.cache.write(self.act, page, fence.as_u64())
    }

    async fn load(&self) -> Outcome<String> {
        let loads = tally(&self.folder, self.act)?;
        loiter(Duration::from_millis(200)).await;
        match (self.act, loads) {
            ("it fails twice", 1 | 2) => Err(DOWN.into()),
            ("it dies", 1) => std::process::exit(0), // Nothing is released, and nobody is told.
            _ => Ok(PAGE.to_owned()),
        }
    }
}

fn direct(stage: &mut Stage, options: &Options) -> Outcome {
    // Before all others: when several make a new database of this kind at once, SQLite refuses some of them.
    let _cache = Shelf::open(stage.folder())?;
    for (act, expected) in ACTS {
        stage.start(options.processes)?;
        stage.wait()?;
        let loads = tallied(stage.folder(), act)?;
        let promise = format!("when {act}, nobody loads without need");
        let found = format!("loads: {loads}, needed: {expected}");
        stage.promise(loads == expected, &promise, &found);
    }
    Ok(())
}
