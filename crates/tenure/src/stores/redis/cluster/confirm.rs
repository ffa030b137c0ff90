//! For how long a hold may be relied upon: a primary that was replaced and does not know it goes on granting
//! and renewing, so its word alone is not enough.
//!
//! - A grant counts only after a majority of the primaries has confirmed the node as the one that has the
//!   slot and is alive, asked *after* the grant had arrived.
//! - A grant or a renewal counts only if the life that made it goes on then: a node that was replaced meanwhile and has its
//!   place back is confirmed as well, but another may have let somebody in.
//! - No hold is relied upon for longer than `max_ttl` after the last confirmation was asked for.
//! - The life of a slot begins on a node only after so many others have named it that none can confirm another
//!   any more (`memory::settle`).
//!
//! Why that is enough, and what it leaves open, is in `docs/decisions/010-redis-cluster.md`.

use std::collections::HashMap;
use std::sync::Arc;

use tenure_core::{Error, ErrorKind, Moment, PushedGrant, Recovery, Reply, Request};

use super::super::errors::Failure;
use super::super::relying::{Held, PATIENCE, Reliance, patience, prolongs};
use super::agreement::{Confirmation, Place, Wanted};
use super::nodes::Nodes;
use crate::clock::bounded;

/// Who has answered a request.
#[derive(Clone, Debug)]
pub(super) struct Answerer {
    pub(super) place: Place,
    /// The replication id with which the life began that has answered, if that is known.
    pub(super) line: Option<Arc<str>>,
}

/// Why an answer of a life that has ended is none.
const REPLACED: &str = "the node was replaced, or has restarted, since it answered: ask again";

impl Nodes {
    /// Whether the word of one node is not enough.
    fn confirms(&self) -> bool {
        self.options.caution.recovery != Recovery::Off
    }

    fn reliance(&self) -> Reliance {
        Reliance(self.options.caution.max_ttl.duration())
    }

    /// Why this request must not be sent, if it must not.
    pub(super) fn refusal(&self, request: &Request) -> Option<Error> {
        let refusal = || self.reliance().refusal(request);
        self.confirms().then(refusal).flatten()
    }

    /// Renews the confirmations that these requests prolong holds by, if they are old, without waiting for
    /// long: it goes on in the background. If that fails, holds last for as long as the last one allows.
    pub(super) async fn refresh_confirmations(&self, batch: &[Request]) {
        if !self.confirms() {
            return;
        }
        let now = self.clock.now();
        let place = |request: &Request| {
            let slot = self.keys.slot(&request.name)?;
            Some((self.slots.owner(slot)?, slot))
        };
        let mut due: HashMap<usize, Vec<Place>> = HashMap::new();
        let prolonged = batch.iter().filter(|request| prolongs(request));
        for place in prolonged.filter_map(place) {
            if self.reliance().is_due(self.last_asked(place), now) {
                due.entry(place.0).or_default().push(place);
            }
        }
        let asking = due.into_values().filter_map(|places| {
            let nodes = self.me.upgrade()?;
            Some(tokio::spawn(async move {
                let confirming = nodes.confirm(&places, now, now.plus(PATIENCE));
                bounded(&*nodes.clock, PATIENCE * 2, confirming).await
            }))
        });
        let asking = futures_util::future::join_all(asking);
        let _ = bounded(&*self.clock, patience(batch), asking).await;
    }

    /// Shortens what nodes have answered to what may be relied upon. `began` is from before the
    /// requests were sent; `answerers` says who has answered which.
    pub(super) async fn vouch(
        &self,
        began: Moment,
        deadline: Moment,
        replies: &mut [Result<Reply, Error>],
        answerers: &[Option<Answerer>],
    ) {
        if !self.confirms() {
            return;
        }
        let mut unsure: HashMap<usize, Vec<Place>> = HashMap::new();
        for (reply, answerer) in replies.iter().zip(answerers) {
            let (Ok(reply), Some(Answerer { place, line })) = (reply, answerer) else {
                continue;
            };
            let is_of = |last: Confirmation| last.is_of(line.as_deref());
            let asks = match Held::of(&reply.outcome) {
                Some(Held::Granted) => true,
                // Its slot has come to another node since, or another life has begun there.
                Some(Held::Prolonged) => !self.last(*place).is_some_and(is_of),
                None => false,
            };
            if asks {
                unsure.entry(place.0).or_default().push(*place);
            }
        }
        let arrived = self.clock.now();
        let asking = unsure.values();
        let asking = asking.map(|places| self.confirm(places, arrived, deadline));
        futures_util::future::join_all(asking).await;
        for (result, answerer) in replies.iter_mut().zip(answerers) {
            let (Ok(reply), Some(Answerer { place, line })) = (&mut *result, answerer) else {
                continue;
            };
            let last = self.last(*place);
            let asked = last.as_ref().map(|last| last.asked);
            let left = self.reliance().left(asked, began);
            let is_recent = match Held::shortened(reply, left) {
                Some(Held::Granted) => asked.is_some_and(|asked| asked >= arrived),
                Some(Held::Prolonged) => true,
                None => continue,
            };
            let is_of_it = last.is_some_and(|last| last.is_of(line.as_deref()));
            if !is_recent || left.is_zero() {
                self.outdated.notify_one();
                *result = Err(self.why_unconfirmed(place.0).error());
            } else if !is_of_it {
                self.outdated.notify_one();
                *result = Err(Error::new(ErrorKind::Unavailable, REPLACED));
            }
        }
    }

    /// The same for a grant that was pushed by this node, in the life that began with this replication id; `None` if it cannot be relied upon.
    pub(in super::super) async fn vouch_for_push(
        &self,
        node: usize,
        grant: PushedGrant,
        line: Option<&str>,
        deadline: Moment,
    ) -> Option<PushedGrant> {
        let place = (node, self.keys.slot(&grant.name)?);
        let arrived = self.clock.now();
        self.confirm(&[place], arrived, deadline).await;
        let last = self.last(place).filter(|last| last.asked >= arrived)?;
        last.is_of(line).then(|| self.reliance().pushed(grant))
    }

    /// Whether the lives of these slots may begin at this node, which may have been promoted: asked now.
    pub(in super::super) async fn confirm_beginning(
        &self,
        node: usize,
        slots: &[u16],
        promoted: bool,
        deadline: Moment,
    ) -> Vec<Result<(), Failure>> {
        let places: Vec<Place> = slots.iter().map(|slot| (node, *slot)).collect();
        let wanted = match promoted {
            true => Wanted::OneOfEach,
            false => Wanted::Majority,
        };
        let now = self.clock.now();
        let confirmed = self.agreed(&places, wanted, now, deadline).await;
        let answer = |place| match confirmed.contains(place) {
            true => Ok(()),
            false => {
                self.outdated.notify_one();
                Err(self.why_unconfirmed(node))
            }
        };
        places.iter().map(answer).collect()
    }

    /// Asks a majority, at or after `since`, to confirm these places of one node.
    async fn confirm(&self, places: &[Place], since: Moment, deadline: Moment) {
        self.agreed(places, Wanted::Majority, since, deadline).await;
    }

    fn last_asked(&self, place: Place) -> Option<Moment> {
        self.last(place).map(|last| last.asked)
    }
}
