//! A14: a server restarts empty and votes again.
//!
//! A majority excludes another majority because they have a server in common. If that server forgets its vote and gives it to
//! somebody else, they have nothing in common any more. Redis forgets at every restart, unless it writes every change to disk.

use std::io;
use std::time::Duration;

use super::Anomaly;
use super::votes::{give_back_everywhere, take_majority};
use crate::stage::{Ask, Got, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A14",
    title: "A server restarts empty and votes again for somebody else",
    wrong: "Anna has the votes of the first two of three servers. The second restarts without its data and gives its vote to Ben, who \
            also gets the third: both have a majority.",
    instead: "A server that may have forgotten gives no vote to newcomers until every lease that it may have forgotten has ended. \
              Anna gets her vote back there by renewing; Ben waits.",
    harms: &[Harm::TwoHolders],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give: give_back_everywhere,
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(3)?;
    let anna = stage.worker_far_away("Anna")?;
    let ben = stage.worker("Ben")?;

    stage.fault("Anna cannot reach the third server");
    anna.links[2].refuse(true);
    anna.links[2].cut();
    anna.takes(Ask::once())?;
    stage.until_held_by(&anna)?;
    stage.fault("the second server restarts, empty");
    stage.servers[1].restart()?;
    let too_early = ben.acquire(Ask::once())?;
    ben.write()?;
    anna.write()?;
    anna.release()?;
    if too_early == Got::Nothing {
        ben.takes(Ask::waiting(8000))?;
        ben.write()?;
    }
    Ok(())
}

fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    me.patience = Duration::from_millis(200);
    take_majority(me, ask)
}
