//! Many workers, each with a name of its own: how many pairs a second.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Fault;
use crate::arguments::Arguments;
use crate::figures::{Durations, rounded};
use crate::peer::{Peer, TTL};
use crate::time::Instant;

#[derive(Debug)]
pub(crate) struct Parallel {
    workers: usize,
    length: Duration,
}

const WARM_UP: Duration = Duration::from_secs(1);

impl Parallel {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            workers: arguments.number("workers")?,
            length: arguments.seconds()?,
        })
    }

    pub(super) async fn run(&self, peer: &Peer) -> Result<Value, Fault> {
        let begin = Instant::now().after(WARM_UP);
        let end = begin.after(self.length);
        let mut workers = JoinSet::new();
        for worker in 0..self.workers {
            let name = format!("peer:parallel:{}:{worker}", std::process::id());
            workers.spawn(work(peer.clone(), name, begin, end));
        }
        let mut all = Durations::default();
        while let Some(finished) = workers.join_next().await {
            all.append(finished??);
        }
        let pairs = all.len();
        let all = all.ranked();
        Ok(json!({
            "pairs": pairs,
            "pairs_per_s": rounded(pairs as f64 / self.length.as_secs_f64(), 1),
            "p50_us": all.quantile(0.5),
            "p99_us": all.quantile(0.99),
        }))
    }
}

async fn work(
    peer: Peer,
    name: String,
    begin: Instant,
    end: Instant,
) -> Result<Durations, tenure::Error> {
    let mut pairs = Durations::default();
    loop {
        let begun = Instant::now();
        peer.acquire(&name, TTL).await?.release().await?;
        let done = Instant::now();
        if done > end {
            return Ok(pairs);
        }
        if done > begin {
            pairs.add(done.since(begun));
        }
    }
}
