//! The rules that hold after every step, written without the core's own helpers, so that a mistake
//! there is not repeated here.

use tenure_core::{
    Acquire, Action, Decision, Fence, Holder, LockState, Mode, Outcome, OwnerId, Removed, Renew,
    Timestamp, Waiter, Waiting,
};

use crate::answers::the_answer_is_true;
use crate::support::Seen;

/// One step, and its repetition at the same time.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    pub(crate) before: &'a LockState,
    pub(crate) action: &'a Action,
    pub(crate) now: Timestamp,
    pub(crate) seen: &'a Seen,
    pub(crate) decision: &'a Decision,
    pub(crate) repeated: &'a Decision,
    /// The highest fence of all earlier grants, with what was set aside for them.
    pub(crate) highest: Fence,
}

pub(crate) type Checked = Result<(), &'static str>;

pub(crate) fn rule(holds: bool, words: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(words) }
}

/// Checks every rule; the error is the broken rule in words.
pub(crate) fn check(step: &Taken<'_>) -> Checked {
    if matches!(step.action, Action::Inspect) {
        return inspect_changes_nothing(step);
    }
    holders_are_compatible(step)?;
    one_kind_at_a_time(step)?;
    an_owner_appears_once(step)?;
    what_has_ended_is_gone(step)?;
    fences_strictly_grow(step)?;
    no_hold_ends_early(step)?;
    no_place_is_lost(step)?;
    a_sign_of_life_never_shortens(step)?;
    only_the_living_are_let_in(step)?;
    first_come_first_served(step)?;
    nobody_waits_for_a_free_lock(step)?;
    exactly_those_let_in_unasked_are_told(step)?;
    the_answer_is_true(step)?;
    repeating_changes_nothing(step)
}

impl Taken<'_> {
    pub(crate) fn after(&self) -> &LockState {
        &self.decision.state
    }

    /// Whether a hold from before goes on at this step.
    pub(crate) fn goes_on(&self, holder: &Holder) -> bool {
        let alive = |anchor| !self.seen.dead.contains(anchor);
        holder.expiry > self.now && holder.anchor.as_ref().is_none_or(alive)
    }

    pub(crate) fn still_waits(&self, waiter: &Waiter) -> bool {
        let alive = |anchor| !self.seen.dead.contains(anchor);
        waiter.alive_until > self.now && waiter.anchor.as_ref().is_none_or(alive)
    }

    /// The holds that this step made, in grant order.
    fn new_holders(&self) -> Vec<&Holder> {
        let old = |holder: &Holder| {
            let mut before = self.before.holders.iter();
            before.any(|known| (known.owner, known.fence) == (holder.owner, holder.fence))
        };
        self.after().holders.iter().filter(|h| !old(h)).collect()
    }

    /// The place that this owner had before this step, if it was still kept.
    pub(crate) fn place(&self, owner: OwnerId) -> Option<(usize, &Waiter)> {
        let mut places = self.before.queue.iter().enumerate();
        places.find(|(_, waiter)| waiter.owner == owner && self.still_waits(waiter))
    }

    fn acquire(&self) -> Option<&Acquire> {
        match self.action {
            Action::Acquire(acquire) => Some(acquire),
            _ => None,
        }
    }

    /// The owner that the reply goes to, if it may be let in by this request.
    fn asker(&self) -> Option<OwnerId> {
        let answered = matches!(
            self.decision.outcome,
            Outcome::Granted(_) | Outcome::Queued { .. } | Outcome::Busy(_)
        );
        self.acquire().filter(|_| answered).map(|a| a.owner)
    }

    /// Whether this waiter would learn of a grant: by a push, or because it is the one who asks.
    fn can_be_told(&self, waiter: &Waiter) -> bool {
        self.asker() == Some(waiter.owner) || !self.seen.unreachable.contains(&waiter.inbox)
    }

    /// Whether somebody waits who would be let in if the lock were free.
    pub(crate) fn is_awaited(&self) -> bool {
        let mut queue = self.after().queue.iter();
        queue.any(|waiter| self.can_be_told(waiter))
    }
}

fn compatible(holders: &[Mode]) -> bool {
    let permits = |mode: &Mode| match mode {
        Mode::Permits(permits) => Some((permits.count(), permits.capacity())),
        _ => None,
    };
    let exclusive = holders.contains(&Mode::Exclusive);
    let shared = holders.contains(&Mode::Shared);
    let taken: u32 = holders.iter().filter_map(permits).map(|(n, _)| n).sum();
    let counted = holders.iter().filter_map(permits).next();
    let alone = !exclusive || holders.len() == 1;
    let unmixed = counted.is_none() || !(exclusive || shared);
    let enough = counted.is_none_or(|(_, capacity)| taken <= capacity);
    alone && unmixed && enough
}

fn modes(state: &LockState) -> Vec<Mode> {
    state.holders.iter().map(|holder| holder.mode).collect()
}

