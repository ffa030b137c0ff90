//! A2: a crash between SETNX and EXPIRE.
//!
//! The first repair of A1: take the key, then give it an expiry. Two commands are two chances to die
//! between them, and then the key is as eternal as before. It is one of the mistakes most often copied,
//! because `SET … NX PX` came years after the tutorials.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A2",
    title: "A crash between SETNX and EXPIRE",
    wrong: "The expiry is set by a second command. Anna dies between the two, and her key never expires.",
    instead: "Taking the lock is one atomic step of the store that writes owner, fence and expiry together. \
              There is no moment in which a hold has no end.",
    harms: &[Harm::Stuck],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give,
        ..PLAIN
    },
};

const GAP: &str = "between SETNX and EXPIRE";

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;

    anna.acquire(Ask::once().stop_at(GAP))?;
    stage.until_held_by(&anna)?;
    anna.kill();
    ben.acquire(Ask::waiting(4000))?;
    ben.write()
}

fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    let token = me.token.clone();
    if !me.call(&["SETNX", KEY, &token])?.is_yes() {
        return Ok(false);
    }
    me.point(GAP);
    let ttl = ask.ttl.as_millis().to_string();
    me.call(&["PEXPIRE", KEY, &ttl])?;
    Ok(true)
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.call(&["DEL", KEY]).map(drop)
}
