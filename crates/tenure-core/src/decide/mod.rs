//! [`decide`]: the whole lock, as one pure function. One file per request beside this one, and
//! `admit.rs` for the rule that they share: who gets in next.

mod acquire;
mod admit;
mod cancel;
mod convert;
mod inspect;
mod reinstate;
mod release;
mod renew;
mod vote;

use crate::{Action, Fence, Holder, Inbox, LockState, Outcome, OwnerId, Phase, Timestamp};

/// Decides one action on one name.
///
/// Every step first forgets what has ended (`expire`), then does what was asked, and lets in whoever
/// can get in (`admit`); only [`Inspect`](Action::Inspect) changes nothing at all. Every step may be
/// repeated at the same `now`: the second time changes nothing and answers the same, except that
/// what *removes* something (release, cancel, force-release) answers the second time that nothing is
/// left.
///
/// `liveness` is what the store can see of the processes behind inboxes; [`Everyone`] if nothing.
///
/// ```
/// use tenure_core::*;
/// # let acquire = |byte| Action::Acquire(Acquire {
/// #     owner: OwnerId::from_bytes([byte; 16]), mode: Mode::Exclusive, ttl: Ttl::DEFAULT,
/// #     party: Party::default(), waiting: Waiting::No, anchor: None, not_after: None });
/// let now = Timestamp::from_micros(1_000_000);
/// let first = decide(LockState::default(), &acquire(1), now, &Everyone);
/// assert!(matches!(first.outcome, Outcome::Granted(_)));
/// let second = decide(first.state, &acquire(2), now, &Everyone);
/// assert!(matches!(second.outcome, Outcome::Busy(_)));
/// ```
#[must_use]
pub fn decide(
    state: LockState,
    action: &Action,
    now: Timestamp,
    liveness: &dyn Liveness,
) -> Decision {
    decide_in(Phase::ALWAYS_OPEN, state, action, now, liveness)
}

/// Decides one action on one name in a store that may have forgotten.
///
/// [`Phase::ALWAYS_OPEN`] is [`decide`]. While recovering, no step lets anybody in, an acquire never answers
/// with a grant, and a renewal with [`Terms`](crate::Terms) takes back a hold that is not stored.
/// Once it is open again, whoever asks for what it was granted before that gets it anew, with a higher fence.
#[must_use]
pub fn decide_in(
    phase: Phase,
    mut state: LockState,
    action: &Action,
    now: Timestamp,
    liveness: &dyn Liveness,
) -> Decision {
    if matches!(action, Action::Inspect) {
        let outcome = inspect::inspect(&state, now, liveness);
        return Decision {
            state,
            outcome,
            handovers: Vec::new(),
        };
    }
    let mut step = Step {
        now,
        phase,
        liveness,
        handovers: Vec::new(),
    };
    step.expire(&mut state);
    let outcome = match action {
        Action::Acquire(request) => acquire::acquire(&mut state, request, &mut step),
        Action::Renew(request) => renew::renew(&mut state, request, &mut step),
        Action::Convert(request) => convert::convert(&mut state, request, &mut step),
        Action::Release(request) => release::release(&mut state, request, &mut step),
        Action::Cancel(request) => cancel::cancel(&mut state, request, &mut step),
        Action::ForceRelease(request) => release::force_release(&mut state, request, &mut step),
        Action::Vote(request) => vote::vote(&mut state, request, &mut step),
        Action::Inspect => unreachable!("answered above: it changes nothing"),
    };
    Decision {
        state,
        outcome,
        handovers: step.handovers,
    }
}

/// What follows from one action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the store remembers from now on.
    pub state: LockState,
    /// What the caller is told.
    pub outcome: Outcome,
    /// What is pushed to waiters that were let in by this step.
    pub handovers: Vec<Handover>,
}

/// A grant for a waiter, to be pushed to its inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Where to.
    pub inbox: Inbox,
    /// For whom.
    pub owner: OwnerId,
    /// Its fence.
    pub fence: Fence,
    /// The end of its claim window: until it is renewed, the grant lasts no longer.
    pub expiry: Timestamp,
}

/// What a store can see of the processes behind inboxes.
pub trait Liveness {
    /// Whether a push to `inbox` would reach somebody now. A waiter that cannot be reached is
    /// passed over but keeps its place.
    fn reachable(&self, inbox: &Inbox) -> bool;

    /// Whether the process behind `anchor` may still be alive. A hold or place that is tied to a
    /// dead process ends at once. Death is final, and whoever asks is alive: never say otherwise of
    /// the anchor in the [`Acquire`](crate::Acquire) that is being decided.
    fn alive(&self, anchor: &Inbox) -> bool;
}

/// The [`Liveness`] of a store that sees nothing: everyone may be alive and reachable.
#[derive(Clone, Copy, Debug)]
pub struct Everyone;

impl Liveness for Everyone {
    fn reachable(&self, _inbox: &Inbox) -> bool {
        true
    }

    fn alive(&self, _anchor: &Inbox) -> bool {
        true
    }
}

/// What a single step knows and collects.
struct Step<'a> {
    now: Timestamp,
    phase: Phase,
    liveness: &'a dyn Liveness,
    handovers: Vec<Handover>,
}

impl Step<'_> {
    /// Whether the store is open again since this was granted.
    fn is_from_before(&self, holder: &Holder) -> bool {
        matches!(self.phase, Phase::Open { since } if holder.since < since)
    }
}
