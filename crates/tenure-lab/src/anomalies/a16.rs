//! A16: one reader's short lease ends another reader's.
//!
//! A read/write lock in one hash has one expiry for all its readers. Whoever sets it last, sets it for everybody: a reader
//! that needs the lock for a moment ends the lease of one that needs it for an hour; and the other way round, a reader that died
//! lives on as long as others renew.

use std::io;
use std::time::Duration;

use super::Anomaly;
use crate::stage::{Ask, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A16",
    title: "Readers share one expiry: short leases cut long ones, the dead live on",
    wrong: "All readers share one expiry. Anna reads for four seconds; Ben comes, reads for a moment, and sets the common expiry to \
            300 ms. It ends, and Cleo writes while Anna reads. Later Ben dies while he reads, Anna's longer lease keeps his \
            entry alive, and Cleo waits for a dead man.",
    instead: "Each reader has a lease of its own. What others take, renew, release or lose does not touch it, and a dead reader is gone \
              when its own lease ends.",
    harms: &[Harm::TwoHolders, Harm::Stuck],
    unavoidable: &[],
    story,
    naive: RW,
};

const LONG: u64 = 4000;
const SHORT: u64 = 300;

fn story(stage: &mut Stage) -> Played<()> {
    stage.longest = Duration::from_millis(LONG);
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;
    let cleo = stage.worker("Cleo")?;

    anna.takes(Ask::once().shared().ttl(LONG))?;
    ben.takes(Ask::once().shared().ttl(SHORT))?;
    stage.until_held_by(&anna)?;
    ben.release()?;
    stage.until_not_held_by(&anna, Duration::from_millis(3 * SHORT));
    cleo.acquire(Ask::once())?;
    cleo.write()?;
    cleo.release()?;
    anna.release()?;

    ben.takes(Ask::waiting(LONG).shared().ttl(SHORT))?;
    anna.takes(Ask::once().shared().ttl(LONG))?;
    ben.kill();
    stage.work_for(Duration::from_millis(2 * SHORT));
    anna.release()?;
    cleo.acquire(Ask::waiting(2000))?;
    cleo.write()
}

/// A read/write lock in one hash: who reads, or who writes, and one expiry for all.
pub(super) const RW: Algorithm = Algorithm {
    take,
    give,
    ..PLAIN
};

const TAKE: &str = "local mode = redis.call('HGET', KEYS[1], 'mode') \
    if mode and (mode ~= 'read' or ARGV[1] ~= 'read') then return 0 end \
    redis.call('HSET', KEYS[1], 'mode', ARGV[1], ARGV[2], 1) \
    redis.call('PEXPIRE', KEYS[1], ARGV[3]) return 1";

const GIVE: &str = "redis.call('HDEL', KEYS[1], ARGV[1]) \
    if redis.call('HLEN', KEYS[1]) <= 1 then redis.call('DEL', KEYS[1]) end return 1";

fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    let (token, ttl) = (me.token.clone(), ask.ttl.as_millis().to_string());
    let mode = if ask.shared { "read" } else { "write" };
    Ok(me
        .call(&["EVAL", TAKE, "1", KEY, mode, &token, &ttl])?
        .is_yes())
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    let token = me.token.clone();
    me.call(&["EVAL", GIVE, "1", KEY, &token]).map(drop)
}
