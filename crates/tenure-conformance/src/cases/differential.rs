//! Random traces, compared with `decide`.

use super::{Case, stories};
use crate::oracle::oracle;
use crate::peer::World;
use crate::random::fresh;

pub(crate) const CASES: &[Case] = stories!(differential:
    it_answers_as_decide_does [OneStep],
);

/// Few enough to run every time, on a real server. `TENURE_TRACES=5000` runs more, and
/// `TENURE_SEED` those of an earlier run.
const TRACES: u32 = 48;

async fn it_answers_as_decide_does(world: &World<'_>) {
    let traces = setting("TENURE_TRACES").unwrap_or(TRACES);
    let seed = setting("TENURE_SEED").unwrap_or_else(fresh);
    if let Err(disagreement) = oracle(world.subject, seed, traces).await {
        panic!("{disagreement}");
    }
}

fn setting<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}
