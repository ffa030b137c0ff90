//! A6: a renewal that does not ask whose lock it prolongs.
//!
//! The repair of A5: a watchdog calls `PEXPIRE` every few seconds. After a pause it prolongs whatever is there:
//! the lock of somebody else, who may have died long ago. As long as the watchdog runs, nobody gets in.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Played, Stage, TTL};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A6",
    title: "A renewal without a look at the owner prolongs a stranger's lock",
    wrong: "Anna is paused past her lease, and Ben takes the lock. Anna wakes up, and her watchdog goes on prolonging \
            the key, which is Ben's now. Ben dies. The watchdog keeps the dead man's lock alive, and Cleo never gets in.",
    instead: "A renewal names owner and fence, and never revives what has ended. Anna learns that her hold is lost; \
              Ben's lease ends one ttl after his death, and Cleo gets in.",
    harms: &[Harm::Stuck],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take: Naive::set_if_absent,
        give,
        keep: Some(keep),
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;
    let cleo = stage.worker("Cleo")?;

    anna.takes(Ask::once())?;
    anna.pause();
    ben.takes(Ask::waiting(6000))?;
    stage.until_held_by(&ben)?;
    anna.resume();
    stage.work_for(TTL / 2);
    ben.kill();
    cleo.acquire(Ask::waiting(4000))?;
    cleo.write()
}

fn keep(me: &mut Naive, ask: &Ask) -> io::Result<()> {
    let ttl = ask.ttl.as_millis().to_string();
    me.call(&["PEXPIRE", KEY, &ttl]).map(drop)
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.delete_own()
}
