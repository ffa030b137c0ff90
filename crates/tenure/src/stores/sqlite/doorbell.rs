//! The doorbell: one Unix datagram socket per client, in the side folder.
//!
//! A socket in the file system rather than an abstract one, because the folder's mode keeps other
//! users from ringing (a forged grant would be a second holder), and because it also reaches
//! processes in another network namespace, such as containers that share the file.
//!
//! The datagram carries the whole grant, so that the waiter holds without asking anybody. Sending
//! never blocks: a full queue means that the bell has rung and nobody has come to the door yet; the
//! writer's poll finds what did not fit.

use std::io;
use std::os::unix::net::UnixDatagram;

use tenure_core::{Fence, Inbox, LockName, OwnerId, PushedGrant, Timestamp};

use super::place::Folder;

/// Rings other processes' bells.
#[derive(Debug)]
pub(super) struct Ringer {
    sender: UnixDatagram,
    prober: UnixDatagram,
}

impl Ringer {
    pub(super) fn new() -> io::Result<Self> {
        let sender = UnixDatagram::unbound()?;
        sender.set_nonblocking(true)?;
        let prober = UnixDatagram::unbound()?;
        Ok(Self { sender, prober })
    }

    /// Tells `inbox` of its grant, if that can be done at once.
    pub(super) fn ring(&self, folder: &Folder, inbox: &Inbox, grant: &PushedGrant) {
        // Full, or its process has just died: the poll or the claim window takes care of it.
        let _ = self.sender.send_to(&encode(grant), folder.bell(inbox));
    }

    /// Whether somebody is behind the bell: a socket whose process is gone refuses to connect.
    pub(super) fn answers(&self, folder: &Folder, inbox: &Inbox) -> bool {
        self.prober.connect(folder.bell(inbox)).is_ok()
    }
}

/// The longest datagram: the fixed part and the longest name.
pub(super) const LONGEST: usize = FIXED + LockName::MAX_BYTES;

const VERSION: u8 = 1;
const FIXED: usize = 1 + 16 + 3 * 8;

/// Version, owner, fence, now, expiry (little endian), then the name.
fn encode(grant: &PushedGrant) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FIXED + grant.name.as_str().len());
    bytes.push(VERSION);
    bytes.extend(grant.owner.as_bytes());
    bytes.extend(grant.fence.as_u64().to_le_bytes());
    bytes.extend(grant.now.as_micros().to_le_bytes());
    bytes.extend(grant.expiry.as_micros().to_le_bytes());
    bytes.extend(grant.name.as_str().as_bytes());
    bytes
}

/// The grant in a datagram; `None` if it is none of ours.
pub(super) fn decode(bytes: &[u8]) -> Option<PushedGrant> {
    let (fixed, name) = bytes.split_at_checked(FIXED)?;
    let (version, fixed) = fixed.split_first()?;
    if *version != VERSION {
        return None;
    }
    let (owner, numbers) = fixed.split_first_chunk::<16>()?;
    let (fence, numbers) = numbers.split_first_chunk::<8>()?;
    let (now, expiry) = numbers.split_first_chunk::<8>()?;
    let expiry = expiry.first_chunk::<8>()?;
    Some(PushedGrant {
        name: LockName::new(std::str::from_utf8(name).ok()?).ok()?,
        owner: OwnerId::from_bytes(*owner),
        fence: Fence::from_u64(u64::from_le_bytes(*fence)),
        now: Timestamp::from_micros(u64::from_le_bytes(*now)),
        expiry: Timestamp::from_micros(u64::from_le_bytes(*expiry)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(name: &str) -> PushedGrant {
        PushedGrant {
            name: LockName::new(name).unwrap(),
            owner: OwnerId::from_bytes([7; 16]),
            fence: Fence::from_u64(u64::MAX - 1),
            now: Timestamp::from_micros(1),
            expiry: Timestamp::from_micros(2),
        }
    }

    #[test]
    fn a_grant_survives_the_datagram() {
        for name in ["a", "ключ", &"n".repeat(LockName::MAX_BYTES)] {
            let bytes = encode(&grant(name));
            assert!(bytes.len() <= LONGEST);
            assert_eq!(decode(&bytes), Some(grant(name)));
        }
    }

    #[test]
    fn anything_else_is_ignored() {
        let bytes = encode(&grant("a"));
        assert_eq!(decode(b""), None);
        assert_eq!(decode(&bytes[..FIXED]), None, "no name");
        assert_eq!(decode(&bytes[..FIXED - 1]), None);
        assert_eq!(
            decode(&[&[9], &bytes[1..]].concat()),
            None,
            "another version"
        );
    }
}
