//! The clients: what they believe, what they owe, and what they send.

use std::time::Duration;

use tenure_core::{
    Acquire, Action, Cancel, Fence, Inbox, Mode, OwnerId, Party, Release, Renew, Terms, Timestamp,
    Ttl, Waiting,
};

pub(super) const TICK: Duration = Duration::from_secs(1);
/// In ticks, and as in the library: places last for more than three signs of life, claim windows for
/// half of that.
pub(super) const ALIVE: u16 = 4;
pub(super) const CLAIM: u16 = ALIVE / 2;
/// Longer than a dead waiter may hold others up.
pub(super) const TTL: u16 = 5;
/// How long it is held, if all goes well.
pub(super) const WORK: u16 = 2;

pub(super) fn time(tick: u16) -> Timestamp {
    Timestamp::from_micros(1_000_000_000).plus(TICK * u32::from(tick))
}

/// How many ticks after `now` this is.
pub(super) fn ticks_after(moment: Timestamp, now: u16) -> u16 {
    let ticks = moment.since(time(now)).as_secs();
    u16::try_from(ticks).unwrap_or(u16::MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Idle,
    Waiting {
        /// When it last asked.
        asked: u16,
    },
    /// Believes that it holds, up to this tick.
    Holds {
        fence: Fence,
        since: u16,
        until: u16,
        /// It was pushed, and its first renewal is due.
        unclaimed: bool,
    },
    /// Knows that it is over, and still has to say so.
    Lost {
        fence: Fence,
    },
    /// Has gone home.
    Done,
    Dead,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) stage: Stage,
    pub(super) paused: bool,
    /// The life of the server that it last heard of.
    pub(super) life: u8,
    /// It has sent its one renewal.
    pub(super) renewed: bool,
    /// What the server has of it, if anything, was given for a whole ttl and not just to be claimed.
    pub(super) whole: bool,
    /// The server gave it something when it had gone: a question of its own arrived again, too soon
    /// to be too late.
    pub(super) ghost: bool,
}

impl Client {
    pub(super) const NEW: Self = Self {
        stage: Stage::Idle,
        paused: false,
        life: 0,
        renewed: false,
        whole: false,
        ghost: false,
    };

    pub(super) fn is_valid(&self, now: u16) -> bool {
        matches!(self.stage, Stage::Holds { until, .. } if now < until)
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Done | Stage::Dead)
    }

    /// What it has to do before time may pass: ask again, claim what it was given, give it back.
    pub(super) fn owes(&self, now: u16, asks_again: bool) -> bool {
        match self.stage {
            _ if self.paused => false,
            Stage::Waiting { asked } => asks_again && asked < now,
            Stage::Holds {
                since, unclaimed, ..
            } => unclaimed || since + WORK <= now,
            Stage::Lost { .. } => true,
            Stage::Idle | Stage::Done | Stage::Dead => false,
        }
    }
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ask {
    Acquire,
    Renew(Fence),
    Release(Fence),
    Cancel,
}

pub(super) fn owner(client: u8) -> OwnerId {
    OwnerId::from_bytes([client; 16])
}

pub(super) fn client_of(owner: OwnerId) -> u8 {
    owner.as_bytes()[0]
}

/// The request as the store gets it, if it was sent at `sent`.
pub(super) fn action(from: u8, ask: Ask, sent: u16) -> Action {
    let owner = owner(from);
    let ttl = Ttl::new(TICK * u32::from(TTL)).expect("some seconds");
    match ask {
        Ask::Acquire => Action::Acquire(Acquire {
            owner,
            mode: Mode::Exclusive,
            ttl,
            party: Party::default(),
            waiting: Waiting::Queue {
                inbox: Inbox::from_bytes([from; 16]),
                alive_for: TICK * u32::from(ALIVE),
            },
            anchor: None,
            // Carried out in the same tick, or not at all: whoever cancels does so later.
            not_after: Some(time(sent)),
        }),
        Ask::Renew(fence) => Action::Renew(Renew {
            owner,
            fence,
            ttl,
            detach: false,
            terms: Some(Terms {
                mode: Mode::Exclusive,
                party: Party::default(),
            }),
        }),
        Ask::Release(fence) => Action::Release(Release { owner, fence }),
        Ask::Cancel => Action::Cancel(Cancel { owner }),
    }
}
