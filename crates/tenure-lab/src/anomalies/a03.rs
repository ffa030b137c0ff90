//! A3: a delayed release deletes the next holder's lock.
//!
//! With an expiry, but with a value that means nothing, `DEL` deletes whatever is there. If the request is
//! late (the network, a retry, a pause) the lease has ended meanwhile and the key is somebody else's. The
//! third client then walks in while the second still works.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A3",
    title: "A delayed release deletes the next holder's lock",
    wrong: "Anna releases with a plain DEL, which gets stuck in the network. Her lease ends, Ben takes the lock, \
            and then the DEL arrives: it deletes Ben's key, and Cleo gets in beside him.",
    instead: "A release names its owner and the fence of its grant. One that arrives late, or twice, matches \
              nothing and changes nothing.",
    harms: &[Harm::TwoHolders],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take: Naive::set_if_absent,
        give,
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker_far_away("Anna")?;
    let ben = stage.worker("Ben")?;
    let cleo = stage.worker("Cleo")?;

    anna.takes(Ask::once())?;
    stage.fault("what Anna sends is delayed");
    anna.links[0].hold_back();
    anna.begin_release()?;
    ben.takes(Ask::waiting(6000))?;
    stage.require(
        anna.links[0].has_held_back(),
        "Anna's release was not delayed",
    )?;
    stage.until_held_by(&ben)?;
    stage.fault("Anna's release arrives");
    anna.links[0].deliver();
    stage.until_not_held_by(&ben, crate::stage::TTL / 4);
    cleo.acquire(Ask::once())?;
    ben.write()?;
    cleo.write()?;
    ben.release()
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.call(&["DEL", KEY]).map(drop)
}
