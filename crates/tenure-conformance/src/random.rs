//! Numbers that differ from run to run, and numbers that do not.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// 64 bits that no other call in any process is likely to get.
pub(crate) fn fresh() -> u64 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // The keys of a `RandomState` come from the system's randomness.
    RandomState::new().hash_one(COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// 128 bits that no other call in any process is likely to get.
pub(crate) fn fresh_bytes() -> [u8; 16] {
    let (high, low) = (u128::from(fresh()), u128::from(fresh()));
    (high << 64 | low).to_be_bytes()
}

/// A small generator (splitmix64): the same seed gives the same trace, today and in a year.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number from 0 to `limit` − 1.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True once in `odds` throws.
    pub(crate) fn once_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap_or(0);
        choices[index]
    }
}
