//! One writer and two hot standbys. The leader is killed; the next one is paused for longer than its lease, and goes
//! on as if nothing had happened; the next one is cut off from the store. Each time another one leads, and what an old
//! leader still writes is refused, because the table checks the fence of its term.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use stage::{Common, Outcome, Part, Stage, Wire, database, loiter, pass_time};
use tenure::Fence;

/// One leader and two hot standbys; leaders are killed, paused, and cut off from the store
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
    /// The lease of a leader, in milliseconds
    #[arg(long, default_value_t = 1500)]
    ttl: u64,
}

const CANDIDATES: usize = 3;

fn main() -> ExitCode {
    stage::play(|options: &Options| &options.common, direct, be_a_candidate)
}

/// Writes for as long as it leads, and again whenever it leads again.
#[tokio::main]
async fn be_a_candidate(options: &Options, part: &Part) -> Outcome {
    let (ledger, folder) = (database(&part.folder)?, &part.folder);
    if options.common.without_lock {
        return write_on(&ledger, part.number, Fence::from_u64(1), folder).await;
    }
    let tenure = tenure::connect(&part.store).await?;
    let election = tenure.election(part.name("writer"));
    let election = election.ttl(Duration::from_millis(options.ttl));
    election
        .lead(async |term| write_on(&ledger, part.number, term.fence(), folder).await)
        .await?
}

async fn write_on(ledger: &Connection, number: usize, fence: Fence, folder: &Path) -> Outcome {
    while !folder.join("closed").exists() {
        let written = entries_of(ledger, number)?;
        let announced = format!("{written} {}\n", fence.as_u64());
        std::fs::write(announcement(folder, number), announced)?;
        // A leader that is paused just now writes into the term of the next one, when it goes on. The table
        // refuses that: the check and the write are one step of the database.
        let write = "INSERT INTO entry SELECT ?1, ?2, ?1 >= ifnull(max(fence), 0) FROM entry";
        ledger.execute(write, params![fence.as_u64(), number])?;
        loiter(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn direct(stage: &mut Stage, options: &Options) -> Outcome {
    let ledger = database(stage.folder())?;
    ledger.execute("CREATE TABLE entry (fence, candidate, accepted)", [])?;
    stage.start_wired(CANDIDATES)?;
    let first = next_leader(&ledger, None)?;
    stage.actors()[first.candidate].kill();
    next_leader(&ledger, Some(first))?;
    let second = pause_in_the_middle(stage, first.candidate, &ledger)?;
    let third = next_leader(&ledger, Some(second))?;
    stage.actors()[second.candidate].resume();
    if let Some(wire) = stage.wire(third.candidate) {
        wire.cut();
        next_leader(&ledger, Some(third))?;
    }
    stage.wire(third.candidate).into_iter().for_each(Wire::mend);
    pass_time(Duration::from_millis(options.ttl))?;
    std::fs::write(stage.folder().join("closed"), "")?;
    stage.wait()?;
    check(stage, options, &ledger)
}

/// Who leads, and with which fence.
#[derive(Clone, Copy)]
struct Term {
    candidate: usize,
    fence: u64,
}

/// Pauses whoever is about to write, but for the one that is `gone`, and says who that was.
fn pause_in_the_middle(stage: &mut Stage, gone: usize, ledger: &Connection) -> Outcome<Term> {
    // Nobody can write while this lasts, so whoever is about to do so stays there until it is paused.
    let held = Transaction::new_unchecked(ledger, TransactionBehavior::Immediate)?;
    loop {
        for number in (0..CANDIDATES).filter(|number| *number != gone) {
            if let Some(term) = about_to_write(stage.folder(), ledger, number)? {
                stage.actors()[number].pause();
                held.rollback()?;
                return Ok(term);
            }
        }
        pass_time(Duration::from_millis(1))?;
    }
}

/// In which term a candidate has announced an entry that is not there yet.
fn about_to_write(folder: &Path, ledger: &Connection, number: usize) -> Outcome<Option<Term>> {
    // Not there before it first leads, and empty for a moment each time it is written.
    let announced = std::fs::read_to_string(announcement(folder, number)).unwrap_or_default();
    let Some((written, fence)) = announced.split_once(' ') else {
        return Ok(None);
    };
    let Some(fence) = fence.strip_suffix('\n') else {
        return Ok(None); // cut short
    };
    let is_next = written.parse() == Ok(entries_of(ledger, number)?);
    Ok(is_next.then_some(Term {
        candidate: number,
        fence: fence.parse()?,
    }))
}

/// Where a candidate says how many entries it had made when it set about the next one, and with which fence it does.
fn announcement(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("writing-{number}"))
}

fn entries_of(ledger: &Connection, number: usize) -> Outcome<u64> {
    let count = "SELECT count(*) FROM entry WHERE candidate = ?";
    Ok(ledger.query_row(count, [number], |row| row.get(0))?)
}

/// Waits until somebody else has written than `before`, and not in an earlier term.
fn next_leader(ledger: &Connection, before: Option<Term>) -> Outcome<Term> {
    let last =
        "SELECT candidate, fence FROM entry WHERE accepted AND candidate IS NOT ?1 AND fence >= ?2
                ORDER BY rowid DESC LIMIT 1";
    let before = params![
        before.map(|it| it.candidate),
        before.map_or(0, |it| it.fence)
    ];
    loop {
        let found = ledger.query_row(last, before, |row| {
            let (candidate, fence) = (row.get(0)?, row.get(1)?);
            Ok(Term { candidate, fence })
        });
        match found {
            Ok(term) => return Ok(term),
            Err(_) => pass_time(Duration::from_millis(10))?,
        }
    }
}

fn check(stage: &mut Stage, options: &Options, ledger: &Connection) -> Outcome {
    let count = |query: &str| ledger.query_row(query, [], |row| row.get::<_, u64>(0));
    let terms = count("SELECT count(DISTINCT fence) FROM entry")?;
    let least = if stage.wire(0).is_some() { 4 } else { 3 };
    stage.promise(
        terms >= least,
        "somebody leads again each time",
        &format!("{terms} terms"),
    );
    let shared = "SELECT count(*) FROM (SELECT fence FROM entry GROUP BY fence
                  HAVING count(DISTINCT candidate) > 1)";
    let found = format!("{} terms had several", count(shared)?);
    stage.promise(count(shared)? == 0, "every term has one leader", &found);
    if !options.common.without_lock {
        let late = count("SELECT count(*) FROM entry WHERE NOT accepted")?;
        stage.promise_refusals(late);
    }
    Ok(())
}
