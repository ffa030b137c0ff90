//! A nightly job in the crontab of thirty machines: one of them runs it.
//!
//! A lock alone is not enough: the job is short, and a machine whose clock is behind comes when it is over, finds
//! the lock free, and runs it again. So the run is *counted* for the day. Nasty on purpose: the first machine is
//! killed in the middle of the job, the second finds the disk full. Neither counts; the next one does it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use stage::{Common, Outcome, Part, Stage, loiter, pass_time};
use tenure::{Guard, Once};

/// Starts the same job on 30 machines; it is done once, although one dies and one fails
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
    /// How many machines
    #[arg(long, default_value_t = 30)]
    machines: usize,
    /// By how much their clocks differ, in milliseconds
    #[arg(long, default_value_t = 2000)]
    spread: u64,
}

fn main() -> ExitCode {
    stage::play(|options: &Options| &options.common, direct, be_a_machine)
}

/// What cron starts on each machine; the first one's clock is ahead.
#[tokio::main]
async fn be_a_machine(options: &Options, part: &Part) -> Outcome {
    let (number, folder) = (part.number, part.folder.as_path());
    loiter(Duration::from_millis(options.spread * number.min(1) as u64)).await;
    if options.common.without_lock {
        return note(folder, &job(number, folder).await?);
    }
    let tenure = tenure::connect(&part.store).await?;
    let day = Duration::from_secs(600); // a short one: that it was counted stays in the store so long
    let nightly = tenure.once_per(part.name("nightly"), day).sliding(); // no midnight in the middle
    // The first one is killed, and nobody wants to wait long for the end of its lease.
    let ttl = if number == 0 { 2 } else { 30 };
    let nightly = nightly.ttl(Duration::from_secs(ttl));
    let work = async |_: &Guard| {
        let line = job(number, folder).await?;
        note(folder, &line)?; // before the next one can begin
        line.starts_with("done")
            .then_some(())
            .ok_or_else(|| line.into())
    };
    match nightly.run::<(), stage::Fault>(work).await? {
        Once::Ran { recorded, .. } => Ok(recorded?),
        Once::Counted(run) => note(folder, &format!("skipped {number} {}", run.by.pid())),
    }
}

/// Says how it went.
async fn job(number: usize, folder: &Path) -> Outcome<String> {
    let disk_was_full = log(folder).contains("failed");
    note(folder, &format!("began {number}"))?;
    if number == 0 {
        std::future::pending::<()>().await; // until it is killed
    }
    loiter(Duration::from_millis(20)).await;
    let how = if disk_was_full { "done" } else { "failed" };
    Ok(format!("{how} {number} {}", std::process::id()))
}

fn direct(stage: &mut Stage, options: &Options) -> Outcome {
    stage.start(1)?;
    while !log(stage.folder()).contains("began 0") {
        pass_time(Duration::from_millis(5))?;
    }
    stage.actors()[0].kill();
    stage.start(options.machines - 1)?;
    stage.wait()?;
    let log = log(stage.folder());
    let lines = |word: &str| log.lines().filter(|line| line.starts_with(word)).count();
    let (done, began) = (lines("done"), lines("began"));
    stage.promise(
        done == 1,
        "the job is done once",
        &format!("runs that did it: {done}"),
    );
    let found = format!("runs that began: {began}");
    stage.promise(
        began == 3,
        "it is begun thrice (one dies, one fails, one does it)",
        &found,
    );
    let runner = log.lines().find(|line| line.starts_with("done"));
    let runner = runner
        .and_then(|line| line.split(' ').nth(2))
        .unwrap_or("nobody");
    let told = |line: &&str| line.starts_with("skipped") && line.ends_with(runner);
    let told = log.lines().filter(told).count();
    let others = options.machines - 3;
    let found = format!("{told} of {others} do");
    stage.promise(
        told == others,
        "the others skip it and know who did it",
        &found,
    );
    Ok(())
}

fn note(folder: &Path, line: &str) -> Outcome {
    let log = folder.join("log.txt");
    let mut file = OpenOptions::new().append(true).create(true).open(log)?;
    Ok(file.write_all(format!("{line}\n").as_bytes())?)
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log.txt")).unwrap_or_default()
}
