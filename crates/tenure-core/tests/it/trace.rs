//! Random traces: steps in words that still make sense when others are dropped, so that a failing
//! trace shrinks to a short one.

use std::time::Duration;

use proptest::prelude::*;
use tenure_core::{
    Acquire, Action, Cancel, Convert, Fence, ForceRelease, Inbox, Mode, Party, Release, Renew,
    Timestamp, Ttl, Waiting,
};

use crate::support::{self, Seen, permits};

/// Time passes, something may happen to a process, somebody asks something.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) pass: Pass,
    pub(crate) event: Event,
    pub(crate) ask: Ask,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Pass {
    Nothing,
    Micros(u64),
    /// A good part of a lease.
    Millis(u64),
    /// To the very moment when the first hold or place ends: the boundary itself.
    ToNextEnd,
    PastAll,
    /// The store's clock steps back.
    Back(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Nothing,
    /// Pushes to this owner's process reach nobody for now.
    Unreachable(u8),
    Reachable(u8),
    /// The process ends; what the owner asks next comes from a new one. The store may see that the
    /// process ended before it sees that nobody listens any more.
    Dies {
        owner: u8,
        still_reachable: bool,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Acquire {
        owner: u8,
        mode: Mode,
        ttl: u64,
        alive_for: Option<u64>,
        anchored: bool,
        limit: Limit,
    },
    Renew {
        owner: u8,
        hold: Hold,
        ttl: u64,
        detach: bool,
    },
    Convert(u8, Hold),
    Release(u8, Hold),
    Force(u8, Hold),
    Cancel(u8),
    Inspect,
    /// A request from long ago arrives again.
    Again(prop::sample::Index),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    None,
    Past,
    Future,
}

/// Which hold of the owner's is meant.
#[derive(Clone, Debug)]
pub(crate) enum Hold {
    Current,
    /// One of all that were ever granted to anybody.
    Old(prop::sample::Index),
    Invented,
}

/// The trace so far, as far as later steps refer to it.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) requests: Vec<Action>,
    pub(crate) fences: Vec<Fence>,
    pub(crate) processes: [u8; OWNERS as usize],
}

pub(crate) const OWNERS: u8 = 6;

impl Past {
    /// The inbox of the process that this owner asks from at present.
    pub(crate) fn inbox(&self, owner: u8) -> Inbox {
        let mut bytes = [owner; 16];
        bytes[1] = self.processes[usize::from(owner)];
        Inbox::from_bytes(bytes)
    }

    pub(crate) fn happen(&mut self, event: Event, seen: &mut Seen) {
        match event {
            Event::Nothing => {}
            Event::Unreachable(owner) => {
                seen.unreachable.insert(self.inbox(owner));
            }
            Event::Reachable(owner) => {
                seen.unreachable.remove(&self.inbox(owner));
            }
            Event::Dies {
                owner,
                still_reachable,
            } => {
                let inbox = self.inbox(owner);
                if !still_reachable {
                    seen.unreachable.insert(inbox.clone());
                }
                seen.dead.insert(inbox);
                let process = &mut self.processes[usize::from(owner)];
                *process = process.wrapping_add(1);
            }
        }
    }

    /// The action that `ask` means now.
    pub(crate) fn action(&self, ask: &Ask, lock: &support::Lock) -> Action {
        match ask {
            Ask::Acquire {
                owner,
                mode,
                ttl,
                alive_for,
                anchored,
                limit,
            } => Action::Acquire(Acquire {
                owner: support::owner(*owner),
                mode: *mode,
                ttl: milliseconds(*ttl),
                party: Party::new("somebody", "", "somewhere", u32::from(*owner)),
                waiting: self.waiting(*owner, *alive_for),
                anchor: anchored.then(|| self.inbox(*owner)),
                not_after: limit.at(lock.now),
            }),
            Ask::Renew {
                owner,
                hold,
                ttl,
                detach,
            } => Action::Renew(Renew {
                owner: support::owner(*owner),
                fence: self.fence(*owner, hold, lock),
                ttl: milliseconds(*ttl),
                detach: *detach,
                terms: None,
            }),
            Ask::Convert(owner, hold) => Action::Convert(Convert {
                owner: support::owner(*owner),
                fence: self.fence(*owner, hold, lock),
            }),
            Ask::Release(owner, hold) => Action::Release(Release {
                owner: support::owner(*owner),
                fence: self.fence(*owner, hold, lock),
            }),
            Ask::Force(owner, hold) => Action::ForceRelease(ForceRelease {
                owner: support::owner(*owner),
                fence: self.fence(*owner, hold, lock),
                by: Party::default(),
                reason: "because".to_owned(),
            }),
            Ask::Cancel(owner) => Action::Cancel(Cancel {
                owner: support::owner(*owner),
            }),
            Ask::Inspect => Action::Inspect,
            Ask::Again(_) if self.requests.is_empty() => Action::Inspect,
            Ask::Again(which) => which.get(&self.requests).clone(),
        }
    }

    fn waiting(&self, owner: u8, alive_for: Option<u64>) -> Waiting {
        alive_for.map_or(Waiting::No, |millis| Waiting::Queue {
            inbox: self.inbox(owner),
            alive_for: Duration::from_millis(millis),
        })
    }

    fn fence(&self, owner: u8, hold: &Hold, lock: &support::Lock) -> Fence {
        match hold {
            Hold::Current => lock
                .state
                .holder(support::owner(owner))
                .map_or(Fence::NONE, |holder| holder.fence),
            Hold::Old(_) if self.fences.is_empty() => Fence::NONE,
            Hold::Old(which) => *which.get(&self.fences),
            Hold::Invented => Fence::from_u64(lock.now.as_micros() + 7),
        }
    }
}

impl Limit {
    fn at(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::None => None,
            Self::Past => Some(Timestamp::from_micros(now.as_micros() - 1)),
            Self::Future => Some(now.plus(Duration::from_millis(300))),
        }
    }
}

