//! What the SQLite store promises, and what breaks it.

use tenure_core::{Clocks, Guarantees, Holds, Order, Promise, PromiseId};

/// What the SQLite store promises.
pub const GUARANTEES: Guarantees = Guarantees {
    store: "sqlite",
    scope: "processes of one machine that use the same file",
    clock: "time since boot (CLOCK_BOOTTIME), which never jumps and counts sleep",
    clocks: Clocks::One,
    wake_up: "Unix datagram with the grant, a poll of the file as a net",
    order: Order::Arrival,
    permits: true,
    promises: [
        Promise {
            id: PromiseId::S1,
            holds: Holds::If(
                "the file is kept; after it was deleted, or the machine lost power, if the wall \
                 clock has not gone back",
            ),
        },
        Promise {
            id: PromiseId::S2,
            holds: Holds::If(
                "one kernel alone uses the file, and nobody deletes, replaces or restores it \
                 while it is in use",
            ),
        },
        Promise {
            id: PromiseId::S3,
            holds: Holds::If("S1 holds"),
        },
        Promise {
            id: PromiseId::L1,
            holds: Holds::Within(
                "no time if the process was killed, the rest of the ttl if it was stopped (not in \
                 the middle of its transaction: then until it goes on or is killed)",
            ),
        },
        Promise {
            id: PromiseId::L2,
            holds: Holds::If(
                "no process is stopped in the middle of its transaction, and the next waiter is not \
                 stopped (at most 22.5 s)",
            ),
        },
        Promise {
            id: PromiseId::L3,
            holds: Holds::Within("one poll, 250 ms by default"),
        },
    ],
};
