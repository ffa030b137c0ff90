//! One holder and many who wait: the harness counts what waiting costs the server.

use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::peer::{Peer, TTL};
use crate::steps::Steps;
use crate::time::pause;
use crate::{Fault, complain};

#[derive(Debug)]
pub(crate) struct Wait {
    workers: u64,
    length: Duration,
    name: String,
    steps: Steps,
}

/// The holder's ttl: long enough that its renewals do not count as the cost of waiting.
const HOLDER_TTL: Duration = Duration::from_secs(60);

impl Wait {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            workers: arguments.number("workers")?,
            length: arguments.seconds()?,
            name: arguments.text("name")?,
            steps: Steps::read(arguments)?,
        })
    }

    pub(super) async fn run(&self, peer: &Peer) -> Result<Value, Fault> {
        let guard = peer.acquire(&self.name, HOLDER_TTL).await?;
        self.steps.done("begun").await?;
        for _ in 0..self.workers {
            let (peer, name) = (peer.clone(), self.name.clone());
            tokio::spawn(async move {
                if let Err(error) = peer.acquire(&name, TTL).await {
                    complain(&format!("acquire: {error}"));
                }
            });
        }
        // The others' programs give the first try of the last one as much, or more.
        pause(Duration::from_millis((self.workers * 2).clamp(500, 5000))).await;
        complain("ready");
        pause(self.length).await;
        guard.release().await?;
        Ok(json!({ "waiters": self.workers }))
    }
}
