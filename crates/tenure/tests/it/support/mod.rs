//! What tests need beside the library: real servers, and waiting for a condition with a bound.

#[cfg(feature = "redis")]
pub(crate) mod clock;
#[cfg(feature = "redis")]
pub(crate) mod cluster;
pub(crate) mod peer;
#[cfg(feature = "redis")]
#[allow(unreachable_pub, reason = "the lab lends it to all")]
#[path = "../../../../tenure-lab/src/servers/port.rs"]
mod port;
#[cfg(feature = "redis")]
pub(crate) mod proxy;
#[cfg(feature = "redis")]
pub(crate) mod redis_server;
#[cfg(feature = "redis")]
pub(crate) mod sentinels;
#[cfg(feature = "redis")]
pub(crate) mod theirs;
pub(crate) mod wait;
