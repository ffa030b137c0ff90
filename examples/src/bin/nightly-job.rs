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
use stage::{Common, Outcome, Part, Role, Stage, loiter, pass_time};
use tenure::{Guard, Once};

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

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let options = Options::parse();
    match options.common.role()? {
        Role::Director(stage) => direct(stage, &options),
        Role::Actor(part) => {
            be_a_machine(&options, &part).await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What cron starts on each machine; the first one's clock is ahead.
async fn be_a_machine(options: &Options, part: &Part) -> Outcome {
    let (number, folder) = (part.number, part.folder.as_path());
    loiter(Duration::from_millis(options.spread * number.min(1) as u64)).await;
    if options.common.without_lock {
        return note(folder, &job(number, folder).await?);
    }
    let tenure = tenure::connect(&part.store).await?;
    let day = Duration::from_secs(24 * 60 * 60);
    let nightly = tenure.once_per("nightly", day).sliding(); // no midnight in the middle
    let nightly = nightly.ttl(Duration::from_secs(2));
    let work = async |_: &Guard| match job(number, folder).await? {
        line if line.starts_with("done") => note(folder, &line),
        failure => Err(failure.into()),
    };
    let line = match nightly.run(work).await? {
        Once::Ran { result, recorded } => {
            recorded?;
            result.err().map(|failure| failure.to_string())
        }
        Once::Counted(run) => Some(format!("skipped {number} {}", run.by.pid())),
    };
    line.map_or(Ok(()), |line| note(folder, &line))
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

fn direct(mut stage: Stage, options: &Options) -> Outcome<ExitCode> {
    stage.start(1)?;
    while !log(stage.folder()).contains("began 0") {
        pass_time(Duration::from_millis(5));
    }
    stage.start(options.machines - 1)?;
    pass_time(Duration::from_millis(options.spread / 4));
    stage.actors()[0].kill();
    stage.wait(Duration::from_secs(60))?;
    let log = log(stage.folder());
    let lines = |word: &str| log.lines().filter(|line| line.starts_with(word)).count();
    let (done, began) = (lines("done"), lines("began"));
    stage.promise(done == 1, &format!("{done} of {began} runs did the job"));
    stage.promise(
        began == 3,
        "it was begun thrice: one died, one failed, one did it",
    );
    let runner = log.lines().find(|line| line.starts_with("done"));
    let runner = runner
        .and_then(|line| line.split(' ').nth(2))
        .unwrap_or("nobody");
    let told = |line: &&str| line.starts_with("skipped") && line.ends_with(runner);
    let told = log.lines().filter(told).count();
    let others = options.machines - 3;
    let what = format!("{told} of {others} others know who did it, and skip it");
    stage.promise(told == others, &what);
    Ok(stage.verdict())
}

fn note(folder: &Path, line: &str) -> Outcome {
    let log = folder.join("log.txt");
    let mut file = OpenOptions::new().append(true).create(true).open(log)?;
    Ok(file.write_all(format!("{line}\n").as_bytes())?)
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log.txt")).unwrap_or_default()
}
