//! Convert: an exclusive hold becomes a shared one, and readers who wait next get in at once.

use super::Step;
use super::release::not_held;
use crate::{Convert, LockState, Mode, Outcome};

pub(super) fn convert(state: &mut LockState, request: &Convert, step: &mut Step<'_>) -> Outcome {
    let outcome = match state.held(request.owner, request.fence) {
        Some(holder) => match holder.mode {
            Mode::Exclusive | Mode::Shared => {
                holder.mode = Mode::Shared;
                Outcome::Converted {
                    expiry: holder.expiry,
                }
            }
            Mode::Permits(_) => Outcome::Conflict {
                in_force: holder.mode.kind(),
            },
        },
        None => not_held(state, request.owner, request.fence, step),
    };
    step.admit(state, None);
    outcome
}
