//! A13: a majority computed as a fraction.
//!
//! `count / 2 + 1` in a language whose division keeps the fraction is 3.5 for five servers, and three votes are fewer than
//! 3.5. The lock then needs four of five, so it survives the loss of one server where two were paid for. Related: an even
//! number of servers (four survive no more than three), and counting an extension over those that once said yes.

use std::io;
use std::time::Duration;

use super::Anomaly;
use super::a14::{give_back_everywhere, vote};
use crate::stage::{Ask, Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::{Algorithm, Naive, PLAIN};

pub(super) static ANOMALY: Anomaly = Anomaly {
    id: "A13",
    title: "A majority computed as a fraction: 5 / 2 + 1 = 3.5",
    wrong: "Two of five servers are down. Three votes are a majority, but fewer than 5 / 2 + 1 = 3.5, so Anna never gets the lock \
            that five servers were bought for.",
    instead: "The majority is ⌊N/2⌋ + 1 in integers, of all servers, to take, to renew and to release. With three of five alive \
              Anna gets in at once. An even number is allowed, and tenure doctor says that it buys nothing.",
    harms: &[Harm::Stuck],
    unavoidable: &[],
    story,
    naive: Algorithm {
        take,
        give,
        ..PLAIN
    },
};

fn story(stage: &mut Stage) -> Played<()> {
    stage.start_redis(5)?;
    stage.fault("two of five servers die");
    for server in &mut stage.servers[3..] {
        server.kill();
    }
    let anna = stage.worker("Anna")?;
    anna.acquire(Ask::waiting(3000))?;
    anna.write()?;
    anna.release()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the mistake that is to be shown"
)]
fn take(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    me.patience = Duration::from_millis(200);
    let quorum = me.servers() as f64 / 2.0 + 1.0;
    let votes = (0..me.servers())
        .filter(|server| vote(me, *server, ask))
        .count();
    if votes as f64 >= quorum {
        return Ok(true);
    }
    give_back_everywhere(me);
    Ok(false)
}

fn give(me: &mut Naive, _: &Ask) -> io::Result<()> {
    give_back_everywhere(me);
    Ok(())
}
