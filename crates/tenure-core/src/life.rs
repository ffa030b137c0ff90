//! A server that forgot: how a store notices that it may have lost grants ([`hello`]), and what that
//! means for everybody who asks ([`Record::phase_for`], [`Phase`]).
//!
//! A server that restarts without (all of) its data, or that took over from another before the last
//! writes reached it, would give away locks that are held. So it first waits until the longest lease
//! that it may have forgotten has ended, and lets nobody in; holders take back what is theirs by
//! renewing. The argument, and what remains unprotected, is in
//! `docs/decisions/006-a-server-that-forgot.md`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Cause, Timestamp};

/// Whether a store lets anybody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// As usual. Stores that never forget are [always](Phase::ALWAYS_OPEN) open.
    Open {
        /// Since when it lets people in, by the store's clock. What was granted earlier is from another life: it may have ended
        /// since, and is no answer to somebody who asks for the lock.
        since: Timestamp,
    },
    /// It may have forgotten who holds what. Nobody is let in; holders reinstate by renewing.
    Recovering {
        /// When all that it may have forgotten has ended, by the store's clock.
        until: Timestamp,
    },
}

impl Phase {
    /// Of a store that never forgets.
    pub const ALWAYS_OPEN: Self = Self::Open {
        since: Timestamp::from_micros(0),
    };

    /// Whether people are let in.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Until when nobody is let in; `None` if the store is open.
    #[must_use]
    pub const fn recovering_until(self) -> Option<Timestamp> {
        match self {
            Self::Open { .. } => None,
            Self::Recovering { until } => Some(until),
        }
    }
}

/// That a store lets nobody in, because it may have forgotten who holds what, as those see it who only look. Ordered by
/// which opens later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recovering {
    /// It opens by itself after so long.
    Left(Duration),
    /// **Time alone does not open it**: it begins to wait for so long when somebody first asks for a lock. Looking begins
    /// nothing.
    OnceAsked(Duration),
}

impl Recovering {
    /// For how long nobody is let in, if somebody asks now.
    #[must_use]
    pub const fn duration(self) -> Duration {
        match self {
            Self::Left(left) | Self::OnceAsked(left) => left,
        }
    }
}

/// One uninterrupted memory of a server, from the record that begins it to whatever ends it.
///
/// Random and new for each record, so that no two lives look alike. Every request carries the life
/// that it was sent to, and another life refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Life(u64);

impl Life {
    /// A life from 64 random bits.
    #[must_use]
    pub const fn from_u64(bits: u64) -> Self {
        Self(bits)
    }

    /// A life read back from where it was kept.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits
            .then(|| u64::from_str_radix(text, 16).ok())
            .flatten()
            .map(Self)
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a store remembers about its own memory, beside the locks and lost together with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The life that began when this was written.
    pub life: Life,
    /// Which start of which server wrote it.
    pub run: Arc<str>,
    /// Which line of data that server had; it changes when a replica is promoted.
    pub line: Arc<str>,
    /// Until when nobody is let in. In the past: open.
    pub until: Timestamp,
    /// The longest lease that the waiting protects.
    pub max_ttl: Duration,
    /// Whether that server [kept everything](Seen::keeps_everything) that it acknowledged.
    pub durable: bool,
    /// Why it began.
    pub cause: Cause,
    /// When it began, and the lives before it as far as that is known: the newest first.
    pub began: Vec<Timestamp>,
}

/// How many lives a record tells of: enough to see that there are too many.
pub const LIVES_KEPT: usize = 3;

impl Record {
    /// The phase at `now`.
    #[must_use]
    pub fn phase(&self, now: Timestamp) -> Phase {
        if self.until > now {
            Phase::Recovering { until: self.until }
        } else {
            Phase::Open { since: self.until }
        }
    }

    /// How a request that was sent to `life` is to be decided at `now`; `None` if it must not be,
    /// because the server that it was meant for is no more: whoever sent it says hello, and asks again.
    ///
    /// Otherwise a renewal that was delayed across a restart would revive a lease that had ended.
    ///
    /// Nor if it would wait for longer than anything can last: see [`is_ahead`](Self::is_ahead).
    #[must_use]
    pub fn phase_for(record: Option<&Self>, life: Life, now: Timestamp) -> Option<Phase> {
        let record = record.filter(|record| record.life == life && !record.is_ahead(now))?;
        Some(record.phase(now))
    }

    /// Whether it was written when the server's clock was ahead of what it shows now, by so much that the
    /// server would be closed for longer than anything that it may have forgotten can last.
    #[must_use]
    pub fn is_ahead(&self, now: Timestamp) -> bool {
        self.until.since(now) > self.max_ttl + AGE_IS_OFF_BY
    }

    /// Whether lives follow so fast on each other that the store may never open: the third began
    /// within three times the longest protected lease, and not long ago.
    ///
    /// A server that restarts again and again does that, one whose place others take again and again,
    /// and several servers behind one address.
    #[must_use]
    pub fn is_restless(&self, now: Timestamp) -> bool {
        let oldest = self.began.get(LIVES_KEPT - 1);
        // One that is in the future was written when the clock was ahead: when it began, nobody knows.
        oldest.is_some_and(|oldest| *oldest <= now && now.since(*oldest) <= self.max_ttl * 3)
    }

    /// Whether a server that shows itself as `seen` is the one that wrote this, and has kept its
    /// memory since.
    ///
    /// The line also changes when the first replica attaches and when the last one is long gone;
    /// only a change that took over another server's data loses anything.
    #[must_use]
    pub fn is_of(&self, seen: &Seen) -> bool {
        self.run == seen.run && (self.line == seen.line || !seen.took_over)
    }
}

