//! A13: votes counted wrongly, in three ways.
//!
//! - A fraction: `count / 2 + 1` in a language whose division keeps it is 3.5 for five servers, so the lock needs four of five
//!   and survives the loss of one server where two were paid for.
//! - An even number: half of four is as many as the other half.
//! - An extension that is counted over those that answered, or once said yes, and not over all servers.

use std::io;
use std::time::Duration;

use super::Anomaly;
use super::votes::{give_back_everywhere, vote_everywhere};
use crate::servers::Answer;
use crate::stage::{Ask, Got, Played, Stage, Worker};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, KEY, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A13",
    title: "Votes counted wrongly: a fraction, half of an even number, only those that answered",
    wrong: "Five servers, two out of reach: three votes are fewer than 5 / 2 + 1 = 3.5, and Anna never gets the lock. Four servers: \
            the network falls into halves, Ben has two votes of four, and so has Cleo. Three servers: Dora loses sight of two, \
            her extension is granted by one of the one that answered, and Emil takes the other two.",
    instead: "The majority is ⌊N/2⌋ + 1 in integers, of all servers, to take, to renew and to release. With three of five Anna gets in at \
              once; with two of four nobody does (tenure doctor says that an even number buys nothing); Dora, with one of three, \
              is told that her lease ends, and Emil gets in after that.",
    harms: &[Harm::Stuck, Harm::TwoHolders],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give: give_back_everywhere,
        keep: Some(keep),
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(5)?;
    a_fraction(stage)?;
    stage.go_on_with(4);
    half_of_an_even_number(stage)?;
    stage.go_on_with(3);
    only_those_that_answered(stage)
}

fn a_fraction(stage: &Stage) -> Played<()> {
    let anna = stage.worker_far_away("Anna")?;
    stage.fault("two of five servers are out of reach");
    out_of_reach(&anna, &[3, 4]);
    anna.acquire(Ask::waiting(1500))?;
    anna.write()?;
    anna.release()
}

fn half_of_an_even_number(stage: &Stage) -> Played<()> {
    let ben = stage.worker_far_away("Ben")?;
    let cleo = stage.worker_far_away("Cleo")?;
    stage.fault("four servers: the network falls into halves");
    out_of_reach(&ben, &[2, 3]);
    out_of_reach(&cleo, &[0, 1]);
    let both = [ben.acquire(Ask::once())?, cleo.acquire(Ask::once())?];
    let shown = stage.is_ours() || both == [Got::It, Got::It];
    stage.require(shown, "half of four servers did not do")?;
    ben.write()?;
    cleo.write()?;
    ben.release()?;
    cleo.release()
}

fn only_those_that_answered(stage: &Stage) -> Played<()> {
    let dora = stage.worker_far_away("Dora")?;
    let emil = stage.worker("Emil")?;
    dora.takes(Ask::once())?;
    stage.fault("three servers: Dora loses sight of two");
    out_of_reach(&dora, &[1, 2]);
    emil.takes(Ask::waiting(8000))?;
    emil.write()?;
    dora.write()?;
    emil.release()?;
    dora.release()
}

fn out_of_reach(worker: &Worker, servers: &[usize]) {
    for server in servers {
        worker.links[*server].refuse(true);
        worker.links[*server].cut();
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the mistake that is to be shown"
)]
fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    me.patience = Duration::from_millis(200);
    let votes = vote_everywhere(me, ask) as f64;
    let count = me.servers() as f64;
    let is_enough = match me.servers() {
        5 => votes >= count / 2.0 + 1.0,
        4 => votes >= count / 2.0,
        // This one is right, but for its extensions.
        _ => votes > count / 2.0,
    };
    if !is_enough {
        give_back_everywhere(me, ask)?;
    }
    Ok(is_enough)
}

/// The majority of those that answered, which may be one of one: so Dora never learns that she lost it.
fn keep(me: &mut Naive, ask: &Ask) -> io::Result<()> {
    let (token, ttl) = (me.token.clone(), ask.ttl.as_millis().to_string());
    let words = ["EVAL", COMPARE_AND_EXTEND, "1", KEY, &token, &ttl];
    let answers = (0..me.servers()).filter_map(|server| me.call_server(server, &words).ok());
    let (yes, no): (Vec<_>, Vec<_>) = answers.partition(Answer::is_yes);
    match yes.len() > no.len() {
        true => Ok(()),
        false => Err(io::Error::other("lost")),
    }
}

const COMPARE_AND_EXTEND: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";
