//! Hello, as a specification: when a server may have forgotten, and how long it waits then.

use std::time::Duration;

use proptest::prelude::*;
use tenure_core::{Cause, Greeting, Hello, Life, Phase, Record, Recovery, Seen, Timestamp, hello};

use crate::support::{START, seconds};

const LIFE: Life = Life::from_u64(7);
const MAX_TTL: Duration = Duration::from_secs(30);
/// Until the last lease of an earlier run has ended, counted from the start, which is not known to
/// the second.
const WHOLE: Duration = Duration::from_secs(32);

fn record() -> Record {
    Record {
        life: LIFE,
        run: "first".into(),
        line: "line".into(),
        until: START,
        max_ttl: MAX_TTL,
        durable: false,
        cause: Cause::Unknown,
        began: vec![START],
    }
}

/// The server that wrote the record, an hour old.
fn same() -> Seen {
    Seen {
        run: "first".into(),
        line: "line".into(),
        took_over: false,
        age: seconds(3600),
        durable: false,
        has_replicas: false,
        wiped: false,
        now: START,
    }
}

fn restarted(age: u64) -> Seen {
    Seen {
        run: "second".into(),
        line: "other line".into(),
        age: seconds(age),
        ..same()
    }
}

fn greeting(recovery: Recovery) -> Greeting {
    Greeting {
        recovery,
        knew: false,
        knew_this_run: false,
        max_ttl: MAX_TTL,
        no_replicas: false,
    }
}

/// Somebody who was told that the server has no replicas.
fn sure(recovery: Recovery) -> Greeting {
    Greeting {
        no_replicas: true,
        ..greeting(recovery)
    }
}

fn careful(record: Option<&Record>, seen: &Seen) -> Option<Duration> {
    waits(record, seen, &greeting(Recovery::Careful))
}

const OPEN: Option<Duration> = Some(Duration::ZERO);

const fn wait(wait: Duration) -> Option<Duration> {
    Some(wait)
}

/// For how long nobody is let in, if a new life begins.
fn waits(record: Option<&Record>, seen: &Seen, greeting: &Greeting) -> Option<Duration> {
    match hello(record, seen, greeting) {
        Hello::Begin { wait, .. } => Some(wait),
        Hello::Known(_) | Hello::Disagree { .. } => None,
    }
}

#[test]
fn the_same_life_goes_on_whoever_asks() {
    for recovery in [Recovery::Open, Recovery::Careful, Recovery::Strict] {
        for knew in [false, true] {
            let greeting = Greeting {
                knew,
                ..greeting(recovery)
            };
            let hello = hello(Some(&record()), &same(), &greeting);
            assert_eq!(hello, Hello::Known(LIFE));
        }
    }
}

#[test]
fn a_restarted_server_waits_until_all_that_it_granted_has_ended() {
    assert_eq!(careful(Some(&record()), &restarted(0)), wait(WHOLE));
    assert_eq!(careful(Some(&record()), &restarted(20)), wait(seconds(12)));
    assert_eq!(careful(Some(&record()), &restarted(3600)), OPEN);
    assert_eq!(careful(None, &restarted(5)), wait(seconds(27)));
}

#[test]
fn a_promoted_replica_waits_however_old_it_is() {
    let promoted = Seen {
        took_over: true,
        ..restarted(3600)
    };
    let again = Seen {
        took_over: true,
        line: "other line".into(),
        ..same()
    };
    for recovery in [Recovery::Open, Recovery::Careful, Recovery::Strict] {
        for seen in [&promoted, &again] {
            for known in [Some(&record()), None] {
                assert_eq!(waits(known, seen, &greeting(recovery)), wait(MAX_TTL));
            }
        }
    }
}

#[test]
fn a_replica_that_attaches_or_leaves_changes_the_line_and_nothing_else() {
    let seen = Seen {
        line: "other line".into(),
        ..same()
    };
    let hello = hello(Some(&record()), &seen, &greeting(Recovery::Careful));
    assert_eq!(hello, Hello::Known(LIFE));
}

