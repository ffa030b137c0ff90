//! The first contact with a store, which may just be starting.

use std::time::Duration;

use tenure::Tenure;
use tenure::core::{Error, Retry};

use crate::output::Output;
use crate::store_choice::StoreChoice;

/// Whether to try again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Persistence {
    /// A refusal is final.
    Once,
    /// Until the time is over, telling whoever watches.
    Repeat(Output),
}

/// What for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// To see what is there, and leave it as it is.
    Look,
    Use,
}

/// Connects within `limit`; `None` if there was no answer at all.
#[allow(
    clippy::disallowed_methods,
    reason = "there is no client yet whose clock could be used, and no lease depends on it"
)]
pub(super) async fn contact(
    choice: &StoreChoice,
    purpose: Purpose,
    limit: Duration,
    persistence: Persistence,
) -> Option<std::result::Result<Tenure, Error>> {
    let mut refusal = None;
    let trying = async {
        loop {
            let url = choice.url.expose();
            let result = match purpose {
                Purpose::Look => tenure::connect_to_look(url).await,
                Purpose::Use => tenure::connect(url).await,
            };
            match (result, persistence) {
                (Err(error), Persistence::Repeat(output)) if error.retry() == Retry::Later => {
                    if refusal.is_none() {
                        output.hint(&format!("cannot reach {} yet, trying on", choice.url));
                    }
                    refusal = Some(error);
                    tokio::time::sleep(super::PAUSE).await;
                }
                (result, _) => return result,
            }
        }
    };
    match tokio::time::timeout(limit, trying).await {
        Ok(result) => Some(result),
        Err(_) => refusal.map(Err),
    }
}
