//! Taking many names, for the scenarios that keep them.

use std::time::Duration;

use tokio::task::JoinSet;

use tenure::Guard;

use crate::Fault;
use crate::peer::Peer;

/// Acquires in flight, as in the other programs.
const AT_A_TIME: usize = 100;

/// Takes `count` names that begin with `prefix`.
///
/// # Errors
/// The first acquire that failed, or a worker that panicked.
pub(super) async fn take(
    peer: &Peer,
    prefix: &str,
    count: usize,
    ttl: Duration,
) -> Result<Vec<Guard>, Fault> {
    let mut workers = JoinSet::new();
    for first in 0..AT_A_TIME.min(count) {
        let (peer, prefix) = (peer.clone(), prefix.to_owned());
        workers.spawn(async move {
            let mut guards = Vec::with_capacity(count / AT_A_TIME + 1);
            for index in (first..count).step_by(AT_A_TIME) {
                guards.push(peer.acquire(&format!("{prefix}{index}"), ttl).await?);
            }
            Ok::<_, tenure::Error>(guards)
        });
    }
    let mut guards = Vec::with_capacity(count);
    while let Some(taken) = workers.join_next().await {
        guards.append(&mut taken??);
    }
    Ok(guards)
}
