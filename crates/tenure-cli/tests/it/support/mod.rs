//! Helpers that the library's tests have too.

#[path = "../../../../tenure/tests/it/support/cluster.rs"]
pub(crate) mod cluster;
#[allow(unreachable_pub, reason = "the lab lends it to all")]
#[path = "../../../../tenure-lab/src/servers/port.rs"]
mod port;
#[path = "../../../../tenure/tests/it/support/redis_server.rs"]
pub(crate) mod redis_server;
#[allow(unused_imports, reason = "what lies to sentinels is not needed here")]
#[allow(clippy::unwrap_used, reason = "a helper may fail the test it helps")]
#[path = "../../../../tenure/tests/it/support/sentinels/mod.rs"]
pub(crate) mod sentinels;
pub(crate) mod signals;
#[path = "../../../../tenure/tests/it/support/wait.rs"]
pub(crate) mod wait;
