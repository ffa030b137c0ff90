//! A flash sale: 100 items, 1,000 buyers, 8 processes. Exactly 100 are sold, although holders of the
//! lock are killed, or paused until somebody else holds it.
//!
//! The lock alone cannot promise that: a paused holder wakes up and goes on. The database refuses its
//! write, because it has seen a later fence. `--atomic` does the same with one statement and no
//! lock, which is better here: `docs/when-not-to-lock.md` says why.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusqlite::{Connection, OptionalExtension, params};
use stage::{Common, Outcome, Part, Resource, Stage, database, loiter};

/// Sells 100 items to 1,000 buyers in 8 processes; holders of the lock are killed and paused
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
    CREATE TABLE sold (buyer TEXT, fence INTEGER); CREATE TABLE refused (buyer TEXT, fence INTEGER);";

fn main() -> ExitCode {
    stage::play(|options: &Options| &options.common, direct, sell)
}

#[tokio::main(flavor = "current_thread")]
async fn sell(options: &Options, part: &Part) -> Outcome {
    let tenure = tenure::connect(&part.store).await?;
    let database = database(&part.folder)?;
    for number in 0..options.buyers / options.processes {
        let buyer = format!("{}-{number}", part.number);
        // Some take their time, and are sure to be caught at it.
        let pace = Duration::from_millis(if number == 0 { 400 } else { 4 });
        if options.atomic {
            let left = "UPDATE stock SET remaining = remaining - 1 WHERE remaining > 0";
            let sale = database.unchecked_transaction()?;
            if sale.execute(left, [])? == 1 {
                sale.execute("INSERT INTO sold VALUES (?, 0)", [&buyer])?;
            }
            sale.commit()?;
        } else if options.common.without_lock {
            buy(&database, &buyer, pace, 0, false).await?;
        } else {
            let guard = tenure.lock(part.name("sale")).acquire().await?;
            let fence = guard.fence().as_u64();
            buy(&database, &buyer, pace, fence, !options.without_fence).await?;
        }
    }
    tenure.settle().await;
    Ok(())
}

/// Looks at the stock, takes its time, and writes what is left. Whether the lock was lost meanwhile is the database's business.
async fn buy(shop: &Connection, buyer: &str, pace: Duration, fence: u64, check: bool) -> Outcome {
    // The look leaves the fence behind. Otherwise somebody older could still write between this look
    // and our write, and what was seen here would be wrong.
    let look = "UPDATE stock SET fence = ?1 WHERE fence <= ?1 OR NOT ?2 RETURNING remaining";
    let look = shop.query_row(look, params![fence, check], |row| row.get::<_, u64>(0));
    let Some(left) = look.optional()?.unwrap_or(0).checked_sub(1) else {
        return Ok(());
    };
    loiter(pace).await;
    let sale = shop.unchecked_transaction()?;
    let write = "UPDATE stock SET remaining = ?1 WHERE fence = ?2 OR NOT ?3";
    let table = match sale.execute(write, params![left, fence, check])? {
        1 => "INSERT INTO sold VALUES (?1, ?2)",
        _ => "INSERT INTO refused VALUES (?1, ?2)",
    };
    sale.execute(table, params![buyer, fence])?;
    Ok(sale.commit()?)
}

fn direct(stage: &mut Stage, options: &Options) -> Outcome {
    let database = database(stage.folder())?;
    database.execute_batch(TABLES)?;
    database.execute("INSERT INTO stock VALUES (?, 0)", [options.items])?;
    let stock = Resource {
        database: &database,
        table: "stock",
        in_the_middle: "remaining > 0 AND fence NOT IN (SELECT fence FROM sold)",
    };
    stage.start(options.processes)?;
    let locked = !options.atomic && !options.common.without_lock;
    for trouble in 0..options.processes * usize::from(locked) {
        match stage.overtake_holder("sale", &stock)? {
            Some(victim) if trouble == 1 => victim.kill(),
            Some(victim) => victim.resume(), // It has not noticed anything.
            None => break,
        }
    }
    stage.wait()?;
    let count = |query: &str| database.query_row(query, [], |row| row.get::<_, u64>(0));
    let (sold, items) = (count("SELECT count(*) FROM sold")?, options.items);
    let found = format!("{sold} sold of {items}");
    stage.promise(sold == items, "each item is sold once", &found);
    if locked && !options.without_fence {
        stage.promise_refusals(count("SELECT count(*) FROM refused")?);
    }
    Ok(())
}
