//! A15: the same server, listed three times.
//!
//! A demo that is copied with its three lines of the same address, three names of one host, a load balancer: three entries,
//! one memory. It looks like a majority and is none: when that one server forgets, everything is forgotten.

use std::io;

use super::Anomaly;
use crate::stage::{Ask, Got, Played, Stage};
use crate::timeline::Harm;
use crate::worker::How;
use crate::worker::naive::{Algorithm, COMPARE_AND_DELETE, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A15",
    title: "The same server, listed three times, passes as a majority",
    wrong: "All three entries of the configuration lead to the same server. Anna has three votes of three. That one server restarts \
            empty, and Ben gets three votes of three as well.",
    instead: "Every server tells its run id. Two addresses of one server are noticed when connecting, and refused as a mistake in the \
              configuration: nobody gets a lock that protects nothing.",
    harms: &[Harm::TwoHolders],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give,
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(1)?;
    let thrice = [stage.ports()[0]; 3];
    stage.note("one server, listed three times");
    let anna = stage.start_worker("Anna", &thrice, Vec::new())?;
    let ben = stage.start_worker("Ben", &thrice, Vec::new())?;

    let got = anna.acquire(Ask::once())?;
    stage.demand(
        got == Got::Unwilling,
        "one server, listed three times, was accepted",
    )?;
    if stage.how == How::Ours {
        return Ok(());
    }
    stage.until_held_by(&anna)?;
    stage.fault("the server restarts, empty");
    stage.servers[0].restart()?;
    ben.acquire(Ask::once())?;
    ben.write()?;
    anna.write()
}

/// A vote that we have already counts, since an answer may have been lost.
fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    let (token, ttl) = (me.token.clone(), ask.ttl.as_millis().to_string());
    let mut votes = 0;
    for server in 0..me.servers() {
        let set = me.call_server(server, &["SET", KEY, &token, "NX", "PX", &ttl])?;
        if set.is_yes() || me.call_server(server, &["GET", KEY])?.text() == token {
            votes += 1;
        }
    }
    Ok(votes > me.servers() / 2)
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    let token = me.token.clone();
    me.call(&["EVAL", COMPARE_AND_DELETE, "1", KEY, &token])
        .map(drop)
}
