//! What is not even sent: names that are ours, and leases that nobody protects.

use tenure_core::{Action, ErrorKind, LockName, Recovery, Spelled};

use super::super::errors::Failure;
use super::super::memory::Caution;
use super::super::options::RESERVED;

/// With an empty prefix, a lock must not take the place of what is kept beside another.
pub(super) fn allowed(prefix: &str, name: &LockName) -> Result<(), Failure> {
    let mut key = prefix.chars().chain(name.as_str().chars());
    if RESERVED.chars().all(|c| key.next() == Some(c)) {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!(
                "with this prefix a lock name must not begin with `{RESERVED}`: tenure keeps its own keys there"
            ),
        ));
    }
    Ok(())
}

/// Whoever is strict asks for no lease that a server could give away after it forgot it. What is left
/// behind nobody relies upon.
pub(super) fn protected(caution: &Caution, action: &Action) -> Result<(), Failure> {
    let ttl = match action {
        Action::Acquire(request) => request.ttl,
        Action::Renew(request) if !request.detach => request.ttl,
        Action::Vote(request) => request.ttl,
        _ => return Ok(()),
    };
    if caution.recovery != Recovery::Strict || ttl <= caution.max_ttl {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        format!(
            "recovery=strict protects leases of up to {}, and a ttl of {} was asked for: set \
             ?max_ttl= everywhere to more than that, or ask for less",
            Spelled(caution.max_ttl.duration()),
            Spelled(ttl.duration())
        ),
    ))
}
