//! A19: the server's clock jumps.
//!
//! Redis measures expiry by the wall clock. A step forward (NTP after a long drift, a restored machine, an administrator) ends every
//! lease at once, while their holders, whose own clocks did not move, believe for a ttl longer. **No lock whose leases end by one
//! clock can prevent that.** It can be detected, and made harmless where it matters: at the resource.

use std::io;

use super::Anomaly;
use crate::servers::wait::{PATIENCE, until};
use crate::stage::{Ask, Played, Stage};
use crate::timeline::{Harm, What};
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A19",
    title: "The server's clock jumps forward",
    wrong: "Anna is about to write when the server's clock jumps a minute ahead. Her lease ends there at once, Ben gets in and writes, and \
            then Anna's write arrives and overwrites his.",
    instead: "The overlap cannot be prevented by any lease. It is detected: Anna's next renewal is refused and she is told. And it is fenced: \
              her write carries an older fence than Ben's, and the resource refuses it.",
    harms: &[Harm::StaleWrite],
    unavoidable: &[Harm::TwoHolders],
    story,
    naive: Algorithm {
        take: Naive::set_if_absent,
        give,
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis_with_clock()?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;

    anna.takes(Ask::once())?;
    stage.until_held_by(&anna)?;
    anna.begin_write()?;
    stage.fault("the server's clock jumps ahead by a minute");
    stage.step_clock(60)?;
    ben.takes(Ask::waiting(6000))?;
    ben.write()?;
    anna.finish_write()?;
    let is_told = |event: &crate::timeline::Event| {
        event.who == anna.name() && matches!(event.what, What::Lost { .. })
    };
    if stage.is_ours() {
        let told = until(PATIENCE, || stage.saw(is_told).then_some(()));
        stage.demand(told.is_some(), "Anna was never told that she lost the lock")?;
        stage.demand(
            stage.saw_refused_write(),
            "Anna's late write was not refused",
        )?;
    }
    Ok(())
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.delete_own()
}