#[test]
fn a_server_that_was_never_used_is_open_to_newcomers() {
    assert_eq!(careful(None, &same()), OPEN);
    assert_eq!(waits(None, &same(), &greeting(Recovery::Open)), OPEN);
    let young = restarted(1);
    assert_eq!(waits(None, &young, &greeting(Recovery::Open)), OPEN);
}

#[test]
fn whoever_knew_a_server_without_a_record_knows_that_it_forgot() {
    for recovery in [Recovery::Open, Recovery::Careful, Recovery::Strict] {
        let greeting = Greeting {
            knew: true,
            ..greeting(recovery)
        };
        assert_eq!(waits(None, &same(), &greeting), wait(MAX_TTL));
    }
}

#[test]
fn a_wiped_server_waits_also_for_newcomers_unless_they_are_in_a_hurry() {
    let wiped = Seen {
        wiped: true,
        ..same()
    };
    assert_eq!(careful(None, &wiped), wait(MAX_TTL));
    assert_eq!(waits(None, &wiped, &greeting(Recovery::Open)), OPEN);
}

#[test]
fn strict_takes_no_server_for_new_and_no_age_for_an_excuse() {
    let strict = greeting(Recovery::Strict);
    assert_eq!(waits(None, &same(), &strict), wait(MAX_TTL));
    let restarted = restarted(3600);
    assert_eq!(waits(Some(&record()), &restarted, &strict), wait(MAX_TTL));
}

/// A server that saves every write, before a restart and after.
fn kept() -> (Record, Seen) {
    let record = Record {
        durable: true,
        ..record()
    };
    let seen = Seen {
        durable: true,
        ..restarted(0)
    };
    (record, seen)
}

#[test]
fn a_server_that_saves_every_write_and_has_no_replicas_is_open_at_once() {
    let (written, durable) = kept();
    for recovery in [Recovery::Open, Recovery::Careful, Recovery::Strict] {
        assert_eq!(waits(Some(&written), &durable, &sure(recovery)), OPEN);
    }
    let careful =
        |record: Option<&Record>, seen: &Seen| waits(record, seen, &sure(Recovery::Careful));
    // Made durable only since; not durable any more; not its own data; nothing that would say so.
    assert_eq!(careful(Some(&record()), &durable), wait(WHOLE));
    assert_eq!(careful(Some(&written), &restarted(0)), wait(WHOLE));
    let promoted = Seen {
        took_over: true,
        ..durable.clone()
    };
    assert_eq!(careful(Some(&written), &promoted), wait(MAX_TTL));
    assert_eq!(careful(None, &durable), wait(WHOLE));
}

#[test]
fn unless_somebody_says_that_it_has_no_replicas_it_waits_like_any_other() {
    let (written, durable) = kept();
    assert_eq!(careful(Some(&written), &durable), wait(WHOLE));
    let strict = greeting(Recovery::Strict);
    assert_eq!(waits(Some(&written), &durable, &strict), wait(MAX_TTL));
    // Nor does it help to say so where it can be seen to be wrong.
    let followed = Seen {
        has_replicas: true,
        ..durable
    };
    let sure = sure(Recovery::Careful);
    assert_eq!(waits(Some(&written), &followed, &sure), wait(WHOLE));
}

#[test]
fn a_record_says_that_everything_is_kept_only_if_that_is_so_and_somebody_said_so() {
    let (_, durable) = kept();
    let (told, untold) = (sure(Recovery::Strict), greeting(Recovery::Strict));
    assert!(durable.keeps_everything(&told));
    assert!(!durable.keeps_everything(&untold));
    assert!(!same().keeps_everything(&told));
    for followed in [false, true] {
        let seen = Seen {
            has_replicas: followed,
            took_over: !followed,
            ..durable.clone()
        };
        assert!(!seen.keeps_everything(&told), "{seen:?}");
    }
}

