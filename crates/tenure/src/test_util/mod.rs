//! For tests of code that uses locks: time that stands still, and a store that misbehaves on demand.
//!
//! Under `#[tokio::test(start_paused = true)]` a [`VirtualClock`] leaps to the next timer as soon as
//! nobody has anything to do, so hours pass in milliseconds and no test ever sleeps. A
//! [`ScriptedStore`] around any other store fails, hangs, loses replies or forgets, when a [`Rule`]
//! says so.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tenure::stores::memory::MemoryStore;
//! use tenure::test_util::{Fault, Rule, ScriptedStore, VirtualClock};
//! use tenure::{Loss, Tenure};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! let clock = Arc::new(VirtualClock::new());
//! let store = ScriptedStore::new(Arc::new(MemoryStore::new(clock.clone())), clock.clone());
//! let tenure = Tenure::new(store.clone(), clock).await?;
//!
//! let guard = tenure.lock("report").ttl(Duration::from_secs(30)).acquire().await?;
//! store.script(Rule::on("renew").does(Fault::Fail)); // from now on, no renewal gets through
//! assert_eq!(guard.lost().await, Loss::Expired); // half a minute later, in no time
//! assert!(store.count("renew") > 3);
//! # Ok::<(), tenure::Error>(()) }).unwrap();
//! ```

pub(crate) mod chance;
mod script;
mod scripted_store;

use crate::{Guard, Lease};

pub use crate::clock::VirtualClock;
pub use chance::seed_chance;
pub use script::{Fault, Rule};
pub use scripted_store::{Call, ScriptedStore};

/// What [`Guard::lease`] answers, without changing anything: a hold whose lease was asked for is no longer handed on to
/// other tasks of the process.
#[must_use]
pub fn lease_of(guard: &Guard) -> Lease {
    guard.lease_at_a_glance()
}
