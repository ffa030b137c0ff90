//! What the arguments mean: checked, with defaults filled in, before anything is touched.

pub mod environment;
pub mod lease;
pub mod lock;
pub mod run;

use std::time::Duration;

use tenure::core::{LockName, Ttl};

use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};

/// Checks a lock name.
///
/// # Errors
/// Says which rule is broken.
pub fn lock_name(text: &str) -> Result<LockName> {
    LockName::new(text).map_err(|error| Failure::new(Code::Usage, error.message()))
}

/// Checks the name of a lock that is to be taken.
///
/// # Errors
/// Says which rule is broken.
pub fn name_to_take(text: &str) -> Result<LockName> {
    let name = lock_name(text)?;
    if name.is_reserved() {
        return Err(Failure::new(Code::Usage, LockName::RESERVED));
    }
    Ok(name)
}

/// Checks the length of a lease.
///
/// # Errors
/// If it is longer than a store can keep it.
pub fn ttl(length: Duration) -> Result<Ttl> {
    Ttl::new(length).map_err(|error| Failure::new(Code::Usage, error.message()))
}
