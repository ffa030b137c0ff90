//! What somebody who waits can be told: [`Blocked`] and [`WaitReport`].

use std::fmt;
use std::time::Duration;

use tenure_core::{Contention, Error, ErrorKind, HolderView, LockName, Moment, Spelled, Timestamp};

use crate::gate::News;

/// Who was in the way when the store was last asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The store's clock when it answered.
    pub now: Timestamp,
    /// How many wait before us in the store's queue; `None` if we do not queue.
    pub ahead: Option<u32>,
    /// Who holds it, and how many wait.
    pub contention: Contention,
}

impl Blocked {
    /// For how long `holder` had held the lock when the store answered.
    #[must_use]
    pub fn held_for(&self, holder: &HolderView) -> Option<Duration> {
        holder.since.map(|since| self.now.since(since))
    }

    /// For how long nobody is let in, counted from the store's answer, because the store may have
    /// forgotten who holds what; `None` as usual.
    #[must_use]
    pub fn recovering(&self) -> Option<Duration> {
        let until = self.contention.recovering;
        until.map(|until| until.since(self.now))
    }

    /// Whether nobody is known to hold the lock: several asked for it at once, and each got so much of it that none could
    /// have it. Only on a store without a queue (a quorum), and not before a few seconds of such races.
    #[must_use]
    pub fn nobody_won(&self) -> bool {
        let Contention {
            holder_count,
            waiter_count,
            recovering,
            ..
        } = self.contention;
        holder_count == 0 && waiter_count == 0 && recovering.is_none()
    }

    fn sentence(&self, holder: &HolderView) -> String {
        let mut sentence = match holder.owner {
            Some(_) => format!("held by {}", holder.party),
            None => "held by something that is not tenure".to_owned(),
        };
        if let Some(time) = self.held_for(holder) {
            sentence += &format!(" for {}", Spelled(time));
        }
        sentence += &match self.expires_in(holder) {
            Some(left) => format!(", for another {} at most unless renewed", Spelled(left)),
            None => ", until it is released".to_owned(),
        };
        sentence
    }

    /// When the lease of `holder` ends unless it is renewed, counted from the store's answer.
    #[must_use]
    pub fn expires_in(&self, holder: &HolderView) -> Option<Duration> {
        holder.expiry.map(|expiry| expiry.since(self.now))
    }
}

/// For people: `held by ann@web-1 (pid 7) for 4m12s, for another 22s at most unless renewed; 2 wait`.
impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contention {
            holders,
            holder_count,
            waiter_count,
            restless,
            ..
        } = &self.contention;
        let mut parts = Vec::new();
        if let Some(left) = self.recovering() {
            let often = if *restless { ", again and again," } else { "" };
            let left = Spelled(left);
            parts.push(format!(
                "the store recovers{often} and lets nobody in for another {left}"
            ));
        }
        if let Some(holder) = holders.first() {
            parts.push(self.sentence(holder));
        }
        if *holder_count > 1 && !holders.is_empty() {
            parts.push(format!("{} more hold it", holder_count - 1));
        }
        if *waiter_count > 0 {
            parts.push(format!("{waiter_count} wait"));
        }
        if parts.is_empty() {
            parts.push(NOBODY_WON.to_owned());
        }
        f.write_str(&parts.join("; "))
    }
}

const NOBODY_WON: &str = "nobody is known to hold it, but others ask for it, too, and none has won";

/// How a wait is going. The default is a wait that has not heard from the store yet.
#[derive(Debug, Default)]
pub struct WaitReport {
    /// The last answer of the store, if it has answered yet. One to a race that nobody won replaces none that names a holder.
    pub blocked: Option<Blocked>,
    /// Set while the store cannot be asked: since when, and the last error.
    pub silence: Option<Silence>,
}

/// A store that cannot be asked.
#[derive(Debug)]
pub struct Silence {
    /// Since when.
    pub since: Moment,
    /// Why, the last time.
    pub error: Error,
}

impl WaitReport {
    pub(super) fn store_answered(&mut self, blocked: Blocked) {
        let named = |told: &Blocked| !told.nobody_won();
        let told = self.blocked.take().filter(named);
        *self = Self {
            blocked: told.filter(|_| blocked.nobody_won()).or(Some(blocked)),
            silence: None,
        };
    }

    pub(super) fn store_failed(&mut self, error: Error, now: Moment) {
        let since = self.silence.as_ref().map_or(now, |silence| silence.since);
        self.silence = Some(Silence { since, error });
    }

