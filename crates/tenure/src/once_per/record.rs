//! What is remembered of a run that was counted: a lease on a name beside the lock's, left behind
//! until the period ends. Who and when is in the lease; how it ended is in its label, as a sentence
//! that people can read in `tenure ls` and this file can, too.

use std::fmt;
use std::time::Duration;

use tenure_core::{HolderView, Lease, Party, Snapshot, Spelled, Timestamp};

/// What is put before a name for the record of its counted run.
const PREFIX: &str = "~once:";

/// The label of a run that has started and has not said yet how it ended.
pub(crate) const STARTED: &str = "started";

/// A run that was counted: nobody runs it again before its period has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedRun {
    /// Who ran it.
    pub by: Party,
    /// When it started, by the store's clock.
    pub started: Timestamp,
    /// When it ended, by the store's clock; `None` while that is not known.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub ending: Ending,
    /// When it stops counting, by the store's clock.
    pub until: Timestamp,
    /// The store's clock when it was asked, to count from.
    pub now: Timestamp,
    /// With which [`Tenure::force_release`](crate::Tenure::force_release) on
    /// [`OncePer::record_name`](crate::OncePer::record_name) makes it not count; `None` if something
    /// foreign is in its place.
    pub lease: Option<Lease>,
}

/// How a counted run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has not said so: it still runs, or died, or could not reach the store at its end.
    Unknown,
    /// Well.
    Succeeded,
    /// Not well; in words, which may be empty.
    Failed(String),
}

impl CountedRun {
    /// What the record says, if there is one.
    pub(crate) fn read(now: Timestamp, record: &Snapshot) -> Option<Self> {
        // While the end is being written down there are two: the later one says more.
        let holder = record.holders.last()?;
        let written = holder.since.unwrap_or(now);
        let (ending, took) = parse(holder.party.label());
        let lease = holder.owner.zip(holder.fence);
        Some(Self {
            by: anonymous(holder),
            started: Timestamp::from_micros(
                written
                    .as_micros()
                    .saturating_sub(micros(took.unwrap_or_default())),
            ),
            ended: took.map(|_| written),
            ending,
            until: holder.expiry.unwrap_or(Timestamp::from_micros(u64::MAX)),
            now,
            lease: lease.map(|(owner, fence)| Lease { owner, fence }),
        })
    }

    /// How long ago it started.
    #[must_use]
    pub fn started_ago(&self) -> Duration {
        self.now.since(self.started)
    }

    /// How long it took, if it has said that it has ended.
    #[must_use]
    pub fn took(&self) -> Option<Duration> {
        self.ended.map(|ended| ended.since(self.started))
    }

    /// For how long it still counts.
    #[must_use]
    pub fn counts_for(&self) -> Duration {
        self.until.since(self.now)
    }
}

/// For people: `ann@web-1 pid 7 ran it 4m12s ago, for 12s: succeeded; it counts for another 20h`.
impl fmt::Display for CountedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, ending, .. } = self;
        let ago = Spelled(self.started_ago());
        match self.took() {
            Some(took) => write!(f, "{by} ran it {ago} ago, for {}: {ending}", Spelled(took))?,
            None => write!(f, "{by} started it {ago} ago and {ending}")?,
        }
        write!(f, "; it counts for another {}", Spelled(self.counts_for()))
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("has not said how it ended"),
            Self::Succeeded => f.write_str("succeeded"),
            Self::Failed(how) if how.is_empty() => f.write_str("failed"),
            Self::Failed(how) => write!(f, "failed: {how}"),
        }
    }
}

/// The name of the record beside the lock of this name.
pub(crate) fn name(lock: &str) -> String {
    format!("{PREFIX}{lock}")
}

/// The label for a run that took this long.
pub(crate) fn label(ending: &Ending, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    match ending {
        Ending::Unknown => STARTED.to_owned(),
        Ending::Succeeded => format!("ok after {seconds:.3}s"),
        Ending::Failed(how) if how.is_empty() => format!("failed after {seconds:.3}s"),
        Ending::Failed(how) => format!("failed after {seconds:.3}s: {how}"),
    }
}

fn parse(label: &str) -> (Ending, Option<Duration>) {
    let unknown = (Ending::Unknown, None);
    let Some((word, rest)) = label.split_once(" after ") else {
        return unknown;
    };
    let (seconds, how) = rest
        .split_once("s: ")
        .unwrap_or((rest.trim_end_matches('s'), ""));
    let took = seconds.parse().ok();
    let Some(took) = took.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) else {
        return unknown;
    };
    match word {
        "ok" => (Ending::Succeeded, Some(took)),
        "failed" => (Ending::Failed(how.to_owned()), Some(took)),
        _ => unknown,
    }
}

/// Who it was, without the label, which is ours.
fn anonymous(holder: &HolderView) -> Party {
    let party = &holder.party;
    Party::new(party.who(), "", party.host(), party.pid())
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let took = Duration::from_millis(12_345);
        for ending in [
            Ending::Succeeded,
            Ending::Failed(String::new()),
            Ending::Failed("exit code 3".to_owned()),
            Ending::Failed("of: s: after 3s: all".to_owned()),
        ] {
            assert_eq!(parse(&label(&ending, took)), (ending, Some(took)));
        }
    }

    #[test]
    fn a_counted_run_says_who_when_how_and_until_when() {
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        let run = CountedRun {
            by: Party::new("ann@web-1", "", "web-1", 7),
            started: at(100),
            ended: Some(at(112)),
            ending: Ending::Failed("exit code 3".to_owned()),
            until: at(412),
            now: at(352),
            lease: None,
        };
        assert_eq!(
            run.to_string(),
            "ann@web-1 pid 7 ran it 4m12s ago, for 12s: failed: exit code 3; it counts for another 1m"
        );
        let runs = CountedRun {
            ended: None,
            ending: Ending::Unknown,
            ..run
        };
        assert_eq!(
            runs.to_string(),
            "ann@web-1 pid 7 started it 4m12s ago and has not said how it ended; it counts for another 1m"
        );
    }

    #[test]
    fn what_is_no_ending_is_unknown() {
        for label in [
            STARTED,
            "",
            "ok",
            "ok after",
            "ok after xs",
            "gone after 3s",
            "ok after -1s",
        ] {
            assert_eq!(parse(label), (Ending::Unknown, None), "{label:?}");
        }
    }
}
