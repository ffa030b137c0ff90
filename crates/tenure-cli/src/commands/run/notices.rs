//! What the supervision of the job tells, as events.

use serde_json::{Value, json};

use crate::job::{LossCause, Notice};
use crate::output::view::milliseconds;

/// The event's name and its fields.
pub(super) fn event(notice: &Notice) -> (&'static str, Value) {
    match notice {
        Notice::AtRisk {
            remaining,
            reaction,
        } => (
            "at_risk",
            json!({ "expires_in_ms": milliseconds(*remaining), "reaction": reaction.to_string() }),
        ),
        Notice::Lost(LossCause::Expired) => ("lost", json!({ "cause": "expired" })),
        Notice::Lost(LossCause::ToldByStore(how)) => ("lost", json!({ "cause": how })),
        Notice::HoldAtMost => ("hold_at_most", Value::Null),
        Notice::Stopped { expires_in } => (
            "stopped",
            json!({ "expires_in_ms": milliseconds(*expires_in) }),
        ),
        Notice::Orphans { pids, .. } => {
            let pids: Vec<i32> = pids.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
            ("orphans", json!({ "pids": pids }))
        }
        Notice::AgainToKill | Notice::GuardReplaced | Notice::GuardLost(_) => {
            ("notice", json!({ "text": notice.to_string() }))
        }
    }
}
