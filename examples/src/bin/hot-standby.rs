//! One writer and two hot standbys. The leader is killed; the next one is paused for longer than its lease, and goes
//! on as if nothing had happened; the next one is cut off from the store. Each time another one leads, and what an old
//! leader still writes is refused, because the table checks the fence of its term.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusqlite::{Connection, params};
use stage::{Common, Outcome, Redis, Role, Stage, Wire, database, loiter, pass_time};
use tenure::Fence;

#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
    /// The lease of a leader, in milliseconds
    #[arg(long, default_value_t = 1500)]
    ttl: u64,
}

const CANDIDATES: usize = 3;

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let options = Options::parse();
    match options.common.role()? {
        Role::Director(stage) => direct(stage, &options),
        Role::Actor(part) => {
            be_a_candidate(part.number, &options, &part.folder).await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Writes for as long as it leads, and again whenever it leads again.
async fn be_a_candidate(number: usize, options: &Options, folder: &Path) -> Outcome {
    let ledger = database(folder)?;
    if options.common.without_lock {
        return write_on(&ledger, number, Fence::from_u64(1), folder).await;
    }
    let store = std::fs::read_to_string(folder.join(format!("store-{number}")))?;
    let tenure = tenure::connect(&store).await?;
    let election = tenure
        .election("writer")
        .ttl(Duration::from_millis(options.ttl));
    election
        .lead(async |term| write_on(&ledger, number, term.fence(), folder).await)
        .await?
}

async fn write_on(ledger: &Connection, number: usize, fence: Fence, folder: &Path) -> Outcome {
    while !folder.join("closed").exists() {
        // A leader that is paused just now writes into the term of the next one, when it goes on. The table
        // refuses that: the check and the write are one step of the database.
        pass_time(Duration::from_millis(5));
        let write = "INSERT INTO entry SELECT ?1, ?2, ?1 >= ifnull(max(fence), 0) FROM entry";
        ledger.execute(write, params![fence.as_u64() as i64, number as i64])?;
        loiter(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn direct(mut stage: Stage, options: &Options) -> Outcome<ExitCode> {
    let redis = Redis::start(stage.folder())?;
    let mut wires = Vec::new();
    for number in 0..CANDIDATES {
        let wire = Wire::to(&redis.address())?;
        let store = format!("redis://{}?recovery=open", wire.address());
        std::fs::write(stage.folder().join(format!("store-{number}")), store)?;
        wires.push(wire);
    }
    let ledger = database(stage.folder())?;
    ledger.execute("CREATE TABLE entry (fence, candidate, accepted)", [])?;
    stage.start(CANDIDATES)?;
    let first = next_leader(&ledger, None)?;
    stage.actors()[first].kill();
    let second = next_leader(&ledger, Some(first))?;
    stage.actors()[second].pause();
    let third = next_leader(&ledger, Some(second))?;
    stage.actors()[second].resume();
    wires[third].cut();
    next_leader(&ledger, Some(third))?;
    wires[third].mend();
    pass_time(Duration::from_millis(options.ttl));
    std::fs::write(stage.folder().join("closed"), "")?;
    stage.wait(Duration::from_secs(60))?;
    check(&mut stage, &ledger)?;
    Ok(stage.verdict())
}

/// Waits until somebody else writes than `before`.
fn next_leader(ledger: &Connection, before: Option<usize>) -> Outcome<usize> {
    let last = "SELECT candidate FROM entry WHERE accepted ORDER BY rowid DESC LIMIT 1";
    for _ in 0..2000 {
        let leader = ledger.query_row(last, [], |row| row.get::<_, i64>(0));
        match leader.map(|leader| leader as usize) {
            Ok(leader) if Some(leader) != before => return Ok(leader),
            _ => pass_time(Duration::from_millis(10)),
        }
    }
    Err(format!("nobody leads after candidate {before:?}").into())
}

fn check(stage: &mut Stage, ledger: &Connection) -> Outcome {
    let count = |query: &str| ledger.query_row(query, [], |row| row.get::<_, i64>(0));
    let terms = count("SELECT count(DISTINCT fence) FROM entry")?;
    stage.promise(terms >= 4, &format!("{terms} terms: somebody led again"));
    let shared = "SELECT count(*) FROM (SELECT fence FROM entry GROUP BY fence
                  HAVING count(DISTINCT candidate) > 1)";
    stage.promise(count(shared)? == 0, "every term had one leader");
    let back = "SELECT count(*) FROM entry AS one JOIN entry AS next ON next.rowid = one.rowid + 1
                WHERE one.accepted AND next.accepted AND next.fence < one.fence";
    let refused = count("SELECT count(*) FROM entry WHERE NOT accepted")?;
    let what = format!("no old leader wrote into a new term ({refused} late writes were refused)");
    stage.promise(count(back)? == 0, &what);
    Ok(())
}
