//! Tests of the library against real stores, as one binary.

#![allow(missing_docs, reason = "tests are read, not linked to")]
#![allow(
    dead_code,
    reason = "which helpers are used depends on the features that are on"
)]

#[cfg(feature = "redis")]
mod redis_interop;
#[cfg(feature = "redis")]
mod redis_store;
mod support;

#[cfg(feature = "sqlite")]
mod sqlite_store;

#[cfg(all(feature = "sqlite", feature = "redis"))]
mod tables;