#[test]
fn a_life_that_replaces_one_which_is_still_recovering_does_not_open_before_it() {
    let still = |left| Record {
        until: START.plus(left),
        ..kept().0
    };
    let (_, durable) = kept();
    let sure = |record: Record, seen: &Seen| waits(Some(&record), seen, &sure(Recovery::Careful));
    assert_eq!(sure(still(seconds(7)), &durable), wait(seconds(7)));
    assert_eq!(sure(still(seconds(7)), &restarted(3600)), wait(seconds(7)));
    // Not for longer than anything can last, whatever the clock has done since.
    assert_eq!(sure(still(seconds(7200)), &durable), wait(MAX_TTL));
}

#[test]
fn whoever_knew_this_run_is_not_satisfied_with_the_record_of_an_earlier_one() {
    let swapped = restarted(3600);
    assert_eq!(careful(Some(&record()), &swapped), OPEN);
    let greeting = Greeting {
        knew: true,
        knew_this_run: true,
        ..greeting(Recovery::Careful)
    };
    assert_eq!(waits(Some(&record()), &swapped, &greeting), wait(MAX_TTL));
    let wiped = Seen {
        wiped: true,
        ..swapped
    };
    assert_eq!(careful(Some(&record()), &wiped), wait(MAX_TTL));
    // Nor does it help that every write is saved.
    let (written, durable) = kept();
    let told = Greeting {
        no_replicas: true,
        ..greeting
    };
    assert_eq!(waits(Some(&written), &durable, &told), wait(MAX_TTL));
    let wiped = Seen {
        wiped: true,
        ..durable
    };
    let sure = sure(Recovery::Careful);
    assert_eq!(waits(Some(&written), &wiped, &sure), wait(MAX_TTL));
}

#[test]
fn a_record_from_when_the_clock_was_ahead_is_replaced_and_what_it_says_of_the_past_kept() {
    let ahead = Record {
        until: START.plus(seconds(3600)),
        cause: Cause::Wiped,
        ..record()
    };
    let said = hello(Some(&ahead), &same(), &greeting(Recovery::Careful));
    let (wait, cause) = (MAX_TTL, Cause::Wiped);
    assert_eq!(said, Hello::Begin { wait, cause });
    // Nor is anything decided in it: whoever asks says hello.
    assert_eq!(Record::phase_for(Some(&ahead), LIFE, START), None);
    let began = vec![START.plus(seconds(9)); 3];
    assert!(!Record { began, ..ahead }.is_restless(START));
}

#[test]
fn a_record_is_ahead_from_the_first_moment_that_nothing_can_last_until() {
    let last = Record {
        until: START.plus(WHOLE),
        ..record()
    };
    assert!(!last.is_ahead(START));
    let until = last.until.plus(Duration::from_micros(1));
    assert!(Record { until, ..last }.is_ahead(START));
}

proptest! {
    /// Whatever a server shows and a record says: nobody is kept out for longer than anything that may have been
    /// forgotten can last.
    #[test]
    fn no_server_is_closed_for_longer_than_a_lease(
        until in 0..200_u64,
        now in 0..200_u64,
        age in 0..100_u64,
        recovery in prop::sample::select(vec![Recovery::Open, Recovery::Careful, Recovery::Strict]),
        flags in prop::array::uniform9(any::<bool>()),
    ) {
        let [there, its, took_over, durable, kept, wiped, knew, knew_this_run, no_replicas] = flags;
        let record = Record {
            until: Timestamp::from_micros(until * 1_000_000),
            durable,
            ..record()
        };
        let seen = Seen {
            took_over,
            durable: kept,
            wiped,
            age: seconds(age),
            now: Timestamp::from_micros(now * 1_000_000),
            ..if its { same() } else { restarted(0) }
        };
        let greeting = Greeting {
            knew,
            knew_this_run,
            no_replicas,
            ..greeting(recovery)
        };
        let closed = match hello(there.then_some(&record), &seen, &greeting) {
            Hello::Known(_) => record.until.since(seen.now),
            Hello::Begin { wait, .. } => wait,
            Hello::Disagree { .. } => unreachable!("all protect the same"),
        };
        prop_assert!(closed <= WHOLE, "{closed:?}");
        let phase = Record::phase_for(Some(&record), LIFE, seen.now);
        let until = phase.and_then(Phase::recovering_until);
        prop_assert!(until.is_none_or(|until| until.since(seen.now) <= WHOLE));
    }
}

