//! The stores: ways to run [`decide`](tenure_core::decide()) atomically, one folder each.

pub mod memory;
pub mod quorum;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "redis", feature = "sqlite"))]
mod url_options;
