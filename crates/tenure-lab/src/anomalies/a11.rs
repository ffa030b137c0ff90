//! A11: a vote that came late is never taken back.
//!
//! A server that answers after the time-out does not count as a yes, but it did write the key. A client that only
//! takes back what it counted leaves that key behind, and for a whole ttl nobody gets that server's vote.

use std::io;
use std::time::Duration;

use super::Anomaly;
use super::votes::{give_back, vote};
use crate::servers::wait::now;
use crate::stage::{Ask, Got, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A11",
    title: "A vote that came late is never taken back",
    wrong: "Two of three servers are slow: they write Anna's key, but answer after the time-out. Anna counts one vote, gives \
            up and takes back that one. The other two keys stay for their whole ttl, 20 s, and Ben, alone, cannot get a majority.",
    instead: "What came to nothing is taken back on every server that was asked: those that said yes, those that answered late \
              and those that did not answer. A request for a vote also carries the time after which it takes nothing.",
    harms: &[Harm::Stuck],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give,
        ..PLAIN
    },
};

const TIME_OUT: Duration = Duration::from_millis(50);
const LONG: u64 = 20_000;

fn story(stage: &mut Stage) -> Played<()> {
    stage.longest = Duration::from_millis(LONG);
    stage.start_redis(3)?;
    let anna = stage.worker("Anna")?;
    let ben = stage.worker("Ben")?;

    stage.fault("two servers are slow");
    stage.servers[0].pause();
    stage.servers[1].pause();
    anna.begin_acquire(Ask::once().ttl(LONG))?;
    for server in &stage.servers[..2] {
        stage.work_for(4 * TIME_OUT);
        server.resume();
    }
    stage.require(
        anna.got()? == Got::Nothing,
        "the servers were not slow enough",
    )?;
    ben.acquire(Ask::waiting(4000).ttl(LONG))?;
    ben.write()
}

fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    me.votes.clear();
    for server in 0..me.servers() {
        let asked = now();
        if vote(me, server, ask) && now().since(asked) < TIME_OUT {
            me.votes.push(server);
        }
    }
    if me.votes.len() > me.servers() / 2 {
        return Ok(true);
    }
    give(me, ask)?;
    Ok(false)
}

/// Only what was counted.
fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    for server in std::mem::take(&mut me.votes) {
        give_back(me, server);
    }
    Ok(())
}
