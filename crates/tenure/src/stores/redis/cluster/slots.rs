//! Which slot a key is in, and which node has which slot.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// How many slots every cluster has.
pub(in super::super) const SLOTS: u16 = 16_384;

const NOBODY: u16 = u16::MAX;

/// The slot of a key: of what is between its first `{` and the next `}`, if there is something, else
/// of the whole.
pub(in super::super) fn slot(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    let hashed = tag.map_or(key, |(tag, _)| if tag.is_empty() { key } else { tag });
    checksum(hashed.as_bytes()) % SLOTS
}

/// A short text that is in this slot, so that something can be kept beside all locks of it. Others rely
/// on which one it is: the smallest number, in hexadecimal digits.
pub(in super::super) fn tag(slot: u16) -> String {
    static TAGS: LazyLock<Vec<u32>> = LazyLock::new(tags);
    format!("{:x}", TAGS[usize::from(slot % SLOTS)])
}

fn tags() -> Vec<u32> {
    let mut tags = vec![None; usize::from(SLOTS)];
    let mut missing = tags.len();
    for number in 0.. {
        let slot = hexadecimal(number, |digits| checksum(digits) % SLOTS);
        let tag = &mut tags[usize::from(slot)];
        if tag.is_none() {
            *tag = Some(number);
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    tags.into_iter().flatten().collect()
}

/// The digits of a number. There are some 170 000 to go through: too many for the usual way.
fn hexadecimal<T>(number: u32, with: impl FnOnce(&[u8]) -> T) -> T {
    let (mut digits, mut first, mut rest) = ([0; 8], 8, number);
    loop {
        first -= 1;
        digits[first] = b"0123456789abcdef"[(rest % 16) as usize];
        rest /= 16;
        if rest == 0 {
            return with(&digits[first..]);
        }
    }
}

/// CRC-16/XMODEM, which Redis prescribes.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (sum << 8) ^ REMAINDERS[usize::from((sum >> 8) ^ u16::from(*byte))]
    })
}

/// What is left of each byte.
const REMAINDERS: [u16; 256] = {
    let mut remainders = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            let carry = remainder & 0x8000 != 0;
            remainder <<= 1;
            if carry {
                remainder ^= 0x1021;
            }
            bit += 1;
        }
        remainders[byte] = remainder;
        byte += 1;
    }
    remainders
};

/// Who has which slot, as far as is known, by the number of the node.
#[derive(Debug)]
pub(in super::super) struct Slots {
    owners: Vec<AtomicU16>,
    /// Which are on their way from one node to another, when last asked.
    moving: Vec<AtomicBool>,
    /// Which this client knows to have been in use, on whatever node.
    used: Vec<AtomicBool>,
}

impl Default for Slots {
    fn default() -> Self {
        let owners = (0..SLOTS).map(|_| AtomicU16::new(NOBODY)).collect();
        let none = || (0..SLOTS).map(|_| AtomicBool::new(false)).collect();
        Self {
            owners,
            moving: none(),
            used: none(),
        }
    }
}

impl Slots {
    /// Who has this slot.
    pub(in super::super) fn owner(&self, slot: u16) -> Option<usize> {
        let owner = self.owners[usize::from(slot % SLOTS)].load(Ordering::Acquire);
        (owner != NOBODY).then_some(usize::from(owner))
    }

    /// Node `owner` has this slot. Answers whether that is news.
    pub(in super::super) fn learn(&self, slot: u16, owner: usize) -> bool {
        self.set(slot, u16::try_from(owner).unwrap_or(NOBODY))
    }

    /// Nobody has this slot. Answers whether that is news.
    pub(super) fn forget(&self, slot: u16) -> bool {
        self.set(slot, NOBODY)
    }

    /// Whether this slot was on its way when last asked.
    pub(super) fn is_moving(&self, slot: u16) -> bool {
        self.moving[usize::from(slot % SLOTS)].load(Ordering::Acquire)
    }

    /// Notes that this slot is on its way, or has arrived.
    pub(super) fn set_moving(&self, slot: u16, moving: bool) {
        self.moving[usize::from(slot % SLOTS)].store(moving, Ordering::Release);
    }

    /// Whether this client knows the slot to have been in use.
    pub(in super::super) fn is_used(&self, slot: u16) -> bool {
        self.used[usize::from(slot % SLOTS)].load(Ordering::Acquire)
    }

    /// Notes that the slot is in use.
    pub(in super::super) fn set_used(&self, slot: u16) {
        self.used[usize::from(slot % SLOTS)].store(true, Ordering::Release);
    }

    /// All that this node has.
    pub(in super::super) fn of(&self, node: usize) -> Vec<u16> {
        let its = |slot: &u16| self.owner(*slot) == Some(node);
        (0..SLOTS).filter(its).collect()
    }

    /// How many slots somebody has.
    pub(super) fn count(&self) -> u16 {
        let known = |slot: &u16| self.owner(*slot).is_some();
        u16::try_from((0..SLOTS).filter(known).count()).unwrap_or(SLOTS)
    }

    fn set(&self, slot: u16, owner: u16) -> bool {
        self.owners[usize::from(slot % SLOTS)].swap(owner, Ordering::AcqRel) != owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(checksum(b"123456789"), 0x31C3);
        assert_eq!(slot("foo"), 12_182);
        assert_eq!(slot("{user1000}.following"), slot("user1000"));
        assert_eq!(slot("foo{}{bar}"), slot_of_whole("foo{}{bar}"));
        assert_eq!(slot("foo{{bar}}zap"), slot("{bar"));
        assert_eq!(slot("foo{bar}{zap}"), slot("bar"));
        assert_eq!(slot("foo{bar"), slot_of_whole("foo{bar"));
    }

    fn slot_of_whole(key: &str) -> u16 {
        checksum(key.as_bytes()) % SLOTS
    }

    #[test]
    fn every_slot_has_a_tag_that_never_changes() {
        for number in 0..SLOTS {
            assert_eq!(slot(&format!("x:{{{}}}:y", tag(number))), number);
        }
        for number in [0, 15, 16, 0x265b, u32::MAX] {
            let digits = hexadecimal(number, <[u8]>::to_vec);
            assert_eq!(digits, format!("{number:x}").into_bytes());
        }
        assert_eq!(
            (tag(0), tag(16_383)),
            ("265b".to_owned(), "3d43".to_owned())
        );
    }

    #[test]
    fn only_news_is_news() {
        let slots = Slots::default();
        assert_eq!(slots.owner(7), None);
        assert!(slots.learn(7, 2));
        assert!(!slots.learn(7, 2));
        assert_eq!((slots.owner(7), slots.count()), (Some(2), 1));
        assert!(!slots.is_moving(7));
        slots.set_moving(7, true);
        assert!(slots.is_moving(7) && !slots.is_moving(8));
        assert!(slots.forget(7));
        assert_eq!(slots.owner(7), None);
    }
}
