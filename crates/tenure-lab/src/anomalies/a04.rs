//! A4: GET, compare, DEL in three steps.
//!
//! The repair of A3 that is not one: look whether the value is ours, then delete. Between the look and the
//! deletion the lease may end. The window is smaller, so it is found later, and in production.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Got, Played, Stage, TTL};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A4",
    title: "GET, compare and DEL in separate steps",
    wrong: "Anna looks whether the key is still hers, and it is. Before her DEL arrives her lease ends and Ben takes \
            the lock. The DEL deletes Ben's key, and Cleo gets in beside him.",
    instead: "Comparing and deleting is one step of the store. There is no moment between them in which a lease \
              could end.",
    harms: &[Harm::TwoHolders],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take: Naive::set_if_absent,
        give,
        ..PLAIN
    },
};

const GAP: &str = "between GET and DEL";

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;
    let cleo = stage.worker("Cleo")?;

    anna.takes(Ask::once().stop_at(GAP))?;
    let released = anna.release_up_to_point()?;
    ben.takes(Ask::waiting(6000))?;
    stage.until_held_by(&ben)?;
    if released == Got::Stopped {
        anna.finish_release()?;
    }
    stage.until_not_held_by(&ben, TTL / 4);
    cleo.acquire(Ask::once())?;
    ben.write()?;
    cleo.write()?;
    ben.release()
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    if me.call(&["GET", KEY])?.text() == me.token {
        me.point(GAP);
        me.call(&["DEL", KEY])?;
    }
    Ok(())
}
