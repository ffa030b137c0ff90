//! Making a failing trace short: drop whatever it still fails without.

use super::replay::Stage;
use super::trace::Trace;

/// The shortest trace found that still fails, and what it fails with. A failure that does not show
/// again (because it hung on timing) leaves the trace as it was.
pub(crate) async fn shrink(stage: &Stage<'_>, trace: Trace, words: String) -> (Trace, String) {
    let mut best = (trace, words);
    let mut tries = TRIES;
    let mut chunk = best.0.steps.len().div_ceil(2);
    while chunk > 0 && tries > 0 {
        let shorter = drop_steps(stage, &mut best, chunk, &mut tries).await;
        if !shorter || chunk > best.0.steps.len() {
            chunk /= 2;
        }
    }
    drop_requests(stage, &mut best, &mut tries).await;
    best
}

/// How often a trace is replayed at most: on a server, time really passes.
const TRIES: u32 = 300;

type Failing = (Trace, String);

async fn drop_steps(stage: &Stage<'_>, best: &mut Failing, chunk: usize, tries: &mut u32) -> bool {
    let mut shorter = false;
    let mut start = 0;
    while start < best.0.steps.len() {
        let mut candidate = best.0.clone();
        let end = (start + chunk).min(candidate.steps.len());
        candidate.steps.drain(start..end);
        if still_fails(stage, best, candidate, tries).await {
            shorter = true;
        } else {
            start += chunk;
        }
    }
    shorter
}

async fn drop_requests(stage: &Stage<'_>, best: &mut Failing, tries: &mut u32) {
    for step in 0..best.0.steps.len() {
        let mut request = 0;
        while best.0.steps[step].batch.len() > 1 && request < best.0.steps[step].batch.len() {
            let mut candidate = best.0.clone();
            candidate.steps[step].batch.remove(request);
            if !still_fails(stage, best, candidate, tries).await {
                request += 1;
            }
        }
    }
}

async fn still_fails(
    stage: &Stage<'_>,
    best: &mut Failing,
    candidate: Trace,
    tries: &mut u32,
) -> bool {
    if *tries == 0 {
        return false;
    }
    *tries -= 1;
    match stage.replay(&candidate).await {
        Ok(()) => false,
        Err(words) => {
            *best = (candidate, words);
            true
        }
    }
}
