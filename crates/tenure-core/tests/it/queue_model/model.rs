//! The explorer: visits every state that can be reached with so many faults, until a promise is broken.
//! Time has no end: states that differ only in what time it is are one.

use std::collections::{BTreeSet, VecDeque};

use super::world::World;

/// How much goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// Messages that never arrive.
    pub(super) losses: u8,
    /// Messages that arrive later, or again.
    pub(super) delays: u8,
    /// Processes that die.
    pub(super) crashes: u8,
    /// Processes that stand still for a while.
    pub(super) pauses: u8,
    /// Restarts of the server, after which it knows nothing.
    pub(super) restarts: u8,
    /// Waiters that change their mind.
    pub(super) cancels: u8,
}

/// What the explorer can leave out, to see what it was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// A release names owner and fence.
    ReleasesNameTheHold,
    /// A lease counts from when it was asked for.
    ValidityFromTheSend,
    /// Fences follow the clock, and not a count that is lost with the rest.
    FencesFollowTheClock,
    /// A pushed grant is short until it is claimed.
    ClaimWindow,
    /// Places in the queue end without a sign of life.
    WaitersEnd,
    /// A cancellation also ends what was granted meanwhile.
    CancelEndsGrants,
    /// Waiters ask again.
    WaitersAskAgain,
    /// A server that forgot lets nobody in for a while.
    Recovery,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// S2.
    TwoHolders,
    /// S1, and so S3: the resource goes by the fence alone.
    FenceRepeated,
    /// L1 to L3: nothing is wrong any more, nobody holds it, and somebody waits for too long.
    Starved,
    /// Everybody is gone, and something is left.
    Leak,
}

#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) found: Found,
    pub(super) story: String,
}

/// Which rules are left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a>(pub(super) &'a [Rule]);

impl Rules<'_> {
    pub(super) fn keep(self, rule: Rule) -> bool {
        !self.0.contains(&rule)
    }
}

/// Visits all states; answers how many there are, and what went wrong in the first that is found.
pub(super) fn explore(clients: u8, faults: Faults, left_out: &[Rule]) -> (usize, Option<Broken>) {
    let rules = Rules(left_out);
    let start = World::new(clients, faults);
    let mut seen = BTreeSet::from([start.key()]);
    let mut open = VecDeque::from([start]);
    let mut next = Vec::new();
    while let Some(world) = open.pop_front() {
        assert!(
            seen.len() < 3_000_000,
            "too many states: allow fewer faults"
        );
        world.successors(rules, &mut next);
        for world in next.drain(..) {
            if let Some(found) = world.found {
                let story = world.story();
                return (seen.len(), Some(Broken { found, story }));
            }
            if seen.insert(world.key()) {
                open.push_back(world);
            }
        }
    }
    (seen.len(), None)
}