#[test]
fn whoever_protects_another_length_of_leases_is_told() {
    let greeting = Greeting {
        max_ttl: seconds(5),
        ..greeting(Recovery::Careful)
    };
    let hello = hello(Some(&record()), &restarted(3600), &greeting);
    assert_eq!(hello, Hello::Disagree { max_ttl: MAX_TTL });
}

#[test]
fn a_request_is_decided_in_the_life_that_it_was_sent_to_or_not_at_all() {
    let until = START.plus(seconds(3));
    let record = Record { until, ..record() };
    let phase = |life, now| Record::phase_for(Some(&record), life, now);
    assert_eq!(phase(LIFE, START), Some(Phase::Recovering { until }));
    assert_eq!(phase(LIFE, until), Some(Phase::Open { since: until }));
    assert_eq!(phase(Life::from_u64(8), until), None);
    assert_eq!(Record::phase_for(None, LIFE, until), None);
}

#[test]
fn a_life_can_be_written_down() {
    let life = Life::from_u64(0xfeed);
    assert_eq!(Life::parse(&life.to_string()), Some(life));
    for text in ["", "feed", "+00000000000feed", "00000000000000000"] {
        assert_eq!(Life::parse(text), None, "{text}");
    }
}

#[test]
fn what_speaks_for_an_earlier_use_is_kept() {
    let cause = |record: Option<&Record>, seen: &Seen, knew| {
        let greeting = Greeting {
            knew,
            knew_this_run: knew && record.is_some(),
            ..greeting(Recovery::Strict)
        };
        match hello(record, seen, &greeting) {
            Hello::Begin { cause, .. } => cause,
            other => panic!("no new life: {other:?}"),
        }
    };
    let promoted = Seen {
        took_over: true,
        ..restarted(5)
    };
    let wiped = Seen {
        wiped: true,
        ..same()
    };
    assert_eq!(cause(None, &same(), false), Cause::Unknown);
    assert_eq!(cause(None, &same(), true), Cause::Missed);
    assert_eq!(cause(None, &wiped, false), Cause::Wiped);
    assert_eq!(cause(None, &promoted, false), Cause::TookOver);
    let old = record();
    assert_eq!(cause(Some(&old), &restarted(5), false), Cause::Restarted);
    let wiped = Seen {
        wiped: true,
        ..restarted(5)
    };
    assert_eq!(cause(Some(&old), &restarted(5), true), Cause::Missed);
    assert_eq!(cause(Some(&old), &wiped, false), Cause::Wiped);
    assert_eq!(cause(Some(&old), &promoted, true), Cause::TookOver);
}

#[test]
fn three_lives_within_three_times_the_longest_lease_are_too_many() {
    let ago = |seconds| Timestamp::from_micros(START.as_micros() - seconds * 1_000_000);
    let restless = |began: &[u64]| {
        let began = began.iter().copied().map(ago).collect();
        Record { began, ..record() }.is_restless(START)
    };
    assert!(restless(&[0, 30, 60]) && restless(&[1, 2, 90]));
    assert!(!restless(&[0, 30, 91]) && !restless(&[0, 30]) && !restless(&[]));
}

#[test]
fn a_cause_can_be_written_down() {
    for cause in [
        Cause::Unknown,
        Cause::Restarted,
        Cause::TookOver,
        Cause::Wiped,
        Cause::Missed,
        Cause::Vouched,
    ] {
        assert_eq!(Cause::parse(cause.word()), cause);
    }
    assert!(Cause::parse("something later").is_evidence());
}
