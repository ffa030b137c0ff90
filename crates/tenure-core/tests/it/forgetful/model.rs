//! The explorer: visits every state that can be reached within the bounds, until a rule is broken.

use std::collections::{BTreeSet, VecDeque};

use tenure_core::Mode;

use super::client::CLIENTS;
use super::server::Fault;
use super::world::World;

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How long it lasts.
    pub(super) ticks: u8,
    /// How often the server forgets.
    pub(super) faults: u8,
    /// How many messages arrive late, or again, or never.
    pub(super) late: u8,
    /// How often a clock is off: a client's, so that it gives up a tick early, or that of a promoted replica.
    pub(super) clocks: u8,
    /// How often a server restarts without forgetting anything.
    pub(super) kept: u8,
    /// Who wants to hold in which way.
    pub(super) cast: Cast,
    pub(super) kind: Kind,
}

/// What a server is like, and what everybody was told about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It may lose what it has when it restarts, and has replicas.
    Forgetful,
    /// It saves every write, and has replicas that do.
    Durable,
    /// It saves every write, and has no replicas: everybody was told so.
    Alone,
    /// Everybody was told so, but it has replicas.
    SaidToBeAlone,
}

impl Kind {
    pub(super) fn is_said_to_be_alone(self) -> bool {
        matches!(self, Self::Alone | Self::SaidToBeAlone)
    }

    /// Whether this can happen to such a server.
    pub(super) fn allows(self, fault: Fault) -> bool {
        match fault {
            Fault::Wipe | Fault::RestartKept => true,
            Fault::RestartEmpty | Fault::RestartFromCopy(_) => self == Self::Forgetful,
            Fault::Promotion(_) | Fault::PromotionAhead(_) => self != Self::Alone,
        }
    }
}

/// In which way each client holds.
pub(super) type Cast = [Mode; CLIENTS as usize];

/// What the explorer can leave out, to see what it was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    RequestsAreBoundToALife,
    LostIsFinal,
    /// No step lets anybody in while recovering.
    NobodyIsLetIn,
    /// A release or cancellation lets nobody in while recovering.
    ReleasesLetNobodyIn,
    /// What is stored with a lower fence gives way to who renews.
    TheHigherFenceWins,
    FencesFollowTheClock,
    NoOpeningWithoutARecord,
    /// The age of a server that took over another's data says nothing.
    ATakeoverIsNoAge,
    /// A server that has just started carries out nothing before somebody said hello.
    HelloComesFirst,
    /// A life that replaces one which is still recovering does not open before it.
    RecoveryGoesOn,
    /// A client believes for less than its lease, by as much as its clock may be slow.
    AMarginForSlowClocks,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    TwoHolders,
    FenceRepeated,
    ValidHolderLost,
}

/// What went wrong, and how it came to that.
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

/// Visits all states; answers how many there are, and what went wrong in one of them: the first that
/// is found, or the first of the kind that is wanted.
pub(super) fn explore(
    bounds: Bounds,
    left_out: &[Rule],
    wanted: Option<Found>,
) -> (usize, Option<Broken>) {
    let rules = Rules(left_out);
    let start = World::new(bounds);
    let mut seen = BTreeSet::from([start.key()]);
    let mut open = VecDeque::from([start]);
    let mut next = Vec::new();
    while let Some(world) = open.pop_front() {
        assert!(
            seen.len() < 1_500_000,
            "too many states: tighten the bounds"
        );
        world.successors(rules, &mut next);
        for world in next.drain(..) {
            if let Some(found) = world.found
                && wanted.is_none_or(|wanted| wanted == found)
            {
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
