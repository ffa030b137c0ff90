//! Many leases, renewed by the library: what keeping them costs, and whether all are kept.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::arguments::Arguments;
use crate::figures::rounded;
use crate::peer::Peer;
use crate::time::{Instant, pause};
use crate::{Fault, complain};

#[derive(Debug)]
pub(crate) struct Hold {
    leases: usize,
    ttl: Duration,
    length: Duration,
}

/// Acquires in flight, as in the other programs.
const AT_A_TIME: usize = 100;

impl Hold {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            leases: arguments.number("leases")?,
            ttl: arguments.millis("ttl_ms")?,
            length: arguments.seconds()?,
        })
    }

    pub(super) async fn run(&self, peer: &Peer) -> Result<Value, Fault> {
        let prefix = format!("peer:hold:{}:", std::process::id());
        let begun = Instant::now();
        let mut taking = JoinSet::new();
        let at_a_time = Arc::new(Semaphore::new(AT_A_TIME));
        for lease in 0..self.leases {
            let permit = at_a_time.clone().acquire_owned().await?;
            let (peer, ttl) = (peer.clone(), self.ttl);
            let name = format!("{prefix}{lease}");
            taking.spawn(async move {
                let guard = peer.acquire(&name, ttl).await;
                drop(permit);
                guard
            });
        }
        let mut guards = Vec::with_capacity(self.leases);
        while let Some(taken) = taking.join_next().await {
            guards.push(taken??);
        }
        let taken_in = Instant::now().since(begun);
        complain("ready");
        pause(self.length).await;
        let still_held = peer.held(&prefix).await?;
        let still_valid = guards.iter().filter(|guard| guard.is_valid()).count();
        peer.release_all().await?;
        Ok(json!({
            "leases": self.leases,
            "still_held": still_held,
            "still_valid": still_valid,
            "acquire_s": rounded(taken_in.as_secs_f64(), 3),
        }))
    }
}
