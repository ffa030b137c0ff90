//! A20: the holder is paused past its lease, wakes up, and writes.
//!
//! A garbage collection, SIGSTOP, a virtual machine that is moved, a laptop that is closed: between the last look at the lock and the
//! write there is always a moment, and a moment can last. **No lock can prevent that**, because whoever sleeps cannot be told. Only the
//! resource can: by refusing whoever comes with an older fence than it has seen.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Played, Stage};
use crate::timeline::{Harm, What};
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A20",
    title: "The holder is paused past its lease, wakes up and writes",
    wrong: "Anna has looked: the lock is hers. Then she is paused, just before the write. Her lease ends, Ben gets in and writes. Anna wakes \
            up and finishes what she began: her old write overwrites Ben's.",
    instead: "The write carries the fence of Anna's grant. The resource has seen Ben's, which is higher, and refuses it. And the first look at \
              her guard after the pause tells Anna that the lock is lost: it reads a clock that went on.",
    harms: &[Harm::StaleWrite],
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
    anna.begin_write()?;
    anna.pause();
    ben.takes(Ask::waiting(6000))?;
    ben.write()?;
    anna.resume();
    anna.finish_write()?;
    anna.write()?;
    let declined = stage.saw(|event| matches!(event.what, What::Declined { .. }));
    stage.demand(
        stage.saw_refused_write(),
        "Anna's late write was not refused",
    )?;
    stage.demand(declined, "Anna was not told at her next look")?;
    ben.release()
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    me.delete_own()
}
