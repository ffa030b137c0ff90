//! A17: entering again adds ttl on ttl, and a writer that turns into a reader tells nobody.
//!
//! Two mistakes of one well-known script. Each entry of a re-entrant write lock adds a ttl to what is left, so that after a few entries
//! the lease is as long as all of them together, and when the holder dies everybody waits for the sum. And when a writer turns into a
//! reader, those who wait to read could get in, but the message that wakes them is only sent when the lock is free.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Got, Played, Stage};
use crate::timeline::Harm;
use crate::worker::How;
use crate::worker::naive::{Algorithm, CHANNEL, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A17",
    title: "Entering again adds ttl on ttl, and a downgrade tells nobody",
    wrong: "Anna writes, then only reads. Cleo, who waits to read, could get in now, but nobody tells her. Later Anna enters her own lock nine \
            times more, and each time a ttl is added to what is left of her lease. She dies, and Ben waits for ten ttls instead of one.",
    instead: "A writer that turns into a reader lets in the waiting readers in the same step, and they are told. Entries are counted in the \
              client: they are one hold with one lease, as long as a single one, and Ben gets in one ttl after Anna's death.",
    harms: &[Harm::Stuck],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give,
        downgrade,
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;
    let cleo = stage.worker("Cleo")?;

    anna.takes(Ask::once().ttl(1000))?;
    cleo.begin_acquire(Ask::waiting(2500).shared().told_by_push())?;
    stage.work_for(crate::stage::TTL / 4);
    stage.note("Anna turns from a writer into a reader");
    anna.downgrade()?;
    let is_stuck = cleo.got()? == Got::Nothing;
    stage.require(is_stuck || stage.how == How::Ours, "Cleo was told")?;
    cleo.write()?;
    cleo.release()?;
    anna.release()?;

    anna.takes(Ask::waiting(2000))?;
    for _ in 0..9 {
        anna.reenter()?;
    }
    stage.note("Anna has entered ten times");
    anna.write()?;
    stage.until_held_by(&anna)?;
    anna.kill();
    ben.acquire(Ask::waiting(4000))?;
    ben.write()
}

const TAKE: &str = "local mode = redis.call('HGET', KEYS[1], 'mode') \
    local mine = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 \
    if mode and not mine and not (mode == 'read' and ARGV[1] == 'read') then return 0 end \
    redis.call('HSET', KEYS[1], 'mode', ARGV[1], ARGV[2], 1) \
    redis.call('PEXPIRE', KEYS[1], ARGV[3] + (mine and redis.call('PTTL', KEYS[1]) or 0)) return 1";

const GIVE: &str = "redis.call('HDEL', KEYS[1], ARGV[1]) if redis.call('HLEN', KEYS[1]) <= 1 then \
    redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[2], 'free') end return 1";

fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    let (token, ttl) = (me.token.clone(), ask.ttl.as_millis().to_string());
    let mode = if ask.shared { "read" } else { "write" };
    let answer = me.call(&["EVAL", TAKE, "1", KEY, mode, &token, &ttl])?;
    Ok(answer.is_yes())
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    let token = me.token.clone();
    let answer = me.call(&["EVAL", GIVE, "1", KEY, &token, CHANNEL]);
    answer.map(drop)
}

/// Changes the mode, and sends no message, since the lock is not free.
fn downgrade(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.call(&["HSET", KEY, "mode", "read"]).map(drop)
}
