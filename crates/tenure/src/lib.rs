//! Distributed locks: many processes on many machines agree who may use a named resource, now.
//!
//! ```
//! # async fn example() -> Result<(), tenure::Error> {
//! use std::time::Duration;
//!
//! let tenure = tenure::connect("memory:").await?; // or sqlite:locks.db, redis://localhost, …
//! let guard = tenure
//!     .lock("nightly-report")
//!     .ttl(Duration::from_secs(30)) // renewed for as long as the guard lives
//!     .wait(Duration::from_secs(10))
//!     .acquire()
//!     .await?;
//! println!("pass {} along with every write", guard.fence());
//! guard.ensure()?; // still mine?
//! guard.release().await?;
//! # Ok(()) }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Which one do I need?
//!
//! | I want … | use |
//! |---|---|
//! | one at a time | [`Tenure::lock`] |
//! | to skip if somebody else is at it | [`Lock::try_acquire`] |
//! | work that stops when the lock is lost | [`Lock::run`] |
//! | many readers or one writer | [`Tenure::rwlock`] |
//! | at most N at a time | [`Tenure::semaphore`] |
//! | several locks at once without deadlock | [`Tenure::all`] |
//! | one leader, the others ready to take over | [`Tenure::election`] |
//! | a job that the fleet runs once a day | [`Tenure::once_per`] |
//! | to enter my own lock again | [`Tenure::owner`] |
//! | numbers that are never given twice | [`Tenure::sequence`] |
//! | a small number that is mine while I live, and ids made with it | [`Tenure::worker_number`] |
//! | one caller to rebuild what a cache has lost | [`Tenure::coalesce`] |
//! | all of this without async | [`blocking`] |
//!
//! # What is not guaranteed
//!
//! A lock with a lease cannot stop a process that was paused past the end of its lease. [`Guard`]
//! says what it can do about it and what only the protected resource can, with the [`Fence`].
//! What each store promises, and what breaks it, is in [`stores`].

mod acquire;
mod all;
pub mod blocking;
mod client;
pub mod clock;
mod coalesce;
mod combine;
mod connect;
mod election;
mod gate;
mod guard;
mod handover;
mod hold;
mod identity;
mod initialize;
mod keeper;
mod link;
mod lock;
mod mailbox;
mod once_per;
mod owner;
mod random;
mod sequence;
mod standing;
pub mod stores;
#[cfg(any(test, feature = "test-util"))]
pub mod test_util;
mod worker;

pub use acquire::{Blocked, Silence, WaitReport};
pub use all::{All, AllGuard};
pub use client::Tenure;
pub use clock::Clock;
pub use coalesce::{Cached, Coalesce, Served, Source};
pub use connect::{connect, connect_to_look};
pub use election::{Changes, Election, Leader, Term};
pub use guard::Guard;
pub use identity::this_process;
pub use initialize::{Assurance, Initialization, Initialized, initialize};
pub use lock::{Attempt, Lock, RwLock};
pub use once_per::{CountedRun, Ending, Once, OnceGuard, OncePer, Turn};
pub use owner::Owner;
pub use sequence::Sequence;
pub use standing::{Loss, Standing};
#[cfg(feature = "redis")]
pub use stores::redis::RedisCache;
pub use tenure_core as core;
pub use tenure_core::{
    Contention, Error, ErrorKind, Fence, Finding, ForcedRelease, Guarantees, HolderView, Kind,
    Lease, Listing, LockName, Mode, Moment, OwnerId, Party, Recovering, Retry, Severity, Snapshot,
    Store, Timestamp, Ttl, WaiterView,
};
pub use worker::{Ids, WorkerNumber, WorkerPool};

/// What is promised about threads, checked by the compiler.
fn _bounds() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Tenure>();
    shared::<Guard>();
    shared::<Lock>();
    shared::<Owner>();
    shared::<AllGuard>();
    shared::<Election>();
    shared::<Term>();
    shared::<OncePer>();
    shared::<OnceGuard>();
    shared::<Ids>();
    shared::<Error>();
}

/// The examples of the README compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
