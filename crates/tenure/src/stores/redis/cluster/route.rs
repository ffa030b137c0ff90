//! Carrying out a batch: each request is sent to the node that has its slot, to all nodes at once, and
//! again where a node says that it was the wrong one or that it is too early.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tenure_core::{Error, ErrorKind, Moment, Reply, Request};

use super::super::connection::Link;
use super::super::errors::Failure;
use super::super::step::{self, Nonces};
use super::nodes::Nodes;
use super::redirect::Redirect;

/// How often a request is sent on at once, before it is clear that nodes do not agree.
const REDIRECTS: usize = 5;

/// Before asking again for a slot that nobody serves.
const PAUSE: Duration = Duration::from_millis(50);

/// How long requests that travel together wait for the slot of one of them.
const IN_COMPANY: Duration = Duration::from_millis(150);

/// Decides a batch. Never takes longer than a call may.
pub(super) async fn apply(
    nodes: &Nodes,
    nonces: &Nonces,
    batch: &[Request],
) -> Vec<Result<Reply, Error>> {
    let began = nodes.clock.now();
    let deadline = began.plus(nodes.call_timeout());
    // Whoever travels alone holds up nobody by waiting.
    let patience = match batch.len() {
        1 => deadline,
        _ => deadline.min(began.plus(IN_COMPANY)),
    };
    let mut results: Vec<Option<Result<Reply, Error>>> = batch.iter().map(|_| None).collect();
    let mut open: Vec<usize> = (0..batch.len()).collect();
    let mut rounds = 0;
    while !open.is_empty() {
        rounds += 1;
        let (mut again, mut waits) = (Vec::new(), rounds > REDIRECTS);
        for (index, answer) in ask(nodes, nonces, batch, open, deadline).await {
            let failure = match answer {
                Ok(reply) => {
                    results[index] = Some(Ok(reply));
                    continue;
                }
                Err(failure) => failure,
            };
            match failure.redirect.clone() {
                Some(redirect) => {
                    waits |= !matches!(redirect, Redirect::Moved { .. });
                    again.push((index, failure, redirect));
                }
                None => results[index] = Some(Err(failure.error())),
            }
        }
        let pause = if waits { PAUSE } else { Duration::ZERO };
        if again.is_empty() || nodes.clock.now().plus(pause) >= patience {
            for (index, failure, redirect) in again {
                results[index] = Some(Err(failure.in_cluster(&redirect).error()));
            }
            break;
        }
        if again
            .iter()
            .any(|(.., redirect)| *redirect == Redirect::Down)
        {
            nodes.outdated.notify_one();
        }
        if waits {
            nodes.clock.sleep(pause).await;
        }
        open = again.into_iter().map(|(index, ..)| index).collect();
    }
    let unasked = || Err(nobody().error());
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(unasked))
        .collect()
}

/// Asks each node for what is its own, all at once.
async fn ask(
    nodes: &Nodes,
    nonces: &Nonces,
    batch: &[Request],
    open: Vec<usize>,
    deadline: Moment,
) -> Vec<(usize, Result<Reply, Failure>)> {
    let mut answers = Vec::with_capacity(open.len());
    let mut groups: BTreeMap<usize, (Arc<Link>, Vec<usize>)> = BTreeMap::new();
    for index in open {
        let slot = nodes.keys.slot(&batch[index].name).unwrap_or(0);
        let owner = nodes.slots.owner(slot).zip(nodes.owner(slot));
        match owner {
            Some((number, link)) => {
                let (_, group) = groups.entry(number).or_insert_with(|| (link, Vec::new()));
                group.push(index);
            }
            None => answers.push((index, Err(nobody()))),
        }
    }
    let asking = groups.into_values().map(async |(link, group)| {
        let requests = group.iter().map(|index| &batch[*index]);
        let replies = step::decide(&link, nonces, requests, deadline).await;
        let replies = replies.into_iter().map(|reply| {
            reply.map_err(|failure| {
                notice(nodes, &link, &failure);
                failure.at(&link.options.address)
            })
        });
        group
            .iter()
            .copied()
            .zip(replies.collect::<Vec<_>>())
            .collect::<Vec<_>>()
    });
    answers.extend(join_all(asking).await.into_iter().flatten());
    answers
}

/// A failure says something about the nodes, too.
fn notice(nodes: &Nodes, link: &Link, failure: &Failure) {
    let moved = failure.redirect.as_ref();
    match moved.and_then(|redirect| redirect.owner(&link.options.address)) {
        Some((slot, address)) => nodes.moved(slot, &address),
        // Perhaps a replica has taken its place.
        None if failure.fatal => nodes.outdated.notify_one(),
        None => {}
    }
}

fn nobody() -> Failure {
    let message = "nobody serves this lock";
    Failure::new(ErrorKind::Unavailable, message).redirecting(Redirect::Down)
}
