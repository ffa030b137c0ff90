//! A17: entering again adds ttl on ttl.
//!
//! A re-entrant write lock whose every entry adds a ttl to what is left: after a loop that enters a few times, the lease is as
//! long as all of them together. When the holder dies, everybody waits for the sum. (The same script also tells nobody when a
//! writer turns into a reader, so readers who could get in go on waiting.)

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A17",
    title: "Entering again adds ttl on ttl",
    wrong: "Anna enters her own lock nine times more, and each time a ttl is added to what is left of her lease. She dies, and Ben \
            waits for ten ttls instead of one.",
    instead: "Entries are counted in the client. They are one hold with one lease, as long as a single one: Ben gets in one ttl after \
              Anna's death. (And a writer that turns into a reader lets in the waiting readers in the same step.)",
    harm: Harm::Stuck,
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give,
        keep: None,
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;

    anna.takes(Ask::once())?;
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

const TAKE: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end \
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
    redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + ARGV[2]) return 1";

fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    let (token, ttl) = (me.token.clone(), ask.ttl.as_millis().to_string());
    Ok(me.call(&["EVAL", TAKE, "1", KEY, &token, &ttl])?.is_yes())
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.delete_own()
}