/// Whether `mode` could join those who hold in `state`.
pub(crate) fn could_join(state: &LockState, mode: Mode) -> bool {
    let mut modes = modes(state);
    modes.push(mode);
    compatible(&modes)
}

fn holders_are_compatible(step: &Taken<'_>) -> Checked {
    rule(compatible(&modes(step.after())), "incompatible holders")
}

fn one_kind_at_a_time(step: &Taken<'_>) -> Checked {
    let waiting = step.after().queue.iter().map(|waiter| waiter.mode);
    let all: Vec<_> = modes(step.after()).into_iter().chain(waiting).collect();
    let kind = |mode: &Mode| match mode {
        Mode::Permits(permits) => permits.capacity(),
        _ => 0,
    };
    rule(
        all.windows(2).all(|pair| kind(&pair[0]) == kind(&pair[1])),
        "the name has two kinds at a time",
    )
}

fn an_owner_appears_once(step: &Taken<'_>) -> Checked {
    let holding = step.after().holders.iter().map(|holder| holder.owner);
    let waiting = step.after().queue.iter().map(|waiter| waiter.owner);
    let mut owners: Vec<_> = holding.chain(waiting).collect();
    let all = owners.len();
    owners.sort_unstable();
    owners.dedup();
    rule(owners.len() == all, "an owner has two holds or places")
}

fn what_has_ended_is_gone(step: &Taken<'_>) -> Checked {
    let holders = step.after().holders.iter().all(|h| step.goes_on(h));
    rule(holders, "a hold goes on after its end")?;
    let waiters = step.after().queue.iter().all(|w| step.still_waits(w));
    rule(waiters, "a place is kept for a waiter that died")
}

fn fences_strictly_grow(step: &Taken<'_>) -> Checked {
    let mut last = step.highest.max(step.before.last_fence);
    for holder in step.new_holders() {
        rule(holder.fence > last, "a fence did not grow (S1)")?;
        let clock = holder.fence.as_u64() >= step.now.as_micros();
        rule(clock, "a fence is below the store's clock")?;
        last = holder.fence.last_of_grant(holder.mode);
    }
    rule(step.after().last_fence == last, "the last fence is wrong")
}

fn no_hold_ends_early(step: &Taken<'_>) -> Checked {
    let ends = |holder: &Holder| match step.action {
        Action::Release(r) => (r.owner, r.fence) == (holder.owner, holder.fence),
        Action::ForceRelease(r) => (r.owner, r.fence) == (holder.owner, holder.fence),
        Action::Cancel(cancel) => cancel.owner == holder.owner,
        _ => false,
    };
    let going_on = step.before.holders.iter().filter(|h| step.goes_on(h));
    for holder in going_on.filter(|holder| !ends(holder)) {
        let expected = as_asked(step, holder);
        rule(
            step.after().holders.contains(&expected),
            "a hold was ended or changed by a request that may not",
        )?;
    }
    Ok(())
}

/// What this step's request makes of a hold: renew and convert change their own, nothing else does.
fn as_asked(step: &Taken<'_>, holder: &Holder) -> Holder {
    let mut expected = holder.clone();
    match step.action {
        Action::Renew(r) if (r.owner, r.fence) == (holder.owner, holder.fence) => {
            expected.expiry = renewed(step, holder, r);
            if r.detach {
                expected.anchor = None;
            }
        }
        Action::Convert(c)
            if (c.owner, c.fence) == (holder.owner, holder.fence)
                && holder.mode == Mode::Exclusive =>
        {
            expected.mode = Mode::Shared;
        }
        _ => {}
    }
    expected
}

/// Until when a renewed hold lasts: never shorter than before, unless its holder leaves it behind.
pub(crate) fn renewed(step: &Taken<'_>, holder: &Holder, renew: &Renew) -> Timestamp {
    let asked = step.now.plus(renew.ttl.duration());
    if renew.detach {
        asked
    } else {
        holder.expiry.max(asked)
    }
}

fn no_place_is_lost(step: &Taken<'_>) -> Checked {
    let gives_up = |owner: OwnerId| match step.action {
        Action::Cancel(cancel) => cancel.owner == owner,
        Action::Acquire(acquire) => step.asker() == Some(owner) && acquire.waiting == Waiting::No,
        _ => false,
    };
    let kept = step.before.queue.iter().filter(|w| step.still_waits(w));
    let expected: Vec<_> = kept
        .map(|waiter| waiter.owner)
        .filter(|owner| !gives_up(*owner) && step.after().holder(*owner).is_none())
        .collect();
    let after: Vec<_> = step.after().queue.iter().map(|w| w.owner).collect();
    let newcomers = after.strip_prefix(expected.as_slice());
    match (newcomers, step.acquire()) {
        (Some([]), _) => Ok(()),
        (Some([newcomer]), Some(acquire)) => rule(
            *newcomer == acquire.owner && acquire.waiting != Waiting::No,
            "somebody queues who did not ask to",
        ),
        (Some(_), _) | (None, None) if after.len() < expected.len() => Err("a place was lost"),
        _ => Err("the queue changed its order"),
    }
}