/// What a server shows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Names this start of this server.
    pub run: Arc<str>,
    /// Names its line of data.
    pub line: Arc<str>,
    /// Whether its data may have come from another server since it started: it was a replica.
    pub took_over: bool,
    /// How long it has been running, at least.
    pub age: Duration,
    /// Whether it saves everything before it acknowledges it, and so has it again after a crash. Says
    /// nothing about others that have a copy of its data.
    pub durable: bool,
    /// Whether others follow its data now.
    pub has_replicas: bool,
    /// Whether there are traces of data having been wiped since it started.
    pub wiped: bool,
    /// What its clock shows.
    pub now: Timestamp,
}

impl Seen {
    /// For how long a lease of up to `max_ttl` that an earlier run of this server granted may go on.
    #[must_use]
    pub fn until_earlier_leases_end(&self, max_ttl: Duration) -> Duration {
        (max_ttl + AGE_IS_OFF_BY).saturating_sub(self.age)
    }

    /// Whether this server will have everything that it acknowledges also after its next restart: what a
    /// record says of the server that wrote it ([`Record::durable`]).
    ///
    /// That it saves every write is not enough. A replica has a copy of the data, the record included, and
    /// perhaps not the last writes; once it has been promoted and restarted nothing tells it from its
    /// primary. That there is none, and never will be, only a person can say.
    #[must_use]
    pub fn keeps_everything(&self, greeting: &Greeting) -> bool {
        self.durable && greeting.no_replicas && !self.has_replicas && !self.took_over
    }
}

/// How careful a client is with a server that may have forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// **Unsafe.** A server that forgot gives away what is held.
    Off,
    /// A server without a record is taken for new, however young it is. **Unsafe** if it has just
    /// restarted without its data.
    Open,
    /// A server without a record is taken for new if it has been running for longer than any lease,
    /// shows no trace of having been wiped, and was not known to this client before.
    #[default]
    Careful,
    /// A server is never taken for new: its first use waits once.
    Strict,
}

/// What a client brings along when it says [`hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// How careful it is.
    pub recovery: Recovery,
    /// Whether it has spoken to this server before, and so knows that it was in use.
    pub knew: bool,
    /// Whether it has done so since the server started: a record of an earlier start is then not what it was.
    pub knew_this_run: bool,
    /// The longest lease that waiting protects.
    pub max_ttl: Duration,
    /// Whether a person has said that the server has no replicas, and never gets one that could take
    /// its place. **Unsafe** if that is wrong: see [`Seen::keeps_everything`].
    pub no_replicas: bool,
}

/// What follows from a [`hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hello {
    /// The record stands, and says whether the store is open.
    Known(Life),
    /// A new life begins: a new record is written, if the old one is still there unchanged. Nobody
    /// is let in for this long.
    Begin {
        /// Zero if nothing can have been forgotten.
        wait: Duration,
        /// What speaks for something having been there.
        cause: Cause,
    },
    /// Others protect leases of another length here, and waiting for ours would not protect theirs.
    Disagree {
        /// Theirs.
        max_ttl: Duration,
    },
}

/// How far off the age of a server may be: it counts in whole seconds.
const AGE_IS_OFF_BY: Duration = Duration::from_secs(2);

/// Decides whether the server that shows itself as `seen` remembers what it granted.
///
/// To be run on every new connection, before anything else is asked, and whenever a request was
/// refused because of its life. With [`Recovery::Off`] there is nothing to decide: do not ask.
///
/// What is *not* seen here: that data was deleted by hand, key by key; that a copy of the data was
/// restored into a server that is already running; that two servers answer behind one address.
#[must_use]
pub fn hello(record: Option<&Record>, seen: &Seen, greeting: &Greeting) -> Hello {
    let whole = greeting.max_ttl;
    let rest = seen.until_earlier_leases_end(whole);
    let strict = greeting.recovery == Recovery::Strict;
    let wait = match record {
        Some(record) if record.max_ttl != whole => {
            let max_ttl = record.max_ttl;
            return Hello::Disagree { max_ttl };
        }
        Some(record) if record.is_of(seen) && !record.is_ahead(seen.now) => {
            return Hello::Known(record.life);
        }
        // Whose data it took over was in use until a moment ago, however old this server is.
        _ if seen.took_over => whole,
        // Older data without a restart: that nothing was lost in one says nothing about it.
        Some(_) if greeting.knew_this_run || seen.wiped => whole,
        // The same disk, as nobody else has one like it, and nothing was lost from it.
        Some(record) if record.durable && seen.keeps_everything(greeting) => Duration::ZERO,
        _ if strict => whole,
        Some(_) => rest,
        None if greeting.knew => whole,
        None if greeting.recovery == Recovery::Open => Duration::ZERO,
        None if seen.wiped => whole,
        None => rest,
    };
    // What was forgotten before is not remembered by forgetting nothing now. But it has ended after the whole,
    // whatever was written: the clock may have been set back.
    let pending = record.map_or(Duration::ZERO, |record| record.until.since(seen.now));
    let wait = wait.max(pending.min(whole));
    let cause = cause(record, seen, greeting);
    Hello::Begin { wait, cause }
}

fn cause(record: Option<&Record>, seen: &Seen, greeting: &Greeting) -> Cause {
    match record {
        Some(record) if record.is_of(seen) => record.cause,
        _ if seen.took_over => Cause::TookOver,
        Some(_) if greeting.knew_this_run => Cause::Missed,
        Some(_) if seen.wiped => Cause::Wiped,
        Some(_) => Cause::Restarted,
        None if greeting.knew => Cause::Missed,
        None if seen.wiped => Cause::Wiped,
        None => Cause::Unknown,
    }
}
