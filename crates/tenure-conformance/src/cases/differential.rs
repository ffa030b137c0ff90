//! Random traces, compared with `decide`.

use super::{Case, stories};
use crate::oracle::oracle;
use crate::peer::World;
use crate::random::fresh;

pub(crate) const CASES: &[Case] = stories!(differential:
    it_answers_as_decide_does,
);

/// Few enough to run every time, on a real server; run [`oracle`] by itself for more.
const TRACES: u32 = 48;

async fn it_answers_as_decide_does(world: &World<'_>) {
    if let Err(disagreement) = oracle(world.subject, fresh(), TRACES).await {
        panic!("{disagreement}");
    }
}
