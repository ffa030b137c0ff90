//! A1: the holder dies, and its key has no expiry.
//!
//! The oldest lock on Redis is `SETNX lock 1` and, at the end, `DEL lock`. Whoever dies between the two
//! leaves the key behind, and nothing in the world removes it: not even the same client, restarted, gets
//! in again. An expiry turns "for ever" into "for a ttl".

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A1",
    title: "The holder dies, and its key has no expiry",
    wrong: "SETNX takes the lock and DEL gives it back. Anna dies in between, so nobody ever deletes the key, \
            and Ben waits for ever.",
    instead: "Every hold is a lease: it ends by itself unless its holder, alive, renews it. Ben gets in at most \
              one ttl after Anna's death.",
    harms: &[Harm::Stuck],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give,
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;

    anna.takes(Ask::once())?;
    anna.write()?;
    stage.until_held_by(&anna)?;
    anna.kill();
    ben.acquire(Ask::waiting(4000))?;
    ben.write()
}

fn take(me: &mut Naive, _: &Ask) -> io::Result<bool> {
    let token = me.token.clone();
    Ok(me.call(&["SETNX", KEY, &token])?.is_yes())
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.call(&["DEL", KEY]).map(drop)
}
