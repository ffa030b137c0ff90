//! Getting to know the members: who they are, that no two are the same server, what their clocks show;
//! and listening to all of them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Error, ErrorKind, Inbox, Listener, Push, Timestamp};

use super::agreement::median;
use super::attendance::Attendance;
use super::electorate::Electorate;
use super::epoch::Epoch;
use super::failures::Failures;
use super::member::Member;
use super::{CLOCK_READ, Settings, Shared};
use crate::clock::{Clock, bounded};
use crate::random;

/// How long the first meeting may take.
const LIMIT: Duration = Duration::from_secs(3);
/// How long to wait before a member is listened to that could not be.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

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
    let (mut met, mut failures) = (0, Failures::default());
    let mut attendance = Attendance::new(members.len());
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
                if let Some(objection) = attendance.objection(index, identity.as_ref()) {
                    return Err(objection.error(ErrorKind::Configuration, members, index));
                }
                met += 1;
            }
            Some(Some((index, Ok(Err(error))))) => failures.note(index, error),
            Some(Some((_, Err(_)))) => {}
        }
    }
    if met < electorate.to_keep {
        let (needed, count) = (electorate.to_keep, members.len());
        return Err(failures.too_few("keep", met, needed, count));
    }
    let now = clock.now();
    let clocks = members.iter().filter_map(|member| member.clock_at(now));
    let reading = median(clocks.map(Timestamp::as_micros).collect()).unwrap_or(0);
    Ok(Epoch::new(now, Timestamp::from_micros(reading)))
}

impl Shared {
    /// The member to whose server this one leads, too. It is not asked then: one server has one voice.
    pub(super) fn twin(&self, index: usize) -> Option<&Member> {
        let identity = self.members[index].identity()?;
        let mut before = self.members[..index].iter();
        let twin = before.find(|member| member.identity().as_ref() == Some(&identity));
        twin.map(|member| &**member)
    }

    /// Reads the clocks if that was long ago for too many.
    pub(super) async fn read_clocks(&self) {
        let now = self.clock.now();
        let newly = self.members.iter();
        let newly = newly.filter(|member| member.was_read(now, CLOCK_READ));
        if newly.count() >= self.electorate.to_take {
            return;
        }
        let mut looks = FuturesUnordered::new();
        for member in &self.members {
            // On its own: a slow one, for which nobody waits, is read all the same.
            looks.push(self.runtime.spawn(member.clone().introduce()));
        }
        let enough = async {
            let mut read = 0;
            while read < self.electorate.to_take {
                let Some(look) = looks.next().await else {
                    return;
                };
                read += usize::from(matches!(look, Ok(Ok(_))));
            }
        };
        // Whoever does not answer is no worse off than before.
        bounded(&*self.clock, self.node_timeout, enough).await;
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
    let relay = shared.rings.relay(listener.clone());
    let mut beginnings = FuturesUnordered::new();
    for (index, member) in shared.members.iter().enumerate() {
        let (member, inbox, relay) = (member.clone(), inbox.clone(), relay.clone());
        let (runtime, clock) = (shared.runtime.clone(), shared.clock.clone());
        let listener = listener.clone();
        let listening = tokio::spawn(async move {
            let listening = member.store.listen(&inbox, relay.clone()).await;
            if listening.is_err() {
                runtime.spawn(listen_later(member, inbox, relay, listener, clock));
            }
            listening.map_err(|error| (index, error))
        });
        beginnings.push(listening);
    }
    let (mut begun, mut failures) = (0, Failures::default());
    while begun < shared.electorate.to_keep {
        match beginnings.next().await {
            Some(Ok(Ok(()))) => begun += 1,
            Some(Ok(Err((index, error)))) => failures.note(index, error),
            Some(Err(_)) => {}
            None => {
                let (needed, count) = (shared.electorate.to_keep, shared.members.len());
                return Err(failures.too_few("wait for", begun, needed, count));
            }
        }
    }
    Ok(())
}

/// Listens to a member that was out of reach as soon as it is not.
async fn listen_later(
    member: Arc<Member>,
    inbox: Inbox,
    relay: Weak<dyn Listener>,
    listener: Weak<dyn Listener>,
    clock: Arc<dyn Clock>,
) {
    loop {
        clock.sleep(random::jittered(LISTEN_AGAIN)).await;
        // Nobody listens any more; the relay is kept a while longer.
        if listener.strong_count() == 0 {
            return;
        }
        if member.store.listen(&inbox, relay.clone()).await.is_ok() {
            if let Some(relay) = relay.upgrade() {
                relay.pushed(Push::Missed);
            }
            return;
        }
    }
}
