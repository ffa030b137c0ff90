//! One worker, one name: what an uncontended pair of acquire and release costs.

use serde_json::{Value, json};

use crate::Fault;
use crate::arguments::Arguments;
use crate::figures::Durations;
use crate::peer::{Peer, TTL};
use crate::time::Instant;

#[derive(Debug)]
pub(crate) struct Serial {
    pairs: usize,
    unmeasured: usize,
}

impl Serial {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            pairs: arguments.number("n")?,
            unmeasured: arguments.number("warm")?,
        })
    }

    pub(super) async fn run(&self, peer: &Peer) -> Result<Value, Fault> {
        let name = format!("peer:serial:{}", std::process::id());
        let mut acquires = Durations::with_capacity(self.pairs);
        let mut releases = Durations::with_capacity(self.pairs);
        let mut pairs = Durations::with_capacity(self.pairs);
        for turn in 0..self.unmeasured + self.pairs {
            let begun = Instant::now();
            let guard = peer.acquire(&name, TTL).await?;
            let acquired = Instant::now();
            guard.release().await?;
            let released = Instant::now();
            if turn >= self.unmeasured {
                acquires.add(acquired.since(begun));
                releases.add(released.since(acquired));
                pairs.add(released.since(begun));
            }
        }
        let pairs = pairs.ranked();
        Ok(json!({
            "n": self.pairs,
            "p50_us": pairs.quantile(0.5),
            "p99_us": pairs.quantile(0.99),
            "mean_us": pairs.mean(),
            "acquire_p50_us": acquires.ranked().quantile(0.5),
            "release_p50_us": releases.ranked().quantile(0.5),
        }))
    }
}