fn a_sign_of_life_never_shortens(step: &Taken<'_>) -> Checked {
    for waiter in &step.after().queue {
        let kept = step.place(waiter.owner).map(|(_, known)| known.alive_until);
        let asked = step
            .acquire()
            .filter(|_| step.asker() == Some(waiter.owner));
        let asked = asked.and_then(|acquire| match acquire.waiting {
            Waiting::Queue { alive_for, .. } => Some(step.now.plus(alive_for)),
            Waiting::No => None,
        });
        rule(
            Some(waiter.alive_until) == kept.max(asked),
            "a place is kept for another time than asked for",
        )?;
    }
    Ok(())
}

fn only_the_living_are_let_in(step: &Taken<'_>) -> Checked {
    for holder in step.new_holders() {
        if step.asker() == Some(holder.owner) {
            continue;
        }
        let (_, waiter) = step
            .place(holder.owner)
            .ok_or("a grant for nobody who waits")?;
        let reached = !step.seen.unreachable.contains(&waiter.inbox);
        rule(reached, "a grant for a waiter that cannot be told")?;
    }
    Ok(())
}

fn first_come_first_served(step: &Taken<'_>) -> Checked {
    for holder in step.new_holders() {
        // Whoever had no place came last of all.
        let arrived = step.place(holder.owner).map_or(usize::MAX, |(at, _)| at);
        let overtaken = step.after().queue.iter().any(|waiter| {
            let earlier = step.place(waiter.owner).is_some_and(|(at, _)| at < arrived);
            earlier && step.can_be_told(waiter)
        });
        rule(!overtaken, "a waiter that can be reached was overtaken")?;
    }
    Ok(())
}

fn nobody_waits_for_a_free_lock(step: &Taken<'_>) -> Checked {
    let mut queue = step.after().queue.iter();
    let head = queue.find(|waiter| step.can_be_told(waiter));
    rule(
        head.is_none_or(|head| !could_join(step.after(), head.mode)),
        "the head of the queue waits although it fits",
    )
}

fn exactly_those_let_in_unasked_are_told(step: &Taken<'_>) -> Checked {
    let mut told = step.decision.handovers.iter();
    for holder in step.new_holders() {
        if step.asker() == Some(holder.owner) {
            continue;
        }
        let handover = told.next().ok_or("a grant that nobody is told of")?;
        let (_, waiter) = step
            .place(holder.owner)
            .ok_or("a grant for nobody who waits")?;
        let right = (&handover.inbox, handover.owner, handover.fence)
            == (&waiter.inbox, holder.owner, holder.fence);
        rule(right, "a push to the wrong inbox, owner or fence")?;
        let window = step.now.plus(waiter.alive_for / 2);
        rule(
            handover.expiry == window && holder.expiry == window,
            "a pushed grant outlasts its claim window, or falls short of it",
        )?;
    }
    rule(told.next().is_none(), "a push without a grant")
}

fn repeating_changes_nothing(step: &Taken<'_>) -> Checked {
    let (first, second) = (step.decision, step.repeated);
    rule(first.state == second.state, "repeating changes the state")?;
    rule(second.handovers.is_empty(), "repeating lets somebody in")?;
    let same = match &first.outcome {
        Outcome::Released => matches!(second.outcome, Outcome::NotHeld { .. }),
        Outcome::Cancelled(_) => second.outcome == Outcome::Cancelled(Removed::Nothing),
        // The request was refused, but the place that its owner already had came up at this step.
        Outcome::TooLate | Outcome::Conflict { .. } if refused_but_let_in(step) => {
            matches!(second.outcome, Outcome::Granted(_))
        }
        outcome => second.outcome == *outcome,
    };
    rule(same, "repeating answers something else")
}

fn refused_but_let_in(step: &Taken<'_>) -> bool {
    let mut told = step.decision.handovers.iter();
    told.any(|handover| step.acquire().is_some_and(|a| a.owner == handover.owner))
}

fn inspect_changes_nothing(step: &Taken<'_>) -> Checked {
    let Outcome::State(snapshot) = &step.decision.outcome else {
        return Err("an answer to another question");
    };
    rule(step.after() == step.before, "inspect changed the state")?;
    rule(step.decision.handovers.is_empty(), "inspect pushed")?;
    let holding = step.before.holders.iter().filter(|h| step.goes_on(h));
    let shown = snapshot.holders.iter().map(|view| view.owner);
    rule(
        holding.map(|h| Some(h.owner)).eq(shown),
        "inspect shows other holders",
    )?;
    let waiting = step.before.queue.iter().filter(|w| step.still_waits(w));
    let shown = snapshot.waiters.iter().map(|view| view.owner);
    rule(
        waiting.map(|w| w.owner).eq(shown),
        "inspect shows other waiters",
    )
}
