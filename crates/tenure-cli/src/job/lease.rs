//! What the supervision knows about the lease that the job runs under.

use tokio::sync::watch;

use super::boottime::Boottime;

/// The lease, as seen by the supervision: always the latest status, and a wake-up when it changes.
///
/// If the sender goes away the last status stays in force: nobody renews, so the lease runs out.
pub type Lease = watch::Receiver<LeaseStatus>;

/// How the lease stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStatus {
    /// From this moment on somebody else may hold the lock. The job is gone before.
    pub valid_until: Boottime,
    /// Set once the lease is lost, and final: no later status takes it back.
    pub lost: Option<LossCause>,
}

impl LeaseStatus {
    /// A lease that is held until `valid_until`.
    pub fn valid_until(valid_until: Boottime) -> Self {
        Self {
            valid_until,
            lost: None,
        }
    }
}

/// Why a lease was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LossCause {
    /// It could not be renewed in time.
    Expired,
    /// The store said so (forced release, a newer holder); the text says how.
    ToldByStore(String),
}
