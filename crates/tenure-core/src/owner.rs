//! [`OwnerId`]: who asks, and [`Lease`]: what an owner was given, in a form that can be written down.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind, Fence};

/// 128 random bits that name one acquire call: never a thread, a clock or a process id, so two
/// owners cannot look the same and repeating an acquire is recognised as a repetition.
///
/// The randomness is the caller's duty; this crate draws none. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId([u8; 16]);

impl OwnerId {
    /// An owner from 16 unguessable bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The first eight digits: enough to tell holders of one name apart on a screen.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..8].to_owned()
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As one number: sixteen small writes cost as much as a whole decision.
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for OwnerId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::new(
                ErrorKind::InvalidInput,
                "an owner id is 32 hexadecimal digits",
            )
            .with("given", text)
        };
        // Digits alone: the parser of numbers would also take a sign.
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// Owner and fence of one hold: what a script needs to renew or release it from another process.
///
/// Written as `<owner>-<fence>`. Whoever knows it can release the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Who holds.
    pub owner: OwnerId,
    /// Which grant it was.
    pub fence: Fence,
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.owner, self.fence)
    }
}

impl FromStr for Lease {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = text.split_once('-').and_then(|(owner, fence)| {
            Some(Self {
                owner: owner.parse().ok()?,
                fence: fence.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "a lease looks like <32 hexadecimal digits>-<fence>, as `tenure acquire` prints it",
            )
            .with("given", text)
        })
    }
}
