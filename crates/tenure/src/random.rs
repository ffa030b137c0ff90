//! Where randomness comes from: owner ids, inboxes, jitter.

use std::time::Duration;

use tenure_core::{Error, ErrorKind, Inbox, OwnerId};

pub(crate) fn owner_id() -> Result<OwnerId, Error> {
    bytes().map(OwnerId::from_bytes)
}

pub(crate) fn inbox() -> Result<Inbox, Error> {
    bytes().map(Inbox::from_bytes)
}

/// Between 75 % and 100 % of `duration`, so that many clients do not act in step.
pub(crate) fn jittered(duration: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness there is no jitter, which is no reason to fail.
    let _ = getrandom::fill(&mut byte);
    duration - duration.mul_f64(0.25 * f64::from(byte[0]) / 255.0)
}

fn bytes() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|cause| {
        Error::new(
            ErrorKind::Configuration,
            "the system gives no random numbers",
        )
        .because(cause)
    })?;
    Ok(bytes)
}
