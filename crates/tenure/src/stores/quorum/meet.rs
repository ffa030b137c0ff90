//! Getting to know the members: who they are, that no two are the same server, what their clocks show;
//! and listening to all of them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Error, ErrorKind, Inbox, Listener, Moment, Request, Timestamp};

use super::agreement::median;
use super::electorate::Electorate;
use super::epoch::Epoch;
use super::member::{Answer, Franchise, Member};
use super::take::unreachable;
use super::{Settings, Shared};
use crate::clock::{Clock, bounded};

/// How long the first meeting may take.
const LIMIT: Duration = Duration::from_secs(3);

/// Meets all members, waits a little longer for the slow ones, and sets the quorum's clock.
///
/// # Errors
/// [`ErrorKind::Configuration`] if two are the same server; if too few answer, why.
pub(super) async fn everybody(
    members: &[Arc<Member>],
    electorate: Electorate,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<Epoch, Error> {
    let mut meetings = FuturesUnordered::new();
    for (index, member) in members.iter().enumerate() {
        let member = member.clone();
        // On its own, so that it goes on when nobody waits for it any more.
        let meeting = tokio::spawn(member.introduce());
        meetings.push(async move { (index, meeting.await) });
    }
    let (mut met, mut failure) = (0, None);
    let started = clock.now();
    loop {
        let rest = LIMIT.saturating_sub(clock.now().since(started));
        let patience = if met
            < electorate
                .to_keep
                .max(electorate.to_take.min(members.len()))
        {
            rest
        } else {
            rest.min(settings.node_timeout * 2)
        };
        match bounded(&**clock, patience, meetings.next()).await {
            None | Some(None) => break,
            Some(Some((index, Ok(Ok(identity))))) => {
                admit(members, index, identity)?;
                met += 1;
            }
            Some(Some((_, Ok(Err(error))))) => failure = failure.or(Some(error)),
            Some(Some((_, Err(_)))) => {}
        }
    }
    if met < electorate.to_keep {
        let (needed, count) = (electorate.to_keep, members.len());
        return Err(unreachable("keep", met, needed, count, failure));
    }
    let now = clock.now();
    let clocks = members.iter().filter_map(|member| member.clock_at(now));
    let reading = median(clocks.map(Timestamp::as_micros).collect()).unwrap_or(0);
    Ok(Epoch::new(now, Timestamp::from_micros(reading)))
}

/// Lets a member vote, unless another one is the same server. One at a time: of two that are the same
/// each might otherwise see that the other is not admitted yet.
fn admit(members: &[Arc<Member>], index: usize, identity: Option<String>) -> Result<(), Error> {
    let member = &members[index];
    let same = members.iter().enumerate().find(|(other, known)| {
        let theirs = known.franchise();
        *other != index && identity.is_some() && theirs == Franchise::Votes(identity.clone())
    });
    if let Some((_, other)) = same {
        member.enfranchise(Franchise::Duplicate(other.label.clone()));
        return Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "{} and {} are the same server: one server that is named twice has one voice, not \
                 two. Name each server once",
                other.label, member.label
            ),
        ));
    }
    member.enfranchise(Franchise::Votes(identity));
    Ok(())
}

impl Shared {
    /// Sees to it that a member of which nobody knows which server it is gets known.
    pub(super) fn meet(self: &Arc<Self>, index: usize) {
        let member = &self.members[index];
        if member.franchise() != Franchise::Unknown || !member.begin_meeting() {
            return;
        }
        let shared = self.clone();
        self.runtime.spawn(async move {
            let member = &shared.members[index];
            // A duplicate does not vote; `diagnose` says so.
            let _ = shared.introduced(index).await;
            member.end_meeting();
        });
    }

    /// Asks a member of which nobody knows which server it is, once that is known: a renewal by a server
    /// that answers under two names would count twice.
    pub(super) async fn ask_once_known(
        self: Arc<Self>,
        index: usize,
        sent: Moment,
        batch: Vec<Request>,
    ) -> Answer {
        match self.introduced(index).await {
            Ok(()) => self.members[index].clone().ask(sent, batch).await,
            Err(failure) => {
                let (kind, text) = (failure.kind(), failure.to_string());
                let replies = batch.iter().map(|_| Err(Error::new(kind, text.clone())));
                let replies = replies.collect();
                Answer { sent, replies }
            }
        }
    }

    async fn introduced(&self, index: usize) -> Result<(), Error> {
        let identity = self.members[index].clone().introduce().await?;
        let _one_at_a_time = self.admission.lock();
        admit(&self.members, index, identity)
    }

    pub(super) fn is_duplicate(&self, index: usize) -> bool {
        matches!(self.members[index].franchise(), Franchise::Duplicate(_))
    }
}

/// Listens at every member, and begins as soon as so many do that a push cannot be missed by all.
///
/// # Errors
/// Why too few can be listened to.
pub(super) async fn listen(
    shared: &Arc<Shared>,
    inbox: &Inbox,
    listener: Weak<dyn Listener>,
) -> Result<(), Error> {
    let relay = shared.rings.relay(listener);
    let mut beginnings = FuturesUnordered::new();
    for member in &shared.members {
        let (member, inbox, relay) = (member.clone(), inbox.clone(), relay.clone());
        let listening = tokio::spawn(async move { member.store.listen(&inbox, relay).await });
        beginnings.push(listening);
    }
    let (mut begun, mut failure) = (0, None);
    while begun < shared.electorate.to_keep {
        match beginnings.next().await {
            Some(Ok(Ok(()))) => begun += 1,
            Some(Ok(Err(error))) => failure = failure.or(Some(error)),
            Some(Err(_)) => {}
            None => {
                let (needed, count) = (shared.electorate.to_keep, shared.members.len());
                return Err(unreachable("wait for", begun, needed, count, failure));
            }
        }
    }
    Ok(())
}
