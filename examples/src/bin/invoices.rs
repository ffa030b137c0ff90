//! Invoice numbers without gaps: 1, 2, 3, …, although processes are killed and paused in the middle.
//!
//! No lock and no sequence can promise that: whoever has got a number and dies leaves a gap. Only
//! *the transaction that writes the invoice* can take the number with it; both are there, or neither.
//!
//! If that were all, no lock would be needed. But an invoice is rendered and signed, which takes long,
//! and its number is in it; nobody wants a transaction that is open all that time. So: the lock for the long part,
//! and a short transaction at its end that goes through only if nobody with a later fence was there.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use stage::{Common, Outcome, Part, Resource, Stage, database, loiter};
use tenure::Fence;

/// Numbers invoices 1, 2, 3, … without a gap, while processes are killed and paused in the middle
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
    /// How many invoices each process writes
    #[arg(long, default_value_t = 60)]
    invoices: usize,
    /// How many processes
    #[arg(long, default_value_t = 6)]
    processes: usize,
}

const TABLES: &str = "CREATE TABLE counter (last INTEGER, fence INTEGER);
    INSERT INTO counter VALUES (0, 0);
    CREATE TABLE invoice (number INTEGER, fence INTEGER);
    CREATE TABLE refused (fence INTEGER);";

fn main() -> ExitCode {
    stage::play(|options: &Options| &options.common, direct, bill)
}

#[tokio::main(flavor = "current_thread")]
async fn bill(options: &Options, part: &Part) -> Outcome {
    let tenure = tenure::connect(&part.store).await?;
    let mut database = database(&part.folder)?;
    let mut written = 0;
    while written < options.invoices {
        // The first one takes long, and its process is sure to be caught at it.
        let pace = Duration::from_millis(if written == 0 { 400 } else { 4 });
        let done = if options.common.without_lock {
            invoice(&mut database, pace, Fence::NONE).await?
        } else {
            let guard = tenure.lock(part.name("invoices")).acquire().await?;
            invoice(&mut database, pace, guard.fence()).await?
        };
        written += usize::from(done);
    }
    tenure.settle().await;
    Ok(())
}

/// Writes the next invoice; `false` if somebody with a later fence was there.
async fn invoice(database: &mut Connection, pace: Duration, fence: Fence) -> Outcome<bool> {
    let fence = fence.as_u64();
    // The look leaves the fence behind: from here on nobody older gets through.
    let look = "UPDATE counter SET fence = ?1 WHERE fence <= ?1 RETURNING last";
    let last: Option<u64> = database
        .query_row(look, [fence], |row| row.get(0))
        .optional()?;
    let Some(number) = last.map(|last| last + 1) else {
        return Ok(false);
    };
    render(number, pace).await;
    let both = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let next = "UPDATE counter SET last = ?1 WHERE fence = ?2";
    let in_time = both.execute(next, [number, fence])? == 1;
    if in_time {
        both.execute("INSERT INTO invoice VALUES (?, ?)", [number, fence])?;
    } else {
        both.execute("INSERT INTO refused VALUES (?)", [fence])?;
    }
    both.commit()?;
    Ok(in_time)
}

/// Stands for what takes long, and has the number in it.
async fn render(_number: u64, pace: Duration) {
    loiter(pace).await;
}

fn direct(stage: &mut Stage, options: &Options) -> Outcome {
    let database = database(stage.folder())?;
    database.execute_batch(TABLES)?;
    let counter = Resource {
        database: &database,
        table: "counter",
        in_the_middle: "fence NOT IN (SELECT fence FROM invoice)",
    };
    stage.start(options.processes)?;
    let locked = !options.common.without_lock;
    for trouble in 0..options.processes * usize::from(locked) {
        match stage.overtake_holder("invoices", &counter)? {
            Some(victim) if trouble % 2 == 1 => victim.kill(),
            Some(victim) => victim.resume(), // It has not noticed anything.
            None => break,
        }
    }
    stage.wait()?;
    let count = |query: &str| database.query_row(query, [], |row| row.get::<_, u64>(0));
    let all = count("SELECT count(*) FROM invoice")?;
    let numbers = count("SELECT count(DISTINCT number) FROM invoice")?;
    let last = count("SELECT ifnull(max(number), 0) FROM invoice")?;
    let found = format!("{all} invoices have {numbers} numbers, of which the last is {last}");
    let kept = all > 0 && all == numbers && all == last;
    stage.promise(kept, "numbers are 1, 2, 3, … without a gap", &found);
    if locked {
        stage.promise_refusals(count("SELECT count(*) FROM refused")?);
    }
    Ok(())
}
