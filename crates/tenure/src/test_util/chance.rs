//! [`seed_chance`]: what is random in a client follows from a number, so that a test can be replayed.

use std::cell::Cell;

thread_local! {
    static STATE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// From here on, all that clients draw on this thread (owners, inboxes, jitter) follows from `seed`;
/// with `None` it is random again.
///
/// Together with virtual time on a `current_thread` runtime, a test does the same each time it is run
/// with the same seed. **Never outside tests**: owners that can be guessed are no owners.
pub fn seed_chance(seed: Option<u64>) {
    STATE.set(seed);
}

/// The next number, if this thread was given a seed: splitmix64, whose numbers do not repeat.
pub(crate) fn next() -> Option<u64> {
    let state = STATE.get()?.wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(Some(state));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Some(mixed ^ (mixed >> 31))
}
