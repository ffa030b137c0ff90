//! What somebody who waits can be told: [`Blocked`] and [`WaitReport`].

use std::time::Duration;

use tenure_core::{Contention, Error, ErrorKind, HolderView, LockName, Moment, Timestamp};

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

    /// When the lease of `holder` ends unless it is renewed, counted from the store's answer.
    #[must_use]
    pub fn expires_in(&self, holder: &HolderView) -> Option<Duration> {
        holder.expiry.map(|expiry| expiry.since(self.now))
    }
}

/// How a wait is going. The default is a wait that has not heard from the store yet.
#[derive(Debug, Default)]
pub struct WaitReport {
    /// The last answer of the store, if it has answered yet.
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
        *self = Self {
            blocked: Some(blocked),
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
            let limit = in_milliseconds(limit);
            return Error::new(
                ErrorKind::Unavailable,
                format!("gave up waiting for the lock {name:?} after {limit:?}: the store cannot be asked"),
            )
            .with("because", why);
        }
        if let Some(blocked) = self.blocked.as_ref().or(blocked.as_ref()) {
            return busy(name, limit, blocked);
        }
        let limit = in_milliseconds(limit);
        Error::new(
            ErrorKind::Unavailable,
            format!(
                "gave up waiting for the lock {name:?} after {limit:?} before the store answered"
            ),
        )
    }
}

/// The error of somebody who did not get in.
pub(super) fn busy(name: &LockName, limit: Duration, blocked: &Blocked) -> Error {
    let mut error = waited(name, limit);
    if let Some(left) = blocked.recovering() {
        error = error.with("recovering", format_args!("{left:.0?} left"));
        if blocked.contention.restless {
            let advice = "the store recovers again and again, and may never let anybody in";
            error = error.with("restless", advice);
        } else {
            error = error.with("if it is known to be new", "tenure doctor --init");
        }
    }
    if let Some(holder) = blocked.contention.holders.first() {
        error = error.with("held by", &holder.party);
        if let Some(held_for) = blocked.held_for(holder) {
            error = error.with("for", format_args!("{held_for:.0?}"));
        }
    }
    error
}

/// Nobody wants to read nanoseconds.
fn in_milliseconds(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn waited(name: &LockName, limit: Duration) -> Error {
    let limit = in_milliseconds(limit);
    Error::new(
        ErrorKind::Busy,
        format!("the lock {name:?} is busy; waited {limit:?}"),
    )
}
