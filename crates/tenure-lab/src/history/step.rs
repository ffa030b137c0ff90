//! [`Step`] and [`Said`]: what a client asks a store and what it answers, as far as a judge needs it.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use tenure::core::{
    Acquire, Action, Cancel, Convert, ForceRelease, Inbox, Outcome, Release, Removed, Renew, Terms,
    Waiting,
};
use tenure::{Fence, Mode, OwnerId, Party, Timestamp, Ttl};

use super::text;

/// What a client asks a store about one lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Who asks, or about whom.
    #[serde(
        with = "text::optional",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub owner: Option<OwnerId>,
    /// About which hold.
    #[serde(
        with = "text::optional",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub fence: Option<Fence>,
    /// What is asked.
    #[serde(flatten)]
    pub ask: Asked,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Asked {
    /// Take it or wait for it.
    Acquire {
        /// In which way.
        #[serde(with = "text::mode")]
        mode: Mode,
        /// How long the lease lasts unless renewed.
        ttl_ms: u64,
        /// How long the place in the queue is kept; absent if it does not wait.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        alive_ms: Option<u64>,
        /// Where grants are told, and what the hold dies with.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        inbox: Option<String>,
        /// Later than this it takes nothing.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        not_after: Option<u64>,
    },
    /// Prolong it.
    Renew {
        /// From now.
        ttl_ms: u64,
        /// Left behind.
        detach: bool,
        /// What a store that forgot needs to take it back.
        #[serde(with = "text::mode")]
        mode: Mode,
        /// It does not tell the store that, and is no reason to take it back: by lease alone, or of an answer that
        /// came too late.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        bare: bool,
    },
    /// Make it shared.
    Convert,
    /// End it.
    Release,
    /// End whatever the owner has.
    Cancel,
    /// End somebody else's.
    ForceRelease,
    /// What is not judged: looking, and votes.
    Other,
}

/// What a store says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// It is yours.
    Granted {
        /// With this fence.
        #[serde(with = "text")]
        fence: Fence,
        /// Until then, by the store's clock.
        expiry: u64,
    },
    /// You wait.
    Queued {
        /// Until when the store lets nobody in, by its own clock.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        recovering: Option<u64>,
    },
    /// Somebody is in the way.
    Busy {
        /// Until when the store lets nobody in, by its own clock.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        recovering: Option<u64>,
    },
    /// Too late.
    TooLate,
    /// In use as something else.
    Conflict,
    /// It lasts until then, by the store's clock.
    Renewed {
        /// In microseconds.
        expiry: u64,
    },
    /// It is shared now.
    Converted,
    /// It has ended.
    Released,
    /// A place in the queue was given up.
    CancelledWaiter,
    /// A grant was given up.
    CancelledGrant,
    /// There was nothing to give up.
    CancelledNothing,
    /// There is no such hold.
    NotHeld,
    /// The store is recovering, and does not know such a hold.
    Forgotten,
    /// What is not judged.
    Other,
}

impl From<&Action> for Step {
    fn from(action: &Action) -> Self {
        let (owner, fence, ask) = match action {
            Action::Acquire(it) => (Some(it.owner), None, acquire(it)),
            Action::Renew(it) => {
                let ask = Asked::Renew {
                    ttl_ms: millis(it.ttl.duration()),
                    detach: it.detach,
                    mode: it.terms.as_ref().map_or(Mode::Exclusive, |it| it.mode),
                    bare: it.terms.is_none(),
                };
                (Some(it.owner), Some(it.fence), ask)
            }
            Action::Convert(it) => (Some(it.owner), Some(it.fence), Asked::Convert),
            Action::Release(it) => (Some(it.owner), Some(it.fence), Asked::Release),
            Action::Cancel(it) => (Some(it.owner), None, Asked::Cancel),
            Action::ForceRelease(it) => (Some(it.owner), Some(it.fence), Asked::ForceRelease),
            Action::Vote(_) | Action::Inspect => (None, None, Asked::Other),
        };
        Self { owner, fence, ask }
    }
}

