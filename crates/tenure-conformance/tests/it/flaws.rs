//! A shelf of mistakes that a store could make.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{
    Action, Decision, Fence, Grant, Inbox, LockName, LockState, Mode, Outcome, OwnerId, Request,
    Timestamp, Ttl, Waiting,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    TellsNobody,
    TellsEverybody,
    ForgetsTheFenceOfAFreeLock,
    ReleasesWhateverTheOwnerHolds,
    RenewsWhateverTheOwnerHolds,
    IgnoresTheTimeLimit,
    TurnsBatchesRound,
    ServesTheLastFirst,
    LetsAReturningWaiterOvertake,
    KeepsSilentWaiters,
    GivesAPushedGrantItsFullTtl,
    ProlongsOnRepetition,
    LetsAnyoneReadBesideAWriter,
    OverbooksPermits,
    ForgetsThatItWasForced,
    ForgetsWhoItIs,
    IgnoresCase,
    CutsNames,
    ListsByPattern,
    ListsWhatHasEnded,
    KeepsWhatWasCancelled,
    NeverExpires,
    SaysReleasedTwice,
    HoldsNothing,
    KnowsOneNameOnly,
    ShortensOnRenewal,
    GivesOldFences,
    KeepsReadersApart,
    TakesARepetitionForAnother,
    QueuesUnasked,
    LetsTheImpatientOvertake,
    NeverConverts,
    MixesUpConflicts,
    ReleasesNothing,
    ForcesWhateverTheOwnerHolds,
    NeverForces,
    RefusesToQueue,
    CountsOneHolder,
    IsTooLateForHolders,
    AnswersTooMuch,
    AnswersTooLittle,
    ListsEverything,
    ListsHoldersOnly,
    GivesHalfTheTtl,
    ConvertsPermits,
}

use Flaw::*;

impl Flaw {
    pub(crate) const ALL: [Self; 45] = [
        TellsNobody,
        TellsEverybody,
        ForgetsTheFenceOfAFreeLock,
        ReleasesWhateverTheOwnerHolds,
        RenewsWhateverTheOwnerHolds,
        IgnoresTheTimeLimit,
        TurnsBatchesRound,
        ServesTheLastFirst,
        LetsAReturningWaiterOvertake,
        KeepsSilentWaiters,
        GivesAPushedGrantItsFullTtl,
        ProlongsOnRepetition,
        LetsAnyoneReadBesideAWriter,
        OverbooksPermits,
        ForgetsThatItWasForced,
        ForgetsWhoItIs,
        IgnoresCase,
        CutsNames,
        ListsByPattern,
        ListsWhatHasEnded,
        KeepsWhatWasCancelled,
        NeverExpires,
        SaysReleasedTwice,
        HoldsNothing,
        KnowsOneNameOnly,
        ShortensOnRenewal,
        GivesOldFences,
        KeepsReadersApart,
        TakesARepetitionForAnother,
        QueuesUnasked,
        LetsTheImpatientOvertake,
        NeverConverts,
        MixesUpConflicts,
        ReleasesNothing,
        ForcesWhateverTheOwnerHolds,
        NeverForces,
        RefusesToQueue,
        CountsOneHolder,
        IsTooLateForHolders,
        AnswersTooMuch,
        AnswersTooLittle,
        ListsEverything,
        ListsHoldersOnly,
        GivesHalfTheTtl,
        ConvertsPermits,
    ];

    /// Random traces use plain names, few holders and few requests at a time.
    pub(crate) fn hides_from_the_oracle(self) -> bool {
        matches!(
            self,
            IgnoresCase
                | CutsNames
                | ListsByPattern
                | AnswersTooMuch
                | AnswersTooLittle
                | CountsOneHolder
        )
    }

    /// What the store takes a request for.
    pub(crate) fn misread(
        self,
        mut request: Request,
        locks: &HashMap<LockName, LockState>,
    ) -> Request {
        let held = |owner| {
            let state = locks.get(&request.name);
            state.and_then(|state| state.holder(owner)).map(|h| h.fence)
        };
        match (self, &mut request.action) {
            (ReleasesWhateverTheOwnerHolds, Action::Release(release)) => {
                release.fence = held(release.owner).unwrap_or(release.fence);
            }
            (RenewsWhateverTheOwnerHolds, Action::Renew(renew)) => {
                renew.fence = held(renew.owner).unwrap_or(renew.fence);
            }
            (IgnoresTheTimeLimit, Action::Acquire(acquire)) => acquire.not_after = None,
            (ForgetsWhoItIs, Action::Acquire(acquire)) => acquire.party = Default::default(),
            (OverbooksPermits, Action::Acquire(acquire)) => {
                if let Mode::Permits(permits) = acquire.mode {
                    acquire.mode = Mode::permits(1, permits.capacity()).unwrap();
                }
            }
            (GivesHalfTheTtl, Action::Acquire(acquire)) => {
                let half = acquire.ttl.duration() / 2;
                acquire.ttl = Ttl::new(half).unwrap_or(Ttl::MIN);
            }
            (KeepsReadersApart, Action::Acquire(acquire)) if acquire.mode == Mode::Shared => {
                acquire.mode = Mode::Exclusive;
            }
            (TakesARepetitionForAnother, Action::Acquire(acquire))
                if held(acquire.owner).is_some() =>
            {
                acquire.owner = stranger();
            }
            (IsTooLateForHolders, Action::Acquire(acquire)) if acquire.not_after.is_some() => {
                acquire.owner = stranger();
            }
            (QueuesUnasked, Action::Acquire(acquire)) if acquire.waiting == Waiting::No => {
                acquire.waiting = Waiting::Queue {
                    inbox: Inbox::from_bytes([1; 16]),
                    alive_for: Duration::from_secs(60),
                };
            }
            (RefusesToQueue, Action::Acquire(acquire)) => acquire.waiting = Waiting::No,
            (NeverConverts, Action::Convert(convert)) => convert.fence = Fence::NONE,
            (ForcesWhateverTheOwnerHolds, Action::ForceRelease(force)) => {
                force.fence = held(force.owner).unwrap_or(force.fence);
            }
            (NeverForces, Action::ForceRelease(force)) => force.fence = Fence::NONE,
            (ReleasesNothing, Action::Release(release)) => release.fence = Fence::NONE,
            (KnowsOneNameOnly, _) => request.name = LockName::new("the one").unwrap(),
            (IgnoresCase, _) => {
                request.name = LockName::new(request.name.as_str().to_lowercase()).unwrap();
            }
            (CutsNames, _) => {
                let cut: String = request.name.as_str().chars().take(100).collect();
                request.name = LockName::new(cut.trim_end()).unwrap();
            }
            _ => {}
        }
        request
    }

