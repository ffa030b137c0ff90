//! A10: a slow round. When the last node answers, the first have expired.
//!
//! Asking several servers one after the other takes time, and every yes has its own clock. A client that counts the
//! votes at the end, without looking how long it took, counts votes that do not exist any more.

use std::time::Duration;

use super::Anomaly;
use super::votes::{give_back_everywhere, take_majority};
use crate::stage::{Ask, Played, Stage, TTL};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A10",
    title: "A slow round: when the last server answers, the first votes have ended",
    wrong: "Anna asks three servers one after the other. Two say yes, the third hangs for longer than the ttl. Meanwhile \
            her two votes end and Ben gets them. When the third server wakes up, Anna counts three votes, Ben two: \
            both have a majority.",
    instead: "All servers are asked at once and none is waited for longer than a small time-out. What a vote is worth is \
              counted from before it was asked for; a round that leaves nothing is no success.",
    harms: &[Harm::TwoHolders],
    unavoidable: &[],
    story,
    // One server after the other, and no look at the time.
    naive: Algorithm {
        take: take_majority,
        give: give_back_everywhere,
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(3)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;

    stage.fault("the third server hangs");
    stage.servers[2].pause();
    anna.begin_acquire(Ask::once())?;
    stage.until_held_by(&anna)?;
    stage.until_not_held_by(&anna, 2 * TTL);
    ben.begin_acquire(Ask::once())?;
    stage.work_for(Duration::from_millis(100));
    stage.fault("the third server goes on");
    stage.servers[2].resume();
    anna.got()?;
    ben.got()?;
    anna.write()?;
    ben.write()?;
    anna.release()
}
