//! A5: the work outlives the ttl.
//!
//! A fixed ttl is a guess about how long work takes. When the guess is too short, the next one gets in while
//! the first still works, and nobody tells the first.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Got, Played, Stage, TTL};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A5",
    title: "The work outlives the ttl",
    wrong: "Anna's work takes twice as long as her ttl. Her key expires in the middle, and Ben gets in beside her.",
    instead: "A lease is renewed at a third of its ttl for as long as its holder lives. If that fails, the holder is \
              told by its own clock, before anybody else can get in.",
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
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;

    anna.takes(Ask::once())?;
    stage.note("Anna's work takes twice her ttl");
    stage.work_for(2 * TTL);
    let too_early = ben.acquire(Ask::once())?;
    anna.write()?;
    anna.release()?;
    if too_early == Got::Nothing {
        ben.takes(Ask::waiting(6000))?;
    }
    ben.write()
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.delete_own()
}
