//! The server: the core's own `decide_in`, less the rules that are left out.

use tenure_core::{
    Action, Decision, Everyone, Fence, LockState, Outcome, OwnerId, Phase, decide_in,
};

use super::client::{TICK, TTL, time};
use super::model::{Rule, Rules};

#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) lock: LockState,
    pub(super) life: u8,
    /// Until when nobody is let in.
    pub(super) opens: u16,
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            lock: LockState::default(),
            life: 0,
            opens: 0,
        }
    }

    /// Forgets everything, and knows that it may have.
    pub(super) fn restart(&mut self, now: u16, rules: Rules<'_>) {
        self.lock = LockState::default();
        self.life += 1;
        self.opens = if rules.keep(Rule::Recovery) {
            now + TTL
        } else {
            0
        };
    }

    pub(super) fn is_open(&self, now: u16) -> bool {
        self.opens <= now
    }

    /// Drops what every step would drop first, so that states that differ in nothing else are one.
    pub(super) fn tidy(&mut self, now: u16) {
        self.lock.holders.retain(|it| it.expiry > time(now));
        self.lock.queue.retain(|it| it.alive_until > time(now));
    }

    /// Carries out a request that was sent to `life`; `None` if it is refused because of that.
    pub(super) fn decide(
        &mut self,
        life: u8,
        action: &Action,
        now: u16,
        rules: Rules<'_>,
    ) -> Option<Decision> {
        if life != self.life {
            return None;
        }
        let phase = if self.is_open(now) {
            let since = time(self.opens);
            Phase::Open { since }
        } else {
            let until = time(self.opens);
            Phase::Recovering { until }
        };
        let before = self.lock.clone();
        let action = misread(action.clone(), &before, rules);
        let mut decision = decide_in(phase, before.clone(), &action, time(now), &Everyone);
        spoil(&mut decision, &before, now, rules);
        self.lock = decision.state.clone();
        Some(decision)
    }
}

/// What a server that does not keep all rules takes an action for.
fn misread(mut action: Action, lock: &LockState, rules: Rules<'_>) -> Action {
    match &mut action {
        Action::Release(release) if !rules.keep(Rule::ReleasesNameTheHold) => {
            if let Some(holder) = lock.holders.first() {
                (release.owner, release.fence) = (holder.owner, holder.fence);
            }
        }
        Action::Cancel(cancel)
            if !rules.keep(Rule::CancelEndsGrants) && lock.holder(cancel.owner).is_some() =>
        {
            cancel.owner = OwnerId::from_bytes([u8::MAX; 16]);
        }
        _ => {}
    }
    action
}

/// What such a server makes of a decision.
fn spoil(decision: &mut Decision, before: &LockState, now: u16, rules: Rules<'_>) {
    let state = &mut decision.state;
    if !rules.keep(Rule::WaitersEnd) {
        for waiter in &mut state.queue {
            waiter.alive_until = time(now + 1_000);
        }
    }
    for handover in &mut decision.handovers {
        if rules.keep(Rule::ClaimWindow) {
            break;
        }
        handover.expiry = time(now).plus(TICK * u32::from(TTL));
        for holder in &mut state.holders {
            holder.expiry = handover.expiry;
        }
    }
    if !rules.keep(Rule::FencesFollowTheClock) {
        let mut new = state.holders.iter_mut();
        if let Some(holder) = new.find(|it| before.holder(it.owner).is_none()) {
            let fence = Fence::from_u64(before.last_fence.as_u64() + 1);
            holder.fence = fence;
            state.last_fence = fence;
            if let Outcome::Granted(grant) = &mut decision.outcome {
                grant.fence = fence;
            }
            decision
                .handovers
                .iter_mut()
                .for_each(|it| it.fence = fence);
        }
    }
}