fn milliseconds(number: u64) -> Ttl {
    Ttl::new(Duration::from_millis(number)).expect("traces use ttls in range")
}

/// Traces of one kind of use, with a sprinkle of the wrong kind.
pub(crate) fn trace() -> impl Strategy<Value = Vec<Step>> {
    (2..=OWNERS, any::<bool>()).prop_flat_map(|(owners, semaphore)| {
        let (usual, odd) = if semaphore {
            (permit_modes().boxed(), lock_modes().boxed())
        } else {
            (lock_modes().boxed(), permit_modes().boxed())
        };
        let mode = prop_oneof![
            20 => usual,
            1 => odd,
            1 => Just(permits(1, 2)),
        ];
        let step = (passes(), events(owners), asks(owners, mode.boxed()));
        let step = step.prop_map(|(pass, event, ask)| Step { pass, event, ask });
        prop::collection::vec(step, 1..60)
    })
}

fn lock_modes() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Exclusive), Just(Mode::Shared)]
}

fn permit_modes() -> impl Strategy<Value = Mode> {
    (1..=3_u32).prop_map(|count| permits(count, 3))
}

fn passes() -> impl Strategy<Value = Pass> {
    prop_oneof![
        6 => Just(Pass::Nothing),
        4 => (1..50_u64).prop_map(Pass::Micros),
        3 => (1..150_u64).prop_map(Pass::Millis),
        2 => Just(Pass::ToNextEnd),
        1 => Just(Pass::PastAll),
        1 => (1..50_u64).prop_map(Pass::Back),
    ]
}

fn events(owners: u8) -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Nothing),
        2 => (0..owners).prop_map(Event::Unreachable),
        2 => (0..owners).prop_map(Event::Reachable),
        1 => (0..owners, any::<bool>())
            .prop_map(|(owner, still_reachable)| Event::Dies { owner, still_reachable }),
    ]
}

fn asks(owners: u8, mode: BoxedStrategy<Mode>) -> impl Strategy<Value = Ask> {
    let owner = 0..owners;
    let lengths = prop_oneof![Just(100_u64), Just(200), Just(400)];
    let alive_for = prop_oneof![1 => Just(None), 3 => (2..400_u64).prop_map(Some)];
    let limit = prop_oneof![
        8 => Just(Limit::None),
        1 => Just(Limit::Past),
        2 => Just(Limit::Future),
    ];
    let acquire = (
        owner.clone(),
        mode,
        lengths.clone(),
        alive_for,
        any::<bool>(),
        limit,
    );
    prop_oneof![
        12 => acquire.prop_map(|(owner, mode, ttl, alive_for, anchored, limit)| Ask::Acquire {
            owner, mode, ttl, alive_for, anchored, limit,
        }),
        4 => (owner.clone(), holds(), lengths, any::<bool>())
            .prop_map(|(owner, hold, ttl, detach)| Ask::Renew { owner, hold, ttl, detach }),
        2 => (owner.clone(), holds()).prop_map(|(owner, hold)| Ask::Convert(owner, hold)),
        5 => (owner.clone(), holds()).prop_map(|(owner, hold)| Ask::Release(owner, hold)),
        1 => (owner.clone(), holds()).prop_map(|(owner, hold)| Ask::Force(owner, hold)),
        2 => owner.prop_map(Ask::Cancel),
        1 => Just(Ask::Inspect),
        4 => any::<prop::sample::Index>().prop_map(Ask::Again),
    ]
}

fn holds() -> impl Strategy<Value = Hold> {
    prop_oneof![
        8 => Just(Hold::Current),
        2 => any::<prop::sample::Index>().prop_map(Hold::Old),
        1 => Just(Hold::Invented),
    ]
}
