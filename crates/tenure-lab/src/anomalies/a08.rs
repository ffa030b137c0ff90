//! A8: an owner id taken from a clock.
//!
//! Comparing the owner helps only if owners differ. A time in microseconds, `uniqid()`, or a time printed with four
//! digits behind the point is the same for two processes that ask at the same moment, which is what processes that
//! compete for a lock do.

use std::io;
use std::time::Duration;

use super::Anomaly;
use crate::servers::wait::now;
use crate::stage::{Ask, Played, Stage, TTL};
use crate::timeline::Harm;
use crate::worker::How;
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A8",
    title: "Two owners look the same",
    wrong: "Anna and Ben make their owner ids from the clock, at the same moment: the same id. Anna's release, which \
            does compare the owner, is late, and deletes Ben's key, because it looks like hers. Cleo gets in beside Ben.",
    instead: "An owner is 128 random bits, drawn anew for each acquire, and a release names the fence of its grant, too.",
    harms: &[Harm::TwoHolders],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take: Naive::set_if_absent,
        give,
        ..PLAIN
    },
};

/// How often they may miss each other.
const ROUNDS: usize = 300;

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker_far_away("Anna")?;
    let ben = stage.worker("Ben")?;
    let cleo = stage.worker("Cleo")?;

    let rounds = if stage.how == How::Naive { ROUNDS } else { 1 };
    let mut same = false;
    for _ in 0..rounds {
        let moment = now().as_nanos() + Duration::from_millis(3).as_nanos() as u64;
        anna.begin_draw(moment)?;
        ben.begin_draw(moment)?;
        same = anna.drawn()? == ben.drawn()?;
        if same {
            break;
        }
    }
    stage.require(same, "the two never asked for an id at the same moment")?;
    stage.note("Anna and Ben ask for an owner id at the same moment");
    anna.takes(Ask::once())?;
    stage.fault("what Anna sends is delayed");
    anna.links[0].hold_back();
    anna.begin_release()?;
    ben.takes(Ask::waiting(6000))?;
    stage.require(
        anna.links[0].has_held_back(),
        "Anna's release was not delayed",
    )?;
    stage.fault("Anna's release arrives");
    anna.links[0].deliver();
    stage.work_for(TTL / 8);
    cleo.acquire(Ask::once())?;
    ben.write()?;
    cleo.write()?;
    ben.release()
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.delete_own()
}
