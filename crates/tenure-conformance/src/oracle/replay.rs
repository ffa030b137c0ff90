//! Replaying one trace: the store and `decide` side by side.

use std::time::Duration;

use tenure_core::{
    Action, Fence, Inbox, Liveness, LockName, LockState, Outcome, OwnerId, PushedGrant, Reply,
    Timestamp, decide,
};

use super::compare::Compare;
use super::trace::{Ask, LOCKS, OWNERS, PEERS, Step, Trace, What};
use crate::peer::{Peer, World};
use crate::random::fresh_bytes;
use crate::subject::{PATIENCE, Subject};

/// The peers that all traces share.
pub(crate) struct Stage<'a> {
    subject: &'a dyn Subject,
    pub(super) peers: [Peer<'a>; PEERS],
}

impl<'a> Stage<'a> {
    pub(crate) async fn open(subject: &'a dyn Subject) -> Self {
        let world = World::new(subject, "oracle");
        let peers = [
            world.peer().await,
            world.peer().await,
            world.deaf_peer().await,
        ];
        Self { subject, peers }
    }

    /// Replays a trace on new names, by new owners.
    ///
    /// # Errors
    /// What the store and `decide` disagree about, in words.
    pub(crate) async fn replay(&self, trace: &Trace) -> Result<(), String> {
        let mut replay = Replay::new(self);
        let looks = (0..LOCKS).map(|lock| Ask {
            lock,
            owner: 0,
            what: What::Inspect,
        });
        let look = Step {
            pass: 0,
            peer: 0,
            batch: looks.collect(),
        };
        // Before all others, too, to know what time it is there: a fence from long ago may be one that a store forgets.
        for step in [&look].into_iter().chain(&trace.steps).chain([&look]) {
            if replay.step(step).await? == Verdict::TooClose {
                return Ok(());
            }
        }
        replay.check_listing().await?;
        let result = replay.check_pushes().await;
        for peer in &self.peers {
            peer.mailbox.keep(|grant| !replay.is_about(grant));
        }
        result
    }
}

#[derive(PartialEq, Eq)]
enum Verdict {
    Agreed,
    /// Something ended so close to this step that the store's tolerance decides.
    TooClose,
}

pub(super) struct Replay<'a> {
    pub(super) stage: &'a Stage<'a>,
    /// The prefix of all names.
    space: String,
    pub(super) owners: [OwnerId; OWNERS],
    pub(super) locks: Vec<Shadow>,
    pub(super) now: Timestamp,
    /// Per peer.
    expected: [Vec<PushedGrant>; PEERS],
}

/// What `decide` makes of one lock.
pub(super) struct Shadow {
    name: LockName,
    pub(super) state: LockState,
    /// When the store last decided about it.
    now: Timestamp,
    /// The last fence of each owner, held or not.
    pub(super) fences: [Fence; OWNERS],
    compare: Compare,
}

/// What the store can see of the stage.
struct Seen<'a>(&'a Stage<'a>);

impl Liveness for Seen<'_> {
    fn reachable(&self, inbox: &Inbox) -> bool {
        let deaf = &self.0.peers[PEERS - 1];
        !self.0.subject.sees_listeners() || *inbox != deaf.inbox
    }

    fn alive(&self, _anchor: &Inbox) -> bool {
        true
    }
}

impl<'a> Replay<'a> {
    fn new(stage: &'a Stage<'a>) -> Self {
        let world = World::new(stage.subject, "oracle");
        let tolerance = stage.subject.time_tolerance();
        let locks = (0..LOCKS).map(|lock| Shadow {
            name: world.name(&lock.to_string()),
            state: LockState::default(),
            now: Timestamp::from_micros(0),
            fences: [Fence::NONE; OWNERS],
            compare: Compare::new(tolerance),
        });
        Self {
            stage,
            space: world.space().to_owned(),
            owners: [(); OWNERS].map(|()| OwnerId::from_bytes(fresh_bytes())),
            locks: locks.collect(),
            now: Timestamp::from_micros(0),
            expected: Default::default(),
        }
    }

    async fn step(&mut self, step: &Step) -> Result<Verdict, String> {
        if step.pass > 0 {
            let pass = Duration::from_millis(step.pass);
            self.stage.subject.pass_time(pass).await;
        }
        let actions: Vec<_> = step.batch.iter().map(|ask| self.action(ask)).collect();
        let requests = actions.iter().zip(&step.batch);
        let requests: Vec<_> = requests
            .map(|(action, ask)| action.clone().on(self.locks[ask.lock].name.clone()))
            .collect();
        let results = self.stage.peers[step.peer].store.apply(&requests).await;
        if results.len() != requests.len() {
            return Err(format!(
                "{} results for {} requests",
                results.len(),
                requests.len()
            ));
        }
        for ((action, ask), result) in actions.iter().zip(&step.batch).zip(results) {
            let reply = result.map_err(|error| format!("{} failed: {error}", action.word()))?;
            if self.decide(ask, action, &reply)? == Verdict::TooClose {
                return Ok(Verdict::TooClose);
            }
        }
        Ok(Verdict::Agreed)
    }

