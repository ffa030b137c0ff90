//! What `tenure run` tells its command through the environment, and what it hears from a parent.

use std::env;
use std::ffi::OsString;

use tenure::core::{Lease, LockName};

use crate::output::secret::StoreUrl;
use crate::store_choice::STORE_VARIABLE;

/// Names of all locks held by this process's ancestors.
pub const HELD: &str = "TENURE_HELD";
/// The innermost of them.
pub const LOCK: &str = "TENURE_LOCK";
/// Its fence.
pub const FENCE: &str = "TENURE_FENCE";
/// Its lease.
pub const LEASE: &str = "TENURE_LEASE";
/// Who holds it.
pub const OWNER: &str = "TENURE_OWNER";
/// The length of its lease.
pub const TTL_MS: &str = "TENURE_TTL_MS";
/// Which store it is in, without saying where that is.
pub const STORE_FINGERPRINT: &str = "TENURE_STORE_FINGERPRINT";
/// The process that holds it.
pub const PARENT_PID: &str = "TENURE_PARENT_PID";

/// What a parent `tenure run` left in our environment.
#[derive(Clone, Debug, Default)]
pub struct Inherited {
    /// All locks held by ancestors.
    pub held: Vec<String>,
    /// The innermost lock.
    pub lock: Option<String>,
    /// Its lease.
    pub lease: Option<String>,
    /// Its ttl in milliseconds.
    pub ttl_ms: Option<u64>,
    /// The fingerprint of its store.
    pub store_fingerprint: Option<String>,
    /// The process that holds it.
    pub parent_pid: Option<String>,
}

impl Inherited {
    /// Reads the environment.
    pub fn read() -> Self {
        let held = variable(HELD).unwrap_or_default();
        Self {
            held: held
                .split(',')
                .filter(|name| !name.is_empty())
                .map(unescape)
                .collect(),
            lock: variable(LOCK),
            lease: variable(LEASE),
            ttl_ms: variable(TTL_MS).and_then(|text| text.parse().ok()),
            store_fingerprint: variable(STORE_FINGERPRINT),
            parent_pid: variable(PARENT_PID),
        }
    }

    /// Whether an ancestor holds this lock.
    pub fn holds(&self, name: &LockName) -> bool {
        self.held.iter().any(|held| held == name.as_str())
    }
}

/// The grant that a command runs under.
#[derive(Clone, Copy, Debug)]
pub struct Granted<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// Owner and fence.
    pub lease: Lease,
    /// Who.
    pub who: &'a str,
    /// Length of the lease in milliseconds.
    pub ttl_ms: u64,
    /// The store.
    pub store: &'a StoreUrl,
}

impl Granted<'_> {
    /// The variables to set (`Some`) or remove (`None`) for the command.
    pub fn variables(
        &self,
        inherited: &Inherited,
        pass_store: bool,
    ) -> Vec<(OsString, Option<OsString>)> {
        let mut held = inherited.held.clone();
        held.push(self.name.to_string());
        let held: Vec<String> = held.iter().map(|name| escape(name)).collect();
        let mut variables: Vec<(OsString, Option<OsString>)> = [
            (HELD, held.join(",")),
            (LOCK, self.name.to_string()),
            (FENCE, self.lease.fence.to_string()),
            (LEASE, self.lease.to_string()),
            (OWNER, self.who.to_owned()),
            (TTL_MS, self.ttl_ms.to_string()),
            (STORE_FINGERPRINT, self.store.fingerprint()),
            (PARENT_PID, std::process::id().to_string()),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), Some(value.into())))
        .collect();
        // A password goes to nobody who was not meant to get it.
        let store = (pass_store || !self.store.has_password()).then(|| self.store.expose().into());
        variables.push((STORE_VARIABLE.into(), store));
        variables
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

// A comma separates names, and names may contain one.
fn escape(name: &str) -> String {
    name.replace('%', "%25").replace(',', "%2C")
}

fn unescape(name: &str) -> String {
    name.replace("%2C", ",").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_survive_the_list() {
        for name in ["a,b", "100%", "%2C", "plain"] {
            assert_eq!(unescape(&escape(name)), name);
            assert!(!escape(name).contains(','));
        }
    }
}
