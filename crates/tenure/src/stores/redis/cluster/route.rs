//! Carrying out a batch: each request is sent to the node that has its slot, to all nodes at once, and
//! again where a node says that it was the wrong one or that it is too early.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tenure_core::{Error, ErrorKind, Moment, Reply, Request};

use super::super::connection::Link;
use super::super::errors::Failure;
use super::super::step::{self, Decided, Nonces};
use super::agreement::Place;
use super::confirm::Answerer;
use super::nodes::Nodes;
use super::redirect::Redirect;

/// How often a request is sent on at once, before it is clear that nodes do not agree.
const REDIRECTS: usize = 5;

/// Before asking again for a slot that nobody serves.
const PAUSE: Duration = Duration::from_millis(50);

/// How long requests that travel together wait for a node that does not serve one of them.
const IN_COMPANY: Duration = Duration::from_millis(150);

/// Decides a batch. Never takes longer than a call may.
pub(super) async fn apply(
    nodes: &Nodes,
    nonces: &Nonces,
    batch: &[Request],
) -> Vec<Result<Reply, Error>> {
    let began = nodes.clock.now();
    let deadline = began.plus(nodes.call_timeout());
    let mut trip = Trip::new(nodes, batch);
    let travelling = trip.travel(nodes, nonces, batch, deadline);
    tokio::join!(travelling, nodes.refresh_confirmations(batch));
    let (mut results, answerers) = trip.arrive();
    nodes.vouch(began, deadline, &mut results, &answerers).await;
    results
}

/// What was answered, and by whom.
type Answered = (Result<Reply, Error>, Option<Answerer>);

/// A batch on its way.
struct Trip {
    answers: Vec<Option<Answered>>,
    /// Whether all of them are known to have to wait for their slots, and so hold up nobody.
    apart: bool,
}

impl Trip {
    fn new(nodes: &Nodes, batch: &[Request]) -> Self {
        let refused = |request| nodes.refusal(request).map(|why| (Err(why), None));
        let is_moving = |request: &Request| {
            let slot = nodes.keys.slot(&request.name).unwrap_or(0);
            nodes.slots.is_moving(slot) || nodes.slots.owner(slot).is_none()
        };
        Self {
            answers: batch.iter().map(refused).collect(),
            apart: batch.iter().all(is_moving),
        }
    }

    async fn travel(
        &mut self,
        nodes: &Nodes,
        nonces: &Nonces,
        batch: &[Request],
        deadline: Moment,
    ) {
        let open = (0..batch.len()).filter(|index| self.answers[*index].is_none());
        let mut open: Vec<usize> = open.collect();
        let mut rounds = 0;
        // Whoever travels alone, or with others in the same position, holds up nobody by waiting.
        let patience = match self.apart || batch.len() == 1 {
            true => deadline,
            false => deadline.min(nodes.clock.now().plus(IN_COMPANY)),
        };
        while !open.is_empty() {
            rounds += 1;
            let mut again = Vec::new();
            for (index, place, answer) in ask(nodes, nonces, batch, open, deadline).await {
                let slot = nodes.keys.slot(&batch[index].name).unwrap_or(0);
                let redirect = answer.as_ref().err().and_then(|it| it.redirect.clone());
                nodes
                    .slots
                    .set_moving(slot, redirect == Some(Redirect::Moving));
                match (answer, redirect) {
                    (Err(failure), Some(redirect)) => again.push((index, failure, redirect)),
                    (answer, _) => {
                        let answer = answer.map_err(|failure| failure.error());
                        self.answers[index] = Some((answer, place));
                    }
                }
            }
            let waits = |(.., redirect): &(usize, Failure, Redirect)| {
                rounds > REDIRECTS || !matches!(redirect, Redirect::Moved { .. })
            };
            let pause = if again.iter().any(waits) {
                PAUSE
            } else {
                Duration::ZERO
            };
            let late = nodes.clock.now().plus(pause) >= patience;
            open = Vec::new();
            for (index, failure, redirect) in again {
                // Whoever waits for a slot does so apart from all others, and is told to come again.
                if late || redirect == Redirect::Moving && !self.apart {
                    let answer = failure.in_cluster(&redirect).error();
                    self.answers[index] = Some((Err(answer), None));
                    continue;
                }
                if redirect == Redirect::Down {
                    nodes.outdated.notify_one();
                }
                open.push(index);
            }
            if !open.is_empty() && !pause.is_zero() {
                nodes.clock.sleep(pause).await;
            }
        }
    }

    fn arrive(self) -> (Vec<Result<Reply, Error>>, Vec<Option<Answerer>>) {
        let unasked = || (Err(nobody().error()), None);
        let answers = self.answers.into_iter();
        answers.map(|answer| answer.unwrap_or_else(unasked)).unzip()
    }
}

/// The requests for one node, as indices of the batch.
type Group = (Arc<Link>, Vec<(usize, Place)>);

/// Asks each node for what is its own, all at once.
async fn ask(
    nodes: &Nodes,
    nonces: &Nonces,
    batch: &[Request],
    open: Vec<usize>,
    deadline: Moment,
) -> Vec<(usize, Option<Answerer>, Result<Reply, Failure>)> {
    let mut answers = Vec::with_capacity(open.len());
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    for index in open {
        let slot = nodes.keys.slot(&batch[index].name).unwrap_or(0);
        let owner = nodes.slots.owner(slot).zip(nodes.owner(slot));
        match owner {
            Some((number, link)) => {
                let (_, group) = groups.entry(number).or_insert_with(|| (link, Vec::new()));
                group.push((index, (number, slot)));
            }
            None => answers.push((index, None, Err(nobody()))),
        }
    }
    let asking = groups.into_values().map(async |(link, group)| {
        let requests = group.iter().map(|(index, _)| &batch[*index]);
        let replies = step::decide(&link, nonces, requests, deadline).await;
        let answers = group.iter().zip(replies);
        let answers = answers.map(|((index, place), decided)| {
            let (line, reply) = match decided {
                Ok(Decided { reply, line }) => (line, Ok(reply)),
                Err(failure) => {
                    notice(nodes, &link, &failure);
                    (None, Err(failure.at(&link.options.address)))
                }
            };
            let place = *place;
            (*index, Some(Answerer { place, line }), reply)
        });
        answers.collect::<Vec<_>>()
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
