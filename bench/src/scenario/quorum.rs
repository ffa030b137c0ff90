//! Redlock over several servers: what an uncontended pair of acquire and release costs, and whether each
//! succeeds.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Fault;
use crate::arguments::Arguments;
use crate::figures::Durations;
use crate::peer::Peer;
use crate::time::Instant;

#[derive(Debug)]
pub(crate) struct Quorum {
    pairs: usize,
    unmeasured: usize,
    ttl: Duration,
}

impl Quorum {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            pairs: arguments.number("n")?,
            unmeasured: arguments.number("warm")?,
            ttl: arguments.millis("ttl_ms")?,
        })
    }

    pub(super) async fn run(&self, peer: &Peer) -> Result<Value, Fault> {
        let name = format!("peer:quorum:{}", std::process::id());
        let mut pairs = Durations::with_capacity(self.pairs);
        let mut failed = 0;
        for turn in 0..self.unmeasured + self.pairs {
            let begun = Instant::now();
            // One try, as the others: a failure is a failure.
            let succeeded = match peer.try_acquire(&name, self.ttl).await {
                Ok(Some(guard)) => guard.release().await.is_ok(),
                Ok(None) | Err(_) => false,
            };
            if turn < self.unmeasured {
                continue;
            }
            if succeeded {
                pairs.add(Instant::now().since(begun));
            } else {
                failed += 1;
            }
        }
        let ok = pairs.len();
        let pairs = pairs.ranked();
        Ok(json!({
            "n": self.pairs,
            "ok": ok,
            "failed": failed,
            "p50_us": pairs.quantile(0.5),
            "p99_us": pairs.quantile(0.99),
            "max_us": pairs.quantile(1.0),
        }))
    }
}
