//! Before a life begins, those who decide which server is the primary are asked whether this is the one.
//!
//! Nobody is let in until `max_ttl` after a life has begun, so that whatever another server granted has ended by
//! then. A primary that does not know that it was replaced goes on granting, and those who confirm what it
//! grants may not know either. But as soon as so many of them name *this* server that they share a witness with
//! any majority, none of them confirms the other one any more: only then does the waiting begin to count.
//!
//! Whoever knows a server only by its own address asks nobody. What it writes says so, and does not count for
//! those who need witnesses: for them the life begins once more.

use std::time::Duration;

use tenure_core::{ErrorKind, Moment};

use super::super::connection::{Link, Live};
use super::super::errors::Failure;
use super::Part;
use super::look::Look;
use super::record::{Beginning, node_of};

/// Witnesses that need longer are not heard: whoever asks is to be told why it has to wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether another server may have the place of this one, and there is somebody to ask.
pub(super) fn needs_witnesses(link: &Link) -> bool {
    link.sentinels.is_some() || link.options.keys.member().is_some()
}

/// Whether each of these parts is known to belong to the server at the other end of `live`, by witnesses
/// that are asked now. A server of its own needs none.
pub(super) async fn confirmed(
    link: &Link,
    live: &Live,
    begins: &[(Part, Look, Beginning)],
    deadline: Moment,
) -> Vec<Result<(), Failure>> {
    if begins.is_empty() {
        return Vec::new();
    }
    let asked = link.clock.now();
    let deadline = deadline.min(asked.plus(PATIENCE));
    if let Some(sentinels) = &link.sentinels {
        let confirmed = sentinels.confirm(&live.address, asked, deadline).await;
        return vec![confirmed; begins.len()];
    }
    let Some(member) = link.options.keys.member() else {
        return vec![Ok(()); begins.len()];
    };
    match member.clone().all() {
        Some((node, nodes)) => {
            let slots = begins.iter().map(|(part, ..)| part.unwrap_or_default());
            let slots: Vec<u16> = slots.collect();
            let promoted = begins.iter().any(|(_, look, _)| is_promoted(look));
            nodes
                .confirm_beginning(node, &slots, promoted, deadline)
                .await
        }
        None => vec![Err(gone()); begins.len()],
    }
}

/// Whether a node may have its voice from another, whose place it took. A record tells who had the slot when its
/// data was written, and in which epoch: a promotion raises it, so that one who was promoted *back* is found out, too.
/// Without one it has to be asked of the server, which shows it also after a restart if it has had replicas itself.
fn is_promoted(look: &Look) -> bool {
    match (node_of(&look.text), &look.node) {
        (Some(wrote), Some(node)) => wrote != node,
        _ => look.seen.took_over,
    }
}

fn gone() -> Failure {
    Failure::new(ErrorKind::Unavailable, "the store was dropped")
}
