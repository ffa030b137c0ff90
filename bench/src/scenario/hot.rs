//! Many workers, one name: what a lock costs while others want it. Writes one line per grant, from
//! which the harness, which also sees the other processes, takes gaps, waits and fairness.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use tenure::Clock;
use tenure::clock::SystemClock;

use crate::arguments::Arguments;
use crate::peer::{Peer, TTL};
use crate::time::{Instant, until};
use crate::{Fault, complain};

#[derive(Debug)]
pub(crate) struct Hot {
    workers: usize,
    length: Duration,
    pauses: Pauses,
    name: String,
    out: PathBuf,
    id: String,
}

#[derive(Clone, Copy, Debug)]
struct Pauses {
    hold: Duration,
    think: Duration,
}

/// One grant of one worker.
#[derive(Clone, Copy, Debug)]
struct Grant {
    acquired: Instant,
    release_begun: Instant,
    released: Instant,
}

/// How long after the end the process may go on giving back what was abandoned.
const CLEAN_UP: Duration = Duration::from_secs(3);

impl Hot {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            workers: arguments.number("workers")?,
            length: arguments.seconds()?,
            pauses: Pauses {
                hold: arguments.micros("hold_us")?,
                think: arguments.micros("think_us")?,
            },
            name: arguments.text("name")?,
            out: arguments.text("out")?.into(),
            id: arguments.text("id")?,
        })
    }

    pub(super) async fn run(&self, peer: &Peer) -> Result<Value, Fault> {
        let clock = SystemClock::start()?;
        let end = Instant::now().after(self.length);
        let mut workers = JoinSet::new();
        for worker in 0..self.workers {
            let (peer, name) = (peer.clone(), self.name.clone());
            let (clock, pauses) = (clock.clone(), self.pauses);
            workers.spawn(async move { (worker, work(&peer, &name, &clock, pauses, end).await) });
        }
        let mut lines = String::new();
        let mut count = 0;
        while let Some(finished) = workers.join_next().await {
            let (worker, grants) = finished?;
            count += grants.len();
            for grant in grants {
                let id = &self.id;
                let [acquired, begun, released] =
                    [grant.acquired, grant.release_begun, grant.released].map(Instant::nanos);
                writeln!(lines, "{id}-{worker} {acquired} {begun} {released}")?;
            }
        }
        until(end.after(CLEAN_UP), peer.settle()).await;
        std::fs::write(&self.out, lines)?;
        Ok(json!({ "grants": count }))
    }
}

/// Takes the lock again and again until `end`; a wait that is still going on then is abandoned.
async fn work(
    peer: &Peer,
    name: &str,
    clock: &SystemClock,
    pauses: Pauses,
    end: Instant,
) -> Vec<Grant> {
    let mut grants = Vec::with_capacity(1024);
    while Instant::now() < end {
        let guard = match until(end, peer.acquire(name, TTL)).await {
            Some(Ok(guard)) => guard,
            Some(Err(error)) => {
                complain(&format!("acquire: {error}"));
                continue;
            }
            None => break,
        };
        let acquired = Instant::now();
        if acquired >= end {
            break;
        }
        pause(clock, pauses.hold).await;
        let release_begun = Instant::now();
        if let Err(error) = guard.release().await {
            complain(&format!("release: {error}"));
        }
        grants.push(Grant {
            acquired,
            release_begun,
            released: Instant::now(),
        });
        pause(clock, pauses.think).await;
    }
    grants
}

/// Pauses to the microsecond, as most other programs do: tokio's own timer rounds up to the next
/// millisecond, which would double a hold.
async fn pause(clock: &SystemClock, duration: Duration) {
    if !duration.is_zero() {
        clock.sleep_until(clock.now().plus(duration)).await;
    }
}
