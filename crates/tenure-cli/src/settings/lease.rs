//! Which lease a script means: from its arguments, or from the `tenure run` it runs under.

use tenure::core::{Lease, LockName};

use super::environment::Inherited;
use crate::args::LeaseArgs;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::store_choice::StoreChoice;

/// A lease to be renewed, released or checked.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Of which lock.
    pub name: LockName,
    /// Which one.
    pub lease: Lease,
    from_parent: bool,
}

impl LeaseSettings {
    /// Arguments first, then `TENURE_LOCK` and `TENURE_LEASE`.
    ///
    /// # Errors
    /// If either is missing everywhere, or cannot be understood.
    pub fn new(args: &LeaseArgs, inherited: &Inherited) -> Result<Self> {
        let name = args
            .name
            .as_ref()
            .or(inherited.lock.as_ref())
            .ok_or_else(|| {
                Failure::new(
                    Code::Usage,
                    "which lock? no NAME was given, and TENURE_LOCK is not set",
                )
            })?;
        // A parent's lease belongs to the parent's lock, not to any other.
        let parents = inherited
            .lease
            .as_ref()
            .filter(|_| inherited.lock.as_ref() == Some(name));
        let lease = args.lease.as_ref().or(parents).ok_or_else(|| {
            Failure::new(
                Code::Usage,
                format!("which lease of {name:?}? no --lease was given"),
            )
            .help("`tenure acquire` prints it; inside `tenure run` it is in TENURE_LEASE")
        })?;
        let lease = lease
            .parse()
            .map_err(|error: tenure::core::Error| Failure::new(Code::Usage, error.message()))?;
        Ok(Self {
            name: super::lock_name(name)?,
            lease,
            from_parent: args.lease.is_none(),
        })
    }

    /// Makes sure that the store is the one that the parent's lease is in: asking another one would
    /// wrongly answer "lost".
    ///
    /// # Errors
    /// If it is another store.
    pub fn check_store(&self, choice: &StoreChoice, inherited: &Inherited) -> Result<()> {
        if !self.from_parent {
            return Ok(());
        }
        same_store(choice, inherited)
    }
}

/// Makes sure that `choice` is the store of the `tenure run` that we run under.
///
/// # Errors
/// If it is another one.
pub fn same_store(choice: &StoreChoice, inherited: &Inherited) -> Result<()> {
    match &inherited.store_fingerprint {
        Some(parents) if *parents != choice.url.fingerprint() => Err(Failure::new(
            Code::Usage,
            format!(
                "{} is not the store that the parent's lock is in",
                choice.url
            ),
        )
        .fact("from", choice.origin.to_string())
        .help("give the parent --pass-store, or name the store in a config file")),
        _ => Ok(()),
    }
}
