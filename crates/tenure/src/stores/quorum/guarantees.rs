//! What a quorum of Redis servers promises, in honest words.

use tenure_core::{Clocks, Guarantees, Holds, Order, Promise, PromiseId};

const S3: Promise = Promise {
    id: PromiseId::S3,
    holds: Holds::If("S1 holds"),
};

const L2: Promise = Promise {
    id: PromiseId::L2,
    holds: Holds::No(
        "every waiter is told that it may be free, and after a few random milliseconds they race for \
         it; under RESP2 nobody is told, and they ask every few seconds",
    ),
};

const L3: Promise = Promise {
    id: PromiseId::L3,
    holds: Holds::Within("5.3 s, or when the lease that is in the way was to end"),
};

const L1: Promise = Promise {
    id: PromiseId::L1,
    holds: Holds::Within("the rest of the ttl, and a race of those who wait"),
};

/// What a majority of Redis servers promises.
pub const MAJORITY: Guarantees = Guarantees {
    store: "redlock",
    scope: "all clients of the same servers (and database and prefix), on any machine",
    clock: "the wall clocks of the servers; of a lease, that of the slowest of the fastest majority",
    clocks: Clocks::Several,
    wake_up: "a message from every server that the lock may be free (RESP3), then a race",
    order: Order::Race,
    permits: false,
    promises: [
        Promise {
            id: PromiseId::S1,
            holds: Holds::If(
                "of any two majorities one server in common keeps its data, or the servers' wall \
                 clocks have passed the last fence",
            ),
        },
        Promise {
            id: PromiseId::S2,
            holds: Holds::If(
                "of any two majorities one server in common keeps what it has acknowledged and its \
                 wall clock gains at most the margin and 0.1 % during a lease. A holder that has all \
                 votes, as most have, is safe from a minority of servers that do neither",
            ),
        },
        S3,
        L1,
        L2,
        L3,
    ],
};

/// What several Redis servers promise that all have to agree.
pub const UNANIMOUS: Guarantees = Guarantees {
    store: "redis+all",
    scope: "all clients of the same servers (and database and prefix), on any machine",
    clock: "the wall clocks of the servers; of a lease, that of the first to end it",
    clocks: Clocks::Several,
    wake_up: MAJORITY.wake_up,
    order: Order::Race,
    permits: false,
    promises: [
        Promise {
            id: PromiseId::S1,
            holds: Holds::If(
                "one of the servers keeps its data, or their wall clocks have passed the last fence",
            ),
        },
        Promise {
            id: PromiseId::S2,
            holds: Holds::If(
                "one of the servers keeps what it has acknowledged and its wall clock gains at most \
                 the margin and 0.1 % during a lease. The price: nobody gets a lock while any server \
                 is down",
            ),
        },
        S3,
        L1,
        L2,
        L3,
    ],
};