fn acquire(acquire: &Acquire) -> Asked {
    let alive_ms = match &acquire.waiting {
        Waiting::No => None,
        Waiting::Queue { alive_for, .. } => Some(millis(*alive_for)),
    };
    let inbox = match &acquire.waiting {
        Waiting::Queue { inbox, .. } => Some(inbox),
        Waiting::No => acquire.anchor.as_ref(),
    };
    Asked::Acquire {
        mode: acquire.mode,
        ttl_ms: millis(acquire.ttl.duration()),
        alive_ms,
        inbox: inbox.map(ToString::to_string),
        not_after: acquire.not_after.map(Timestamp::as_micros),
    }
}

impl Step {
    /// The step as `decide` wants it; `None` for what is not judged.
    pub(crate) fn action(&self) -> Option<Action> {
        let owner = self.owner?;
        let held = || self.fence.map(|fence| (owner, fence));
        Some(match &self.ask {
            Asked::Acquire {
                mode,
                ttl_ms,
                alive_ms,
                inbox,
                not_after,
            } => {
                let inbox = inbox.as_deref().and_then(Inbox::parse);
                let waiting = match (alive_ms, &inbox) {
                    (Some(alive_ms), Some(inbox)) => Waiting::Queue {
                        inbox: inbox.clone(),
                        alive_for: Duration::from_millis(*alive_ms),
                    },
                    _ => Waiting::No,
                };
                Action::Acquire(Acquire {
                    owner,
                    mode: *mode,
                    ttl: ttl(*ttl_ms)?,
                    party: Party::default(),
                    waiting,
                    anchor: inbox,
                    not_after: not_after.map(Timestamp::from_micros),
                })
            }
            Asked::Renew {
                ttl_ms,
                detach,
                mode,
                bare,
            } => Action::Renew(Renew {
                owner,
                fence: held()?.1,
                ttl: ttl(*ttl_ms)?,
                detach: *detach,
                terms: (!bare).then(|| Terms {
                    mode: *mode,
                    party: Party::default(),
                }),
            }),
            Asked::Convert => Action::Convert(Convert {
                owner,
                fence: held()?.1,
            }),
            Asked::Release => Action::Release(Release {
                owner,
                fence: held()?.1,
            }),
            Asked::Cancel => Action::Cancel(Cancel { owner }),
            Asked::ForceRelease => Action::ForceRelease(ForceRelease {
                owner,
                fence: held()?.1,
                by: Party::default(),
                reason: String::new(),
            }),
            Asked::Other => return None,
        })
    }
}

impl From<&Outcome> for Said {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Granted(grant) => Self::Granted {
                fence: grant.fence,
                expiry: grant.expiry.as_micros(),
            },
            Outcome::Queued { contention, .. } => Self::Queued {
                recovering: contention.recovering.map(Timestamp::as_micros),
            },
            Outcome::Busy(contention) => Self::Busy {
                recovering: contention.recovering.map(Timestamp::as_micros),
            },
            Outcome::TooLate => Self::TooLate,
            Outcome::Conflict { .. } => Self::Conflict,
            Outcome::Renewed { expiry } => Self::Renewed {
                expiry: expiry.as_micros(),
            },
            Outcome::Converted { .. } => Self::Converted,
            Outcome::Released => Self::Released,
            Outcome::Cancelled(Removed::Waiter) => Self::CancelledWaiter,
            Outcome::Cancelled(Removed::Grant) => Self::CancelledGrant,
            Outcome::Cancelled(Removed::Nothing) => Self::CancelledNothing,
            Outcome::NotHeld { .. } => Self::NotHeld,
            Outcome::Forgotten { .. } => Self::Forgotten,
            Outcome::State(_) => Self::Other,
        }
    }
}

fn ttl(millis: u64) -> Option<Ttl> {
    Ttl::new(Duration::from_millis(millis)).ok()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
