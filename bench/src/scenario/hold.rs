//! Many leases, renewed by the library: what keeping them costs, and whether all are kept.

use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::figures::rounded;
use crate::peer::Peer;
use crate::scenario::taking::take;
use crate::time::{Instant, pause};
use crate::{Fault, complain};

#[derive(Debug)]
pub(crate) struct Hold {
    leases: usize,
    ttl: Duration,
    length: Duration,
}

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
        let guards = take(peer, &prefix, self.leases, self.ttl).await?;
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
