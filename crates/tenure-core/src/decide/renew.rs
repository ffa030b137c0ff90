//! Renew: the hold lasts until now + ttl, or as long as before if that is longer; a holder that
//! leaves it behind (`detach`) gets exactly now + ttl. While recovering, a hold that is not stored
//! is taken back (`reinstate.rs`).

use super::Step;
use super::reinstate::{confirm_mode, reinstate};
use super::release::not_held;
use crate::{LockState, Outcome, Phase, Renew};

pub(super) fn renew(state: &mut LockState, request: &Renew, step: &mut Step<'_>) -> Outcome {
    let recovering = !step.phase.is_open();
    let outcome = match state.held(request.owner, request.fence) {
        Some(holder) => {
            let expiry = step.now.plus(request.ttl.duration());
            if request.detach {
                // The holder has stopped relying on the hold, so it may also become shorter.
                holder.expiry = expiry;
                holder.anchor = None;
            } else {
                // Never shorter: a renewal that was delayed on its way may carry an older, shorter
                // ttl, and the holder already relies on the later expiry.
                holder.expiry = holder.expiry.max(expiry);
            }
            let expiry = holder.expiry;
            match (step.phase, &request.terms) {
                // It may have ended elsewhere, and somebody else may hold the lock: whoever does not say that it is a
                // valid holder cannot be told before all others have had time to come.
                (Phase::Recovering { until }, None) => Outcome::Forgotten { until },
                (Phase::Recovering { .. }, Some(terms)) => {
                    confirm_mode(holder, terms);
                    Outcome::Renewed { expiry }
                }
                (Phase::Open { .. }, _) => Outcome::Renewed { expiry },
            }
        }
        None => match &request.terms {
            Some(terms) if recovering => reinstate(state, request, terms, step),
            _ => not_held(state, request.owner, request.fence, step),
        },
    };
    step.admit(state, None);
    outcome
}
