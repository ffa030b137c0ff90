//! The differential oracle: random traces, asked of the store and of [`decide`](tenure_core::decide())
//! at the store's own time. Every answer and every push must be the same.

mod asking;
mod compare;
mod replay;
mod shrink;
mod trace;

use std::fmt;

use crate::random::Dice;
use crate::run::all;
use crate::subject::Subject;
use replay::Stage;
use trace::Trace;

/// Compares the store with `decide` on `traces` random traces that follow from `seed`.
///
/// A step that falls so close to the end of a hold or place that the store's
/// [tolerance](Subject::time_tolerance) decides it ends its trace without a verdict.
///
/// # Errors
/// The first disagreement, shrunk to a short trace.
pub async fn oracle(subject: &dyn Subject, seed: u64, traces: u32) -> Result<(), Disagreement> {
    let stage = Stage::open(subject).await;
    let mut seeds = Dice::new(seed);
    let seeds: Vec<u64> = (0..traces).map(|_| seeds.next()).collect();
    for group in seeds.chunks(SIDE_BY_SIDE) {
        let runs = group.iter().map(|seed| {
            let trace = Trace::random(*seed);
            Box::pin(async {
                let result = stage.replay(&trace).await;
                result.map_err(|words| (*seed, trace, words))
            }) as _
        });
        for result in all(runs.collect()).await {
            if let Err((trace_seed, trace, words)) = result {
                let (trace, words) = shrink::shrink(&stage, trace, words).await;
                return Err(Disagreement {
                    seed,
                    trace_seed,
                    trace,
                    words,
                });
            }
        }
    }
    Ok(())
}

/// Each trace has its own names, so that many can sleep at the same time.
const SIDE_BY_SIDE: usize = 16;

/// A trace on which the store and `decide` answer differently.
#[derive(Debug)]
pub struct Disagreement {
    seed: u64,
    trace_seed: u64,
    trace: Trace,
    words: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            trace_seed,
            trace,
            words,
        } = self;
        writeln!(f, "the store and decide disagree: {words}")?;
        writeln!(f, "seed {seed}, trace {trace_seed}, shrunk to:")?;
        write!(f, "{trace}")
    }
}

impl std::error::Error for Disagreement {}
