//! The record as it is written in Redis:
//! `v1 <life> <until> <run> <line> <max_ttl> <durable> <cause> <wait> <earlier> <witnessed> <place>`. The first three
//! words are settle.lua's.
//!
//! `wait` is how long before `until` the life began, in microseconds; `earlier` when the lives before it
//! did, the newest first, with commas between, or "-". `witnessed` is that word or "-": whether somebody besides the
//! server was asked before it was written. `place` is which place the server had, since when: of a cluster the id of
//! the node and its configuration epoch (`<id>/<epoch>`), under Sentinel the epoch in which a majority named it, else
//! "-". Whoever does not know the last words leaves them out.

use std::time::Duration;

use tenure_core::{Cause, LIVES_KEPT, Life, Record, Seen, Timestamp};

/// Reads a record; `None` if it is none, or not ours.
pub(in super::super) fn read(text: &str) -> Option<Record> {
    let mut words = text.strip_prefix("v1 ")?.split(' ');
    let mut next = || words.next();
    let life = Life::parse(next()?)?;
    let until = Timestamp::from_micros(next()?.parse().ok()?);
    let (run, line) = (next()?.into(), next()?.into());
    let max_ttl = Duration::from_millis(next()?.parse().ok()?);
    let durable = next()? == "durable";
    let cause = Cause::parse(next().unwrap_or_default());
    let wait = next().and_then(|wait| wait.parse().ok()).unwrap_or(0);
    let began = Timestamp::from_micros(until.as_micros().saturating_sub(wait));
    let earlier = next().unwrap_or("-").split(',');
    let earlier = earlier.filter_map(|began| began.parse().ok().map(Timestamp::from_micros));
    Some(Record {
        life,
        run,
        line,
        until,
        max_ttl,
        durable,
        cause,
        began: std::iter::once(began)
            .chain(earlier)
            .take(LIVES_KEPT)
            .collect(),
    })
}

/// Whether a record says that it was written only after [witnesses](super::witnesses) had confirmed the server.
pub(super) fn says_witnessed(text: &str) -> bool {
    text.split(' ').nth(10) == Some(WITNESSED)
}

/// Whose place the server had when its record was written, and since when, if it says so.
pub(super) fn place_of(text: &str) -> Option<&str> {
    text.split(' ').nth(11).filter(|place| *place != "-")
}

const WITNESSED: &str = "witnessed";

/// Why a server waits, of the server.
pub(in super::super) fn because(cause: Cause) -> &'static str {
    match cause {
        Cause::Unknown | Cause::Vouched => "it is new or has lost everything",
        Cause::Restarted => "it has restarted since it was last used",
        Cause::TookOver => {
            "it was a replica, was replaced for a while, or had a replica when it last stopped"
        }
        Cause::Wiped => "data was wiped there",
        Cause::Missed => "it has lost its data",
    }
}

/// The beginning of a life, as far as whoever decides it can say.
#[derive(Clone, Debug)]
pub(super) struct Beginning {
    pub(super) life: Life,
    pub(super) wait: Duration,
    pub(super) cause: Cause,
    pub(super) max_ttl: Duration,
    /// Whether the server [keeps everything](Seen::keeps_everything).
    pub(super) durable: bool,
    /// When earlier lives began, the newest first.
    pub(super) earlier: Vec<Timestamp>,
}

impl Beginning {
    /// For how long nobody is let in, as settle.lua takes it.
    pub(super) fn micros(&self) -> u64 {
        u64::try_from(self.wait.as_micros()).unwrap_or(u64::MAX)
    }

    /// All words of the record after `until`.
    pub(super) fn words(&self, seen: &Seen, witnessed: bool, place: Option<&str>) -> String {
        let Seen { run, line, .. } = seen;
        let durable = if self.durable { "durable" } else { "-" };
        let (max_ttl, cause) = (self.max_ttl.as_millis(), self.cause.word());
        let earlier = self.earlier.iter().take(LIVES_KEPT - 1);
        let earlier: Vec<_> = earlier.map(|it| it.as_micros().to_string()).collect();
        let earlier = match &earlier[..] {
            [] => "-".to_owned(),
            some => some.join(","),
        };
        let wait = self.micros();
        let witnessed = if witnessed { WITNESSED } else { "-" };
        let place = place.unwrap_or("-");
        format!("{run} {line} {max_ttl} {durable} {cause} {wait} {earlier} {witnessed} {place}")
    }
}

/// What two tell of the same lives, the newest first.
pub(super) fn merged(one: &[Timestamp], other: &[Timestamp]) -> Vec<Timestamp> {
    let mut all: Vec<Timestamp> = one.iter().chain(other).copied().collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    all.dedup();
    all.truncate(LIVES_KEPT);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        Seen {
            run: "run".into(),
            line: "line".into(),
            took_over: false,
            age: Duration::ZERO,
            durable: true,
            has_replicas: false,
            wiped: false,
            now: seconds(100),
        }
    }

    fn seconds(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for earlier in [vec![], vec![seconds(90)], vec![seconds(90), seconds(80)]] {
            let earlier_count = earlier.len();
            let beginning = Beginning {
                life: Life::from_u64(7),
                wait: Duration::from_secs(3),
                cause: Cause::Wiped,
                max_ttl: Duration::from_secs(30),
                durable: earlier.is_empty(),
                earlier,
            };
            let witnessed = earlier_count > 0;
            let place = witnessed.then_some("node");
            let words = beginning.words(&seen(), witnessed, place);
            let text = format!("v1 {} 103000000 {words}", beginning.life);
            assert_eq!(says_witnessed(&text), witnessed, "{text}");
            assert_eq!(place_of(&text), place, "{text}");
            let record = read(&text).expect("a record");
            assert_eq!(record.life, beginning.life);
            assert!(record.is_of(&seen()));
            assert_eq!(record.durable, beginning.durable);
            assert_eq!((record.until, record.cause), (seconds(103), Cause::Wiped));
            let began = std::iter::once(seconds(100)).chain(beginning.earlier);
            let began: Vec<_> = began.collect();
            assert_eq!(record.began, began, "{text}");
        }
    }

    #[test]
    fn an_older_record_is_read_as_far_as_it_goes() {
        let text = "v1 0000000000000007 100000000 run line 30000 -";
        assert!(!says_witnessed(text));
        assert_eq!(place_of(text), None);
        let record = read(text).expect("a record");
        assert_eq!(record.began, [seconds(100)]);
        assert!(record.cause.is_evidence(), "nothing says that it was new");
        for text in [
            "",
            "v1",
            "v2 0000000000000007 1 run line 1 -",
            "v1 7 1 run line 1 -",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn lives_that_two_know_of_count_once() {
        let (one, other) = ([seconds(9), seconds(5)], [seconds(9), seconds(7)]);
        assert_eq!(merged(&one, &other), [seconds(9), seconds(7), seconds(5)]);
        assert_eq!(merged(&one, &[]), one);
    }
}
