//! Many workers, one name: what a lock costs while others want it. Writes one line per grant, from
//! which the harness, which also sees the other processes, takes gaps, waits and fairness.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::arguments::Arguments;
use crate::peer::{Peer, TTL};
use crate::time::{Instant, pause, until};
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
        let end = Instant::now().after(self.length);
        let mut workers = JoinSet::new();
        for worker in 0..self.workers {
            let (peer, name, pauses) = (peer.clone(), self.name.clone(), self.pauses);
            workers.spawn(async move { (worker, work(&peer, &name, pauses, end).await) });
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
async fn work(peer: &Peer, name: &str, pauses: Pauses, end: Instant) -> Vec<Grant> {
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
        pause(pauses.hold).await;
        let release_begun = Instant::now();
        if let Err(error) = guard.release().await {
            complain(&format!("release: {error}"));
        }
        grants.push(Grant {
            acquired,
            release_begun,
            released: Instant::now(),
        });
        pause(pauses.think).await;
    }
    grants
}
