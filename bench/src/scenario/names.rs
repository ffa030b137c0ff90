//! Many names held at once: what each costs in memory, and what it does to the next one. The harness
//! looks at the server and at this process between the steps.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Fault;
use crate::arguments::Arguments;
use crate::figures::{Durations, rounded};
use crate::peer::{Peer, TTL};
use crate::scenario::taking::take;
use crate::steps::Steps;
use crate::time::Instant;

#[derive(Debug)]
pub(crate) struct Names {
    names: usize,
    pairs: usize,
    steps: Steps,
}

/// So long that no renewal falls into the measurement.
const HELD_TTL: Duration = Duration::from_secs(3600);

/// Pairs before the first look and before the measured ones: scripts are loaded, buffers have grown.
const UNMEASURED: usize = 200;

impl Names {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            names: arguments.number("names")?,
            pairs: arguments.number("n")?,
            steps: Steps::read(arguments)?,
        })
    }

    pub(super) async fn run(&self, peer: &Peer) -> Result<Value, Fault> {
        let prefix = format!("peer:names:{}:", std::process::id());
        let further = format!("{prefix}further");
        pairs(peer, &further, UNMEASURED).await?;
        self.steps.done("begun").await?;
        let begun = Instant::now();
        let guards = take(peer, &prefix, self.names, HELD_TTL).await?;
        let taken = Instant::now();
        self.steps.done("ready").await?;
        pairs(peer, &further, UNMEASURED).await?;
        let measured = pairs(peer, &further, self.pairs).await?.ranked();
        let releasing = Instant::now();
        let released = peer.release_all().await?;
        let done = Instant::now();
        drop(guards);
        self.steps.done("released").await?;
        Ok(json!({
            "names": self.names,
            "released": released,
            "acquire_s": rounded(taken.since(begun).as_secs_f64(), 3),
            "release_s": rounded(done.since(releasing).as_secs_f64(), 3),
            "p50_us": measured.quantile(0.5),
            "p99_us": measured.quantile(0.99),
        }))
    }
}

/// Takes and gives back `name`, `count` times.
async fn pairs(peer: &Peer, name: &str, count: usize) -> Result<Durations, tenure::Error> {
    let mut pairs = Durations::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        peer.acquire(name, TTL).await?.release().await?;
        pairs.add(Instant::now().since(begun));
    }
    Ok(pairs)
}
