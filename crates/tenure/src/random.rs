//! Where randomness comes from: owner ids, inboxes, jitter.

use std::hash::{BuildHasher, RandomState};
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
    let share = number() % 256;
    let share = u32::try_from(share).unwrap_or(0);
    duration - duration / 4 * share / 255
}

/// Between nothing and `duration`, so that those who race for something do not all start at once.
pub(crate) fn up_to(duration: Duration) -> Duration {
    let share = number() % 1024;
    let share = u32::try_from(share).unwrap_or(0);
    duration * share / 1023
}

fn number() -> u64 {
    #[cfg(any(test, feature = "test-util"))]
    if let Some(number) = crate::test_util::chance::next() {
        return number;
    }
    // Every new state of the standard library's hasher has other keys. That is random enough for
    // this, and asks the system nothing.
    RandomState::new().hash_one(())
}

fn bytes() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    #[cfg(any(test, feature = "test-util"))]
    if let (Some(one), Some(other)) = (
        crate::test_util::chance::next(),
        crate::test_util::chance::next(),
    ) {
        bytes[..8].copy_from_slice(&one.to_be_bytes());
        bytes[8..].copy_from_slice(&other.to_be_bytes());
        return Ok(bytes);
    }
    getrandom::fill(&mut bytes).map_err(|cause| {
        Error::new(
            ErrorKind::Configuration,
            "the system gives no random numbers",
        )
        .because(cause)
    })?;
    Ok(bytes)
}
