//! A9: the primary dies before it has replicated the lock.
//!
//! Replication of Redis is asynchronous: the answer is on its way to the client while the replica knows nothing yet.
//! If the primary dies in that moment, the replica that takes over has never heard of the lock.

use std::io;

use super::Anomaly;
use crate::servers::wait::{PATIENCE, until};
use crate::stage::{Ask, Got, Played, Stage, Upset};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A9",
    title: "The primary dies before it has replicated the lock",
    wrong: "Anna gets the lock from the primary, which dies before its replica has heard of it. The replica takes over, \
            knows of no lock, and gives it to Ben, while Anna works.",
    instead: "The new primary can be told from the old one. Whoever notices that a server may have forgotten something \
              makes it wait: it lets in nobody new until every lease that it may have forgotten has ended. Anna \
              takes hers back by renewing it, and Ben gets in when she is done.",
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
    let replication = stage.start_primary_and_replica()?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;

    stage.fault("the replica is cut off");
    replication.refuse(true);
    replication.cut();
    let is_alone = || (!is_replicating(stage)?).then_some(());
    until(PATIENCE, is_alone).ok_or_else(|| Upset::Inconclusive("still replicating".to_owned()))?;
    anna.takes(Ask::once())?;
    stage.until_held_by(&anna)?;
    stage.fault("the primary dies, the replica takes over");
    stage.servers[0].kill();
    stage.servers[1].command(&["REPLICAOF", "NO", "ONE"])?;
    stage.lead_to(1);

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

fn is_replicating(stage: &Stage) -> Option<bool> {
    let info = stage.servers[1].command(&["INFO", "replication"]).ok()?;
    Some(info.text().contains("master_link_status:up"))
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.delete_own()
}
