//! Real servers, and the network between them and whoever uses them: free ports, temporary folders,
//! nothing left behind, whatever becomes of us.

mod clock;
pub mod cluster;
mod link;
mod peer;
mod port;
mod proxy;
mod redis;
mod sentinel;
mod session;
pub mod wait;

pub use clock::SetClock;
pub use link::{Divide, Link, Network, Way};
pub use port::free_port;
pub use proxy::Proxy;
pub use redis::RedisServer;
pub use sentinel::Sentinel;
pub use session::{Answer, Session};
