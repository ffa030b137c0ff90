//! [`free_port`]: where a server of our own can listen. Needs nothing but std, so that other crates' tests can include
//! this file by path.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// None of those that systems hand out to whoever does not care which one it gets: such a one could go to somebody
/// else while its server is being started, or is down for a while.
const OURS: Range<u16> = 12_000..32_000;

/// Where to look next. Other processes look, too, and begin elsewhere.
static NEXT: LazyLock<AtomicU64> =
    LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(()) >> 1));

/// A port on which nobody listens now, and that this function has not answered before (but for 20,000 calls ago).
///
/// # Errors
/// The system has none left.
pub fn free_port() -> io::Result<u16> {
    let mut refused = io::ErrorKind::AddrInUse.into();
    for _ in OURS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % OURS.len() as u64;
        let port = OURS.start + number as u16;
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}
