//! Real servers, and the network between them and whoever uses them: free ports, temporary folders,
//! nothing left behind, whatever becomes of us.

mod clock;
mod proxy;
mod redis;
mod session;
pub mod wait;

pub use clock::SetClock;
pub use proxy::Proxy;
pub use redis::{RedisServer, free_port};
pub use session::{Answer, Session};
