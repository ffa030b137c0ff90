//! The floors of a forum thread: the first answer is floor 1, the next floor 2, whoever writes it.
//!
//! Hundreds of writers look up the highest floor and post on the next one. Between look and post
//! anything may happen, so both are done under a lock *per thread*: threads do not hold each other up.
//!
//! A lock is right here only because the posts live where nothing counts for us: in files, a search
//! index, an object store. If they are rows of one database, let it count: `docs/when-not-to-lock.md`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use stage::{Common, Outcome, Part, Stage, chance, loiter};

/// Lets hundreds of people post in a few forum threads; each post gets the next floor of its thread
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
    /// How many processes
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// How many people write in each of them
    #[arg(long, default_value_t = 25)]
    writers: usize,
    /// How many forum threads they write in
    #[arg(long, default_value_t = 5)]
    threads: u64,
}

fn main() -> ExitCode {
    stage::play(|options: &Options| &options.common, direct, write_posts)
}

#[tokio::main]
async fn write_posts(options: &Options, part: &Part) -> Outcome {
    let tenure = tenure::connect(&part.store).await?;
    let writers = (0..options.writers).map(|writer| {
        let (tenure, folder, process) = (tenure.clone(), part.folder.clone(), part.number);
        let thread = chance(options.threads);
        let name = part.name(&format!("thread/{thread}"));
        let without_lock = options.common.without_lock;
        tokio::spawn(async move {
            loiter(Duration::from_millis(20)).await;
            let text = format!("writer {writer} of process {process}");
            if without_lock {
                return post(&folder, thread, &text).await;
            }
            let lock = tenure.lock(name);
            lock.run(async |_| post(&folder, thread, &text).await)
                .await?
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await??;
    }
    Ok(())
}

/// Looks up the highest floor, and posts on the next one.
async fn post(folder: &Path, thread: u64, text: &str) -> Outcome {
    let file = file(folder, thread);
    let posts = fs::read_to_string(&file).unwrap_or_default();
    let floor = posts.lines().count() + 1;
    loiter(Duration::from_millis(2)).await;
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(format!("{floor}\t{text}\n").as_bytes())?;
    Ok(())
}

fn file(folder: &Path, thread: u64) -> PathBuf {
    folder.join(format!("thread-{thread}.txt"))
}

fn direct(stage: &mut Stage, options: &Options) -> Outcome {
    stage.start(options.processes)?;
    stage.wait()?;
    let (mut posts, mut wrong) = (0, 0);
    for thread in 0..options.threads {
        let text = fs::read_to_string(file(stage.folder(), thread)).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            posts += 1;
            let floor = line.split('\t').next().and_then(|floor| floor.parse().ok());
            wrong += usize::from(floor != Some(index + 1));
        }
    }
    let all = options.processes * options.writers;
    stage.promise(
        posts == all,
        "no post is lost",
        &format!("{posts} of {all} are there"),
    );
    let found = format!("{wrong} posts have a wrong floor");
    stage.promise(wrong == 0, "floors are 1, 2, 3, … in every thread", &found);
    Ok(())
}
