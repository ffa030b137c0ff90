//! Tests of the library against real stores, as one binary.

#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, as it should"
)]
#![allow(missing_docs, reason = "tests are read, not linked to")]
#![allow(
    dead_code,
    reason = "which helpers are used depends on the features that are on"
)]

mod client_blocking;
#[cfg(feature = "test-util")]
mod client_cancel;
#[cfg(feature = "test-util")]
mod client_election;
#[cfg(feature = "test-util")]
mod client_guard;
#[cfg(feature = "test-util")]
mod client_handover;
#[cfg(feature = "test-util")]
mod client_lease;
mod client_limits;
#[cfg(feature = "test-util")]
mod client_once_per;
#[cfg(feature = "test-util")]
mod client_outage;
#[cfg(feature = "test-util")]
mod client_owner;
#[cfg(feature = "test-util")]
mod client_recovering;
#[cfg(feature = "test-util")]
mod client_renewal;
mod client_runtime;
#[cfg(all(feature = "test-util", any(feature = "redis", feature = "sqlite")))]
mod client_stores;
#[cfg(feature = "test-util")]
mod client_storm;
#[cfg(feature = "test-util")]
mod client_wait;
#[cfg(feature = "test-util")]
mod client_wakeup;
#[cfg(feature = "test-util")]
mod client_world;
mod conformance;
mod edge_cases;
#[cfg(feature = "test-util")]
mod quorum;
#[cfg(all(feature = "test-util", feature = "redis"))]
mod redis_clock;
#[cfg(feature = "redis")]
mod redis_cluster;
mod redis_cluster_memory;
#[cfg(feature = "redis")]
mod redis_errors;
#[cfg(feature = "redis")]
mod redis_faults;
#[cfg(feature = "redis")]
mod redis_initialize;
#[cfg(feature = "redis")]
mod redis_interop;
#[cfg(feature = "redis")]
mod redis_keys;
#[cfg(feature = "redis")]
mod redis_recovery;
#[cfg(feature = "redis")]
mod redis_recovery_oracle;
#[cfg(feature = "redis")]
mod redis_recovery_rare;
#[cfg(feature = "redis")]
mod redis_replicas;
#[cfg(feature = "redis")]
mod redis_restless;
#[cfg(feature = "redis")]
mod redis_sentinel;
#[cfg(feature = "redis")]
mod redis_store;
#[cfg(feature = "redis")]
mod redis_tls;
#[cfg(all(feature = "test-util", feature = "redis"))]
mod redlock;
#[cfg(all(feature = "test-util", feature = "redis"))]
mod redlock_identity;
#[cfg(all(feature = "test-util", feature = "redis"))]
mod redlock_interop;
#[cfg(all(feature = "test-util", feature = "redis"))]
mod redlock_waiting;
#[cfg(feature = "test-util")]
mod simulation;
mod support;
mod uses;

#[cfg(feature = "sqlite")]
mod sqlite_store;

#[cfg(all(feature = "sqlite", feature = "redis"))]
mod tables;
mod uses_stores;
