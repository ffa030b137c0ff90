//! The clients: what they believe, and what they may send next.

use std::time::Duration;

use tenure_core::{
    Acquire, Action, Fence, Inbox, Life, Mode, OwnerId, Party, Release, Renew, Terms, Ttl, Waiting,
};

use super::server::{TICK, TTL};

/// How many there are; the last is a newcomer, who never knew the server.
pub(super) const CLIENTS: u8 = 3;
const NEWCOMER: u8 = CLIENTS - 1;
/// Whose messages may be late.
pub(super) const UNLUCKY: u8 = 0;

/// What a client does at most: enough for every schedule that is known to break something.
struct Role {
    asks: u8,
    renewals: u8,
    gives_back: bool,
}

const ROLES: [Role; CLIENTS as usize] = [
    Role {
        asks: 1,
        renewals: 2,
        gives_back: true,
    },
    Role {
        asks: 2,
        renewals: 1,
        gives_back: false,
    },
    Role {
        asks: 1,
        renewals: 0,
        gives_back: false,
    },
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) stage: Stage,
    pub(super) renewals: u8,
    /// Acquires sent.
    pub(super) asked: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Idle,
    Asked,
    /// Believes that it holds, up to this tick.
    Holds {
        fence: Fence,
        until: u8,
    },
    Lost {
        fence: Fence,
    },
    Done,
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ask {
    Acquire,
    Renew(Fence),
    Release(Fence),
}

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Message {
    pub(super) from: u8,
    pub(super) ask: Ask,
    pub(super) life: Life,
    pub(super) sent: u8,
}

impl Client {
    pub(super) const NEW: Self = Self {
        stage: Stage::Idle,
        renewals: 0,
        asked: 0,
    };

    /// What it may send now, and what it is then.
    pub(super) fn may_send(&self, number: u8) -> Vec<(Ask, Self)> {
        let role = &ROLES[usize::from(number)];
        match self.stage {
            Stage::Idle | Stage::Asked if self.asked < role.asks => {
                let asked = Self {
                    stage: Stage::Asked,
                    asked: self.asked + 1,
                    ..*self
                };
                vec![(Ask::Acquire, asked)]
            }
            Stage::Holds { fence, .. } => {
                let mut may = Vec::new();
                if role.gives_back {
                    may.push((Ask::Release(fence), self.done()));
                }
                if self.renewals < role.renewals {
                    let renewed = Self {
                        renewals: self.renewals + 1,
                        ..*self
                    };
                    may.push((Ask::Renew(fence), renewed));
                }
                may
            }
            // Whoever has lost it tidies up.
            Stage::Lost { fence } if role.gives_back => vec![(Ask::Release(fence), self.done())],
            _ => Vec::new(),
        }
    }

    /// Nothing that it does or hears matters any more.
    fn done(&self) -> Self {
        Self {
            stage: Stage::Done,
            ..Self::NEW
        }
    }

    pub(super) fn is_valid(&self, now: u8) -> bool {
        matches!(self.stage, Stage::Holds { until, .. } if now < until)
    }
}

pub(super) fn owner(client: u8) -> OwnerId {
    OwnerId::from_bytes([client; 16])
}

/// Which client an owner is.
pub(super) fn client_of(owner: OwnerId) -> u8 {
    owner.as_bytes()[0]
}

/// Whether it has spoken to the server before. A newcomer is a process that has just begun.
pub(super) fn knew(client: u8) -> bool {
    client != NEWCOMER
}

/// The request as the store gets it.
pub(super) fn action(from: u8, ask: Ask, mode: Mode) -> Action {
    let (owner, ttl) = (owner(from), ttl());
    match ask {
        Ask::Acquire => Action::Acquire(Acquire {
            owner,
            mode,
            ttl,
            party: Party::default(),
            waiting: waiting(from),
            anchor: None,
            not_after: None,
        }),
        Ask::Renew(fence) => Action::Renew(Renew {
            owner,
            fence,
            ttl,
            detach: false,
            terms: Some(Terms {
                mode,
                party: Party::default(),
            }),
        }),
        Ask::Release(fence) => Action::Release(Release { owner, fence }),
    }
}

fn waiting(from: u8) -> Waiting {
    if from == NEWCOMER {
        return Waiting::No;
    }
    Waiting::Queue {
        inbox: Inbox::from_bytes([from; 16]),
        // The claim window is half of it: as long as a lease.
        alive_for: length() * 2,
    }
}

fn length() -> Duration {
    TICK * u32::from(TTL)
}

fn ttl() -> Ttl {
    Ttl::new(length()).expect("some seconds")
}
