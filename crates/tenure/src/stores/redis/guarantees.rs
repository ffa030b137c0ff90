//! What one Redis server, and one that Sentinel watches over, promises, in honest words.

use tenure_core::{Clocks, Guarantees, Holds, Order, Promise, PromiseId};

/// What the Redis store promises.
pub const GUARANTEES: Guarantees = Guarantees {
    store: "redis",
    scope: "all clients of one Redis server (and database and prefix), on any machine",
    clock: "the server's wall clock",
    clocks: Clocks::OneAtATime,
    wake_up: "a message on the same connection (RESP3), or on a second one (RESP2)",
    order: Order::Arrival,
    permits: true,
    promises: [
        Promise {
            id: PromiseId::S1,
            holds: Holds::If(
                "its wall clock is not set back by more than a day or, after the server lost data, \
                 behind the last fence it gave",
            ),
        },
        Promise {
            id: PromiseId::S2,
            holds: Holds::If(
                "nothing is evicted or deleted by others, no lease is longer than max_ttl (a server that \
                 restarts without its data or takes over from another waits that long and lets \
                 nobody in, unless recovery is off), no primary goes on after it was replaced, replicas=none is \
                 said of no server that has them, and the server's wall clock gains at most the margin and \
                 0.1 % during a lease, by step or by slew",
            ),
        },
        Promise {
            id: PromiseId::S3,
            holds: Holds::If("S1 holds"),
        },
        Promise {
            id: PromiseId::L1,
            holds: Holds::Within(
                "the rest of the ttl (after a hand-over at least 7.5 s), then the next sign of life \
                 of a waiter; longer by as much as the server's wall clock is set back",
            ),
        },
        Promise {
            id: PromiseId::L2,
            holds: Holds::If(
                "the holder is a tenure client (others are polled) and the next waiter lives: one \
                 that is stopped, or whose machine is cut off, holds up the others for at most 22.5 s",
            ),
        },
        Promise {
            id: PromiseId::L3,
            holds: Holds::Within(
                "the time between two signs of life of a waiter, 5.3 s, and 3 s more if the connection \
                 is dead and nobody said so",
            ),
        },
    ],
};

/// What the Redis store promises on servers that Sentinel watches over.
pub const SENTINEL_GUARANTEES: Guarantees = Guarantees {
    store: "redis+sentinel",
    scope: "all clients of one service of the same sentinels (and database and prefix), on any \
            machine",
    clock: "the primary's wall clock",
    clocks: Clocks::OneAtATime,
    wake_up: "a message on the same connection (RESP3), or on a second one (RESP2), once the \
              sentinels have confirmed the primary",
    order: Order::Arrival,
    permits: true,
    promises: [
        Promise {
            id: PromiseId::S1,
            holds: Holds::If(
                "no wall clock is set back by more than a day and, after a failover that lost \
                 grants, the new primary's is ahead of the last fence",
            ),
        },
        Promise {
            id: PromiseId::S2,
            holds: Holds::If(
                "no lease is longer than max_ttl or left behind without its process (a promoted \
                 replica waits that long and lets nobody in, while holders take back what is \
                 theirs, unless recovery is off), no sentinel goes back to a configuration that it has \
                 left (SENTINEL REMOVE and MONITOR, a lost configuration file) or is added while the network is divided, all clients come by the \
                 sentinels and name a majority of them, nothing is evicted or deleted by others, and the primary's wall clock gains at most the \
                 margin and 0.1 % during a lease, by step or by slew",
            ),
        },
        Promise {
            id: PromiseId::S3,
            holds: Holds::If("S1 holds"),
        },
        Promise {
            id: PromiseId::L1,
            holds: Holds::Within(
                "what redis needs, and the time of a failover (down-after-milliseconds, a few \
                 seconds and then max_ttl)",
            ),
        },
        Promise {
            id: PromiseId::L2,
            holds: Holds::If("as for redis, and a majority of the sentinels answers"),
        },
        Promise {
            id: PromiseId::L3,
            holds: Holds::Within("what redis needs, and the time of a failover"),
        },
    ],
};

/// What the Redis store promises on a cluster.
pub const CLUSTER_GUARANTEES: Guarantees = Guarantees {
    store: "redis+cluster",
    scope: "all clients of one Redis Cluster (and prefix), on any machine",
    clock: "the wall clock of the node that has the lock's slot",
    clocks: Clocks::OneAtATime,
    wake_up: "a message on the connection to that node (RESP3), or on a second one (RESP2), once a \
              majority of the primaries has confirmed the node",
    order: Order::Arrival,
    permits: true,
    promises: [
        Promise {
            id: PromiseId::S1,
            holds: Holds::If(
                "no wall clock is set back by more than a day and, after a failover that lost grants or \
                 with the data of a node, the next node's is ahead of the last fence",
            ),
        },
        Promise {
            id: PromiseId::S2,
            holds: Holds::If(
                "no lease is longer than max_ttl or left behind without its process (slots that have \
                 another node, or whose node has restarted, wait that long and let nobody in, while holders \
                 take back what is theirs, unless recovery is off), of several primaries at most one at a \
                 time is replaced while it still serves (CLUSTER FAILOVER TAKEOVER replaces any number) and \
                 no slot is given away (CLUSTER ADDSLOTS, SETSLOT) while the node that had it does, nothing is evicted or deleted by others, and the wall \
                 clock of a node gains at most the margin and 0.1 % during a lease, by step or by slew",
            ),
        },
        Promise {
            id: PromiseId::S3,
            holds: Holds::If("S1 holds"),
        },
        Promise {
            id: PromiseId::L1,
            holds: Holds::Within(
                "what redis needs, and the time of a failover or of moving the slot, and then max_ttl: while \
                 a slot is on its way, its locks can be neither taken nor renewed",
            ),
        },
        Promise {
            id: PromiseId::L2,
            holds: Holds::If(
                "as for redis, the node that has the slot serves it, and a majority of the primaries answers",
            ),
        },
        Promise {
            id: PromiseId::L3,
            holds: Holds::Within(
                "what redis needs, and the time of a failover or of moving the slot",
            ),
        },
    ],
};
