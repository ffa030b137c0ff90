//! Helpers that the library's tests have too.

#[path = "../../../../tenure/tests/it/support/redis_server.rs"]
pub(crate) mod redis_server;
pub(crate) mod signals;
#[path = "../../../../tenure/tests/it/support/wait.rs"]
pub(crate) mod wait;
