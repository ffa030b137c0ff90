//! A7: "it has no expiry, so I take it over".
//!
//! The repair of A2 on the side of those who wait: a key without an expiry must be from somebody who died between
//! SETNX and EXPIRE, so overwrite it. Two who wait see the same key at the same time, and both overwrite it.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Got, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A7",
    title: "Two take over the same abandoned lock",
    wrong: "Anna dies between SETNX and EXPIRE. Ben and Cleo both see a key without an expiry, both conclude that \
            its owner is dead, and both overwrite it.",
    instead: "Nobody takes anything over. A lease ends at the store, and the same atomic step lets in the first of \
              those who wait, and only that one.",
    harms: &[Harm::TwoHolders],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give,
        ..PLAIN
    },
};

const GAP: &str = "between SETNX and EXPIRE";
const SEEN: &str = "having seen that there is no expiry";

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;
    let cleo = stage.worker("Cleo")?;

    anna.acquire(Ask::once().stop_at(GAP))?;
    stage.until_held_by(&anna)?;
    anna.kill();
    ben.begin_acquire(Ask::waiting(8000).stop_at(SEEN))?;
    cleo.begin_acquire(Ask::waiting(8000).stop_at(SEEN))?;
    let (first, got) = stage.first_of(&[&ben, &cleo])?;
    let second = if first.name() == ben.name() {
        &cleo
    } else {
        &ben
    };
    if got == Got::Stopped {
        stage.require(second.got()? == Got::Stopped, "they did not both see it")?;
        first.go_on()?;
        second.go_on()?;
    }
    first.write()?;
    first.release()?;
    stage.demand(
        second.got()? == Got::It,
        "the second of those who waited never got in",
    )?;
    second.write()
}

fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    let (token, ttl) = (me.token.clone(), ask.ttl.as_millis().to_string());
    if me.call(&["SETNX", KEY, &token])?.is_yes() {
        me.point(GAP);
        me.call(&["PEXPIRE", KEY, &ttl])?;
        return Ok(true);
    }
    if me.call(&["PTTL", KEY])?.number() == Some(-1) {
        me.point(SEEN);
        return Ok(me.call(&["SET", KEY, &token, "PX", &ttl])?.is_yes());
    }
    Ok(false)
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.delete_own()
}
