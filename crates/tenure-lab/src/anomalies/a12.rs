//! A12: a split vote.
//!
//! Three clients ask three servers at the same time, and each is first somewhere. Nobody has a majority. If they keep
//! what they have while they try again, or all try again at the same pace, it stays so.

use std::io;
use std::time::Duration;

use super::Anomaly;
use super::votes::{give_back_everywhere, vote};
use crate::stage::{Ask, Got, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A12",
    title: "A split vote: everybody has a minority, and nobody wins",
    wrong: "Anna, Ben and Cleo each get the vote of one server. Nobody has two, nobody gives back the one it has, and so \
            nobody wins until the votes end.",
    instead: "Whoever cannot win any more gives back every vote at once, waits a few random milliseconds, and tries again. \
              All three get their turn.",
    harms: &[Harm::Stuck],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give: give_back_everywhere,
        ..PLAIN
    },
};

const ONE: &str = "having one vote";
const LONG: u64 = 20_000;

fn story(stage: &mut Stage) -> Played<()> {
    stage.longest = Duration::from_millis(LONG);
    stage.start_redis(3)?;
    let workers = [
        stage.worker("Anna")?,
        stage.worker("Ben")?,
        stage.worker("Cleo")?,
    ];
    let mut waiting: Vec<_> = workers.iter().collect();

    for worker in &waiting {
        worker.begin_acquire(Ask::waiting(4000).ttl(LONG).stop_at(ONE))?;
    }
    while !waiting.is_empty() {
        let (worker, got) = stage.first_of(&waiting)?;
        match got {
            // Nobody goes on before all have one.
            Got::Stopped
                if waiting
                    .iter()
                    .all(|worker| worker.got_already() == Some(Got::Stopped)) =>
            {
                for worker in &waiting {
                    worker.leave_point()?;
                }
            }
            Got::Stopped => {}
            _ => {
                waiting.retain(|other| other.name() != worker.name());
                worker.write()?;
                worker.release()?;
            }
        }
    }
    Ok(())
}

/// Begins with another server than the others, and keeps what it gets.
fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    let first = usize::from(me.token.as_bytes()[0] - b'A') % me.servers();
    for step in 0..me.servers() {
        let server = (first + step) % me.servers();
        if !me.votes.contains(&server) && vote(me, server, ask) {
            me.votes.push(server);
        }
        me.point(ONE);
    }
    Ok(me.votes.len() > me.servers() / 2)
}