    /// Lets `decide` answer as well, and compares.
    fn decide(&mut self, ask: &Ask, action: &Action, reply: &Reply) -> Result<Verdict, String> {
        let shadow = &mut self.locks[ask.lock];
        if shadow
            .compare
            .is_too_close(&shadow.state, action, reply.now)
        {
            return Ok(Verdict::TooClose);
        }
        // Per name: a store may decide about different names of one batch in any order.
        if reply.now < shadow.now {
            return Err(format!(
                "the store's clock went from {:?} back to {:?}",
                shadow.now, reply.now
            ));
        }
        shadow.now = reply.now;
        self.now = self.now.max(reply.now);
        let before = shadow.state.clone();
        let seen = Seen(self.stage);
        let decision = decide(before.clone(), action, reply.now, &seen);
        shadow.compare.forgets_silent(&before, reply.now);
        shadow
            .compare
            .outcomes(&reply.outcome, &decision.outcome)
            .map_err(|words| {
                format!(
                    "{words}\n  asked: {action:?}\n  at {:?} of {before:?}\n  store:  {:?}\n  decide: {:?}",
                    reply.now, reply.outcome, decision.outcome
                )
            })?;
        for handover in decision.handovers {
            let peers = self.stage.peers.iter();
            let receiver = peers.zip(&mut self.expected);
            for (_, expected) in receiver.filter(|(peer, _)| peer.inbox == handover.inbox) {
                expected.push(PushedGrant {
                    name: shadow.name.clone(),
                    owner: handover.owner,
                    fence: handover.fence,
                    now: reply.now,
                    expiry: handover.expiry,
                });
            }
        }
        shadow.state = decision.state;
        for holder in &shadow.state.holders {
            let owners = self.owners.iter().zip(&mut shadow.fences);
            for (_, fence) in owners.filter(|(owner, _)| **owner == holder.owner) {
                *fence = holder.fence;
            }
        }
        Ok(Verdict::Agreed)
    }

    /// The listing shows what `decide` would show of each name that is in use.
    async fn check_listing(&self) -> Result<(), String> {
        let store = &self.stage.peers[0].store;
        let looks = self.locks.iter();
        let looks: Vec<_> = looks
            .map(|lock| Action::Inspect.on(lock.name.clone()))
            .collect();
        let before = store.apply(&looks).await;
        let listing = store.list(&self.space).await;
        let listing = listing.map_err(|error| format!("list failed: {error}"))?;
        // A store may look at each name at another time; what ended meanwhile is shown or not.
        let undecided = self.locks.iter().zip(&before).any(|(lock, before)| {
            let ended = |before: &Reply| Compare::ends_within(&lock.state, before.now, listing.now);
            before.as_ref().is_ok_and(ended)
        });
        if undecided {
            return Ok(());
        }
        let mut shown = listing.locks.iter();
        for shadow in &self.locks {
            let Shadow { state, compare, .. } = shadow;
            if compare.is_too_close(state, &Action::Inspect, listing.now) {
                return Ok(());
            }
            let look = decide(
                state.clone(),
                &Action::Inspect,
                listing.now,
                &Seen(self.stage),
            );
            if matches!(&look.outcome, Outcome::State(snapshot) if snapshot.kind.is_none()) {
                continue;
            }
            let (name, snapshot) = shown.next().ok_or("the listing leaves a name out")?;
            let listed = Outcome::State(snapshot.clone());
            if *name != shadow.name {
                return Err(format!("the listing shows {name} for {}", shadow.name));
            }
            compare.outcomes(&listed, &look.outcome).map_err(|words| {
                format!(
                    "listed: {words}\n  at {:?} of {state:?}\n  store:  {listed:?}",
                    listing.now
                )
            })?;
        }
        match shown.next() {
            Some((name, _)) => Err(format!("the listing shows {name}, which nobody uses")),
            None => Ok(()),
        }
    }

    /// Waits until everything that `decide` would push has been pushed, and nothing else.
    async fn check_pushes(&self) -> Result<(), String> {
        for (peer, expected) in self.stage.peers.iter().zip(&self.expected).take(PEERS - 1) {
            let mut pushed = self.pushed(peer);
            for _ in 0..PATIENCE {
                if pushed.len() >= expected.len() {
                    break;
                }
                self.stage.subject.pause().await;
                pushed = self.pushed(peer);
            }
            let compare = &self.locks[0].compare;
            compare.pushes(&pushed, expected).map_err(|words| {
                format!("{words}\n  store:  {pushed:?}\n  decide: {expected:?}")
            })?;
        }
        Ok(())
    }

    fn pushed(&self, peer: &Peer<'_>) -> Vec<PushedGrant> {
        let mut grants = peer.mailbox.grants();
        grants.retain(|grant| self.is_about(grant));
        grants
    }

    fn is_about(&self, grant: &PushedGrant) -> bool {
        self.locks.iter().any(|lock| lock.name == grant.name)
    }
}
