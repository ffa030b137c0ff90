//! A flash sale: 100 items, 1,000 buyers, 8 processes. Exactly 100 are sold, although holders of the
//! lock are killed, or paused until somebody else holds it.
//!
//! The lock alone cannot promise that: a paused holder wakes up and goes on. The database refuses its
//! write, because it has seen a later fence. `--atomic` does the same with one statement and no
//! lock, which is better here: `docs/when-not-to-lock.md` says why.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusqlite::{Connection, OptionalExtension, params};
use stage::{Common, Outcome, Part, Role, Stage, database, loiter};
use tenure::Fence;

#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
    /// How many items there are
    #[arg(long, default_value_t = 100)]
    items: u64,
    /// How many want one
    #[arg(long, default_value_t = 1_000)]
    buyers: usize,
    /// In how many processes
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// Decrement the stock with one statement, without any lock
    #[arg(long)]
    atomic: bool,
    /// Lock, but do not check fences
    #[arg(long)]
    without_fence: bool,
}

const TABLES: &str = "CREATE TABLE stock (remaining INTEGER, fence INTEGER);
    CREATE TABLE sold (buyer TEXT); CREATE TABLE refused (fence INTEGER);";

fn main() -> Outcome<ExitCode> {
    let options = Options::parse();
    match options.common.role()? {
        Role::Director(stage) => direct(stage, &options),
        Role::Actor(Part { folder, store, .. }) => sell(&options, &folder, &store),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn sell(options: &Options, folder: &Path, store: &str) -> Outcome<ExitCode> {
    let tenure = tenure::connect(store).await?;
    let database = database(folder)?;
    for number in 0..options.buyers / options.processes {
        let buyer = format!("{}-{number}", std::process::id());
        if options.atomic {
            let left = "UPDATE stock SET remaining = remaining - 1 WHERE remaining > 0";
            let sale = database.unchecked_transaction()?;
            if sale.execute(left, [])? == 1 {
                sale.execute("INSERT INTO sold VALUES (?)", [&buyer])?;
            }
            sale.commit()?;
        } else if options.common.without_lock {
            buy(&database, &buyer, Fence::NONE).await?;
        } else {
            let guard = tenure.lock("sale").acquire().await?;
            let fence = [guard.fence(), Fence::NONE][usize::from(options.without_fence)];
            buy(&database, &buyer, fence).await?;
            drop(guard); // Whether it was lost meanwhile is the database's business.
        }
    }
    tenure.settle().await;
    Ok(ExitCode::SUCCESS)
}

/// Looks at the stock, takes its time, and writes what is left.
async fn buy(database: &Connection, buyer: &str, fence: Fence) -> Outcome {
    let fence = fence.as_u64();
    // The look leaves the fence behind. Otherwise somebody older could still write between this look
    // and our write, and what was seen here would be wrong.
    let look = "UPDATE stock SET fence = ?1 WHERE fence <= ?1 RETURNING remaining";
    let stock: Option<u64> = database
        .query_row(look, [fence], |row| row.get(0))
        .optional()?;
    let Some(left) = stock.unwrap_or(0).checked_sub(1) else {
        return Ok(());
    };
    loiter(Duration::from_millis(4)).await;
    let sale = database.unchecked_transaction()?;
    let write = "UPDATE stock SET remaining = ?1 WHERE fence = ?2";
    if sale.execute(write, params![left, fence])? == 1 {
        sale.execute("INSERT INTO sold VALUES (?)", [buyer])?;
    } else {
        sale.execute("INSERT INTO refused VALUES (?)", [fence])?;
    }
    Ok(sale.commit()?)
}

fn direct(mut stage: Stage, options: &Options) -> Outcome<ExitCode> {
    let database = database(stage.folder())?;
    database.execute_batch(TABLES)?;
    database.execute("INSERT INTO stock VALUES (?, 0)", [options.items])?;
    stage.start(options.processes)?;
    for trouble in 0..options.processes {
        match stage.overtake_holder("sale")? {
            Some(victim) if trouble == 0 => victim.kill(),
            Some(victim) => victim.resume(), // It has not noticed anything.
            None => {}
        }
    }
    stage.wait(Duration::from_secs(120))?;
    let count = |query: &str| database.query_row(query, [], |row| row.get::<_, u64>(0));
    let (sold, items) = (count("SELECT count(*) FROM sold")?, options.items);
    let late = count("SELECT count(*) FROM refused")?;
    let what = format!("{sold} of {items} items are sold; {late} late writes were refused");
    stage.promise(sold == items, &what);
    Ok(stage.verdict())
}