    /// The error for a wait of `limit` that ran out: "busy" only if the store said so, to us or to
    /// the task of this process that stands in line before us.
    pub(super) fn ran_out(&self, name: &LockName, limit: Duration, news: Option<News>) -> Error {
        let (silence, blocked) = match news {
            Some(News::Blocked(blocked)) => (None, Some(blocked)),
            Some(News::Ours(holder)) if self.silence.is_none() && self.blocked.is_none() => {
                return waited(name, limit).with("held by", &holder);
            }
            Some(News::Silent(why)) => (Some(why), None),
            Some(News::Ours(_)) | None => (None, None),
        };
        let silence = match &self.silence {
            Some(silence) => Some(silence.error.to_string()),
            None => silence.filter(|_| self.blocked.is_none()),
        };
        if let Some(why) = silence {
            let limit = Spelled(limit);
            return Error::new(
                ErrorKind::Unavailable,
                format!(
                    "gave up waiting for the lock {name:?} after {limit}: the store cannot be asked"
                ),
            )
            .with("because", why);
        }
        if let Some(blocked) = self.blocked.as_ref().or(blocked.as_ref()) {
            return busy(name, limit, blocked);
        }
        let limit = Spelled(limit);
        Error::new(
            ErrorKind::Unavailable,
            format!(
                "gave up waiting for the lock {name:?} after {limit} before the store answered"
            ),
        )
    }
}

/// The error of somebody who did not get in.
pub(super) fn busy(name: &LockName, limit: Duration, blocked: &Blocked) -> Error {
    let mut error = waited(name, limit);
    if let Some(left) = blocked.recovering() {
        error = error.with("recovering", format_args!("{} left", Spelled(left)));
        if blocked.contention.restless {
            let advice = "the store recovers again and again, and may never let anybody in";
            error = error.with("restless", advice);
        }
    }
    if blocked.nobody_won() {
        error = error.with("race", NOBODY_WON);
    }
    if let Some(holder) = blocked.contention.holders.first() {
        error = error.with("held by", &holder.party);
        if let Some(held_for) = blocked.held_for(holder) {
            // Since then we have waited, and it may have been renewed or handed on.
            let when = "when the store last answered";
            error = error.with("for", format_args!("{} {when}", Spelled(held_for)));
        }
    }
    error
}

fn waited(name: &LockName, limit: Duration) -> Error {
    let limit = Spelled(limit);
    Error::new(
        ErrorKind::Busy,
        format!("the lock {name:?} is busy; waited {limit}"),
    )
}

#[cfg(test)]
mod tests {
    use tenure_core::{Fence, Mode, OwnerId, Party};

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn blocked(contention: Contention) -> String {
        let blocked = Blocked {
            now: at(1_000),
            ahead: None,
            contention,
        };
        blocked.to_string()
    }

    fn holder() -> HolderView {
        HolderView {
            owner: Some(OwnerId::from_bytes([7; 16])),
            mode: Mode::Exclusive,
            fence: Some(Fence::from_u64(1)),
            since: Some(at(748)),
            expiry: Some(at(1_022)),
            party: Party::default(),
        }
    }

    #[test]
    fn whoever_is_in_the_way_is_named_with_since_when_and_how_long_at_most() {
        let party = Party::default();
        let held = Contention {
            holders: vec![holder()],
            holder_count: 3,
            waiter_count: 2,
            ..Contention::default()
        };
        assert_eq!(
            blocked(held),
            format!(
                "held by {party} for 4m12s, for another 22s at most unless renewed; 2 more hold it; 2 wait"
            )
        );
        let foreign = HolderView {
            owner: None,
            since: None,
            expiry: None,
            ..holder()
        };
        let held = Contention {
            holders: vec![foreign],
            holder_count: 1,
            ..Contention::default()
        };
        assert_eq!(
            blocked(held),
            "held by something that is not tenure, until it is released"
        );
    }

    #[test]
    fn a_race_that_nobody_won_does_not_hide_who_held_it_before() {
        let answer = |holder_count| Blocked {
            now: at(1_000),
            ahead: None,
            contention: Contention {
                holder_count,
                ..Contention::default()
            },
        };
        let mut report = WaitReport::default();
        for (holders, told) in [(0, 0), (2, 2), (0, 2), (1, 1)] {
            report.store_answered(answer(holders));
            assert_eq!(report.blocked, Some(answer(told)));
        }
    }

    #[test]
    fn a_store_that_recovers_says_for_how_long() {
        let recovering = Contention {
            recovering: Some(at(1_012)),
            restless: true,
            ..Contention::default()
        };
        let said = "the store recovers, again and again, and lets nobody in for another 12s";
        assert_eq!(blocked(recovering), said);
        assert_eq!(blocked(Contention::default()), NOBODY_WON);
    }
}
