//! Real servers, and the network between them and whoever uses them: free ports, temporary folders,
//! nothing left behind, whatever becomes of us.

mod redis;
mod session;
pub mod wait;

pub use redis::{RedisServer, free_port};
pub use session::{Answer, Session};