    /// What the store makes of a decision.
    pub(crate) fn spoil(self, decision: &mut Decision, action: &Action, now: Timestamp) {
        let Decision {
            state,
            outcome,
            handovers,
        } = decision;
        let long = Duration::from_secs(3_600);
        match self {
            TellsNobody => handovers.clear(),
            ForgetsTheFenceOfAFreeLock if state.is_idle() => state.last_fence = Fence::NONE,
            ServesTheLastFirst => state.queue.make_contiguous().reverse(),
            LetsAReturningWaiterOvertake => {
                let newcomer = state.queue.back().is_some_and(|w| w.since == now);
                if newcomer && let Some(waiter) = state.queue.pop_back() {
                    state.queue.push_front(waiter);
                }
            }
            KeepsSilentWaiters => {
                for waiter in &mut state.queue {
                    waiter.alive_until = now.plus(long);
                }
            }
            GivesAPushedGrantItsFullTtl => {
                for holder in &mut state.holders {
                    for handover in handovers.iter_mut().filter(|h| h.owner == holder.owner) {
                        handover.expiry = now.plus(long);
                        holder.expiry = now.plus(long);
                    }
                }
            }
            ProlongsOnRepetition => {
                if let Outcome::Granted(Grant { expiry, .. }) = outcome {
                    *expiry = expiry.plus(now.since(Timestamp::from_micros(1_000_000_000)));
                }
            }
            LetsAnyoneReadBesideAWriter => {
                for holder in &mut state.holders {
                    if holder.mode == Mode::Exclusive {
                        holder.mode = Mode::Shared;
                    }
                }
            }
            HoldsNothing => state.holders.clear(),
            ShortensOnRenewal => {
                if let (Action::Renew(renew), Outcome::Renewed { expiry }) = (action, outcome) {
                    *expiry = now.plus(renew.ttl.duration());
                }
            }
            GivesOldFences => {
                if let Outcome::Granted(grant) = outcome {
                    let old = Fence::from_u64(grant.fence.as_u64().saturating_sub(1));
                    let holders = state.holders.iter_mut();
                    for holder in holders.filter(|holder| holder.fence == grant.fence) {
                        holder.fence = old;
                    }
                    grant.fence = old;
                    state.last_fence = Fence::from_u64(state.last_fence.as_u64().saturating_sub(1));
                }
            }
            LetsTheImpatientOvertake => {
                if let (Action::Acquire(acquire), Outcome::Busy(_)) = (action, &*outcome)
                    && state.fits(acquire.mode)
                {
                    let (fence, expiry) = (state.last_fence, now.plus(long));
                    *outcome = Outcome::Granted(Grant { fence, expiry });
                }
            }
            MixesUpConflicts => {
                if matches!(outcome, Outcome::Conflict { .. }) {
                    *outcome = Outcome::TooLate;
                }
            }
            ConvertsPermits => {
                if let (Action::Convert(_), Outcome::Conflict { .. }) = (action, &*outcome) {
                    *outcome = Outcome::Converted { expiry: now };
                }
            }
            CountsOneHolder => {
                if let Outcome::Busy(contention) = outcome {
                    contention.holder_count = contention.holder_count.min(6);
                }
            }
            ForgetsThatItWasForced => state.forced = None,
            KeepsWhatWasCancelled => {
                if let (Action::Cancel(_), Outcome::Cancelled(removed)) = (action, outcome) {
                    *removed = tenure_core::Removed::Nothing;
                }
            }
            NeverExpires => {
                for holder in &mut state.holders {
                    holder.expiry = holder.expiry.plus(long);
                }
            }
            SaysReleasedTwice => {
                if matches!(action, Action::Release(_)) {
                    *outcome = Outcome::Released;
                }
            }
            _ => {}
        }
    }
}

/// Somebody who has never been here before.
fn stranger() -> OwnerId {
    static STRANGERS: AtomicU64 = AtomicU64::new(0);
    let number = u128::from(STRANGERS.fetch_add(1, Ordering::Relaxed));
    OwnerId::from_bytes(number.to_be_bytes())
}
