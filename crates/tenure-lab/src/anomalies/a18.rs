//! A18: readers arrive for ever, and the writer starves.
//!
//! A read lock that lets in every reader while any reads is never free once readers overlap. A writer that polls for a free moment
//! never sees one. Nothing is broken, everything is busy, and the write never happens.

use super::Anomaly;
use super::a16::RW;
use crate::stage::{Ask, Got, Played, Stage, TTL};
use crate::timeline::Harm;

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A18",
    title: "Readers arrive for ever, and the writer starves",
    wrong: "Anna and Ben read by turns, and each comes before the other leaves. Every reader is let in while another reads, so the lock \
            is never free, and Cleo, who wants to write, never gets in.",
    instead: "There is one queue, first come, first served; neighbouring readers get in together. A reader that comes after Cleo waits \
              behind her.",
    harms: &[Harm::Stuck],
    unavoidable: &[],
    story,
    naive: RW,
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;
    let cleo = stage.worker("Cleo")?;

    anna.takes(Ask::once().shared())?;
    cleo.begin_acquire(Ask::waiting(3000))?;
    let (mut reads, mut comes) = (&anna, &ben);
    while cleo.got_already().is_none() {
        stage.work_for(TTL / 8);
        comes.acquire(Ask::once().shared())?;
        reads.release()?;
        std::mem::swap(&mut reads, &mut comes);
    }
    let starves = cleo.got()? == Got::Nothing;
    stage.require(
        starves || stage.is_ours(),
        "a reader's lease ended before the next one came",
    )?;
    cleo.write()?;
    reads.release()?;
    cleo.release()
}
