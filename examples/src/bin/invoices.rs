//! Invoice numbers without gaps: 1, 2, 3, …, although processes are killed and paused in the middle.
//!
//! No lock and no sequence can promise that: whoever has got a number and dies leaves a gap. Only
//! *the transaction that writes the invoice* can take the number with it; both are there, or neither.
//!
//! If that were all, no lock would be needed. But an invoice is rendered and signed, which takes long,
//! and its number is in it; nobody wants a transaction that is open all that time. So: the lock for the long part,
//! and a short transaction at its end that goes through only if nobody with a later fence was there.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use stage::{Common, Outcome, Part, Role, Stage, database, loiter};
use tenure::Fence;

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
    CREATE TABLE invoice (number INTEGER, fence INTEGER);";

fn main() -> Outcome<ExitCode> {
    let options = Options::parse();
    match options.common.role()? {
        Role::Director(stage) => direct(stage, &options),
        Role::Actor(Part { folder, store, .. }) => bill(&options, &folder, &store),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn bill(options: &Options, folder: &Path, store: &str) -> Outcome<ExitCode> {
    let tenure = tenure::connect(store).await?;
    let mut database = database(folder)?;
    let mut written = 0;
    while written < options.invoices {
        let done = if options.common.without_lock {
            invoice(&mut database, Fence::NONE).await?
        } else {
            let guard = tenure.lock("invoices").acquire().await?;
            invoice(&mut database, guard.fence()).await?
        };
        written += usize::from(done);
    }
    tenure.settle().await;
    Ok(ExitCode::SUCCESS)
}

/// Writes the next invoice; `false` if somebody with a later fence was there.
async fn invoice(database: &mut Connection, fence: Fence) -> Outcome<bool> {
    let fence = fence.as_u64();
    // The look leaves the fence behind: from here on nobody older gets through.
    let look = "UPDATE counter SET fence = ?1 WHERE fence <= ?1 RETURNING last";
    let last: Option<u64> = database
        .query_row(look, [fence], |row| row.get(0))
        .optional()?;
    let Some(number) = last.map(|last| last + 1) else {
        return Ok(false);
    };
    render(number).await;
    let both = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let next = "UPDATE counter SET last = ?1 WHERE fence = ?2";
    if both.execute(next, [number, fence])? == 0 {
        return Ok(false);
    }
    both.execute("INSERT INTO invoice VALUES (?, ?)", [number, fence])?;
    both.commit()?;
    Ok(true)
}

/// Stands for what takes long, and has the number in it.
async fn render(_number: u64) {
    loiter(Duration::from_millis(4)).await;
}

fn direct(mut stage: Stage, options: &Options) -> Outcome<ExitCode> {
    let database = database(stage.folder())?;
    database.execute_batch(TABLES)?;
    stage.start(options.processes)?;
    for trouble in 0..options.processes {
        match stage.overtake_holder("invoices")? {
            Some(victim) if trouble % 2 == 0 => victim.kill(),
            Some(victim) => victim.resume(), // It has not noticed anything.
            None => {}
        }
    }
    stage.wait(Duration::from_secs(60))?;
    let sql = "SELECT number FROM invoice ORDER BY number";
    let mut query = database.prepare(sql)?;
    let numbers: Vec<u64> = query
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let no_gap = numbers.iter().copied().eq(1..=numbers.len() as u64);
    let what = format!("{} invoices have the numbers 1, 2, 3, …", numbers.len());
    stage.promise(!numbers.is_empty() && no_gap, &what);
    Ok(stage.verdict())
}
