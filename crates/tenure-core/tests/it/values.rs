//! The small types: what they accept, how they look, and how they convert. Texts are promises too: the
//! command line prints them, stores keep them, people copy them.

use std::error::Error as _;
use std::time::Duration;

use tenure_core::{
    Action, Contention, Error, ErrorKind, Everyone, Fence, HolderView, Inbox, Kind, Lease, Life,
    Liveness, LockName, Mode, Moment, OwnerId, Party, PromiseId, Retry, Shard, Timestamp, Ttl,
};

use super::support::{Lock, acquire, inbox, owner, permits, queue, seconds};

#[test]
fn an_owner_is_32_hexadecimal_digits_and_nothing_else() {
    let owner = OwnerId::from_bytes([0xab; 16]);
    let text = "ab".repeat(16);
    assert_eq!(owner.to_string(), text);
    assert_eq!(format!("{owner:?}"), text);
    assert_eq!(owner.short(), "abababab");
    assert_eq!(text.parse::<OwnerId>().unwrap(), owner);
    let bad = [
        "ab".repeat(15),
        "ab".repeat(17),
        String::new(),
        "ä".repeat(16),
        "zz".repeat(16),
        "+f".repeat(16),
    ];
    for text in bad {
        let error = text.parse::<OwnerId>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
    }
}

#[test]
fn a_lease_and_a_fence_are_read_back_as_they_were_written() {
    let (owner, fence) = (owner(7), Fence::from_u64(42));
    let lease = Lease { owner, fence };
    assert_eq!(lease.to_string(), format!("{owner}-42"));
    assert_eq!(lease.to_string().parse::<Lease>().unwrap(), lease);
    assert!("42".parse::<Lease>().is_err());
    assert_eq!("42".parse::<Fence>().unwrap(), fence);
    assert_eq!(fence.to_string(), "42");
    assert!("-1".parse::<Fence>().is_err());
}

#[test]
fn a_fence_has_a_range_of_its_own_and_no_more() {
    let fence = Fence::from_u64(100);
    assert_eq!(fence.handed_on(0), Some(fence));
    assert_eq!(fence.handed_on(1), Some(Fence::from_u64(101)));
    let last = fence.last_of_grant(Mode::Exclusive);
    assert_eq!(fence.handed_on(Fence::RANGE - 1), Some(last));
    assert_eq!(fence.handed_on(Fence::RANGE), None);
    assert_eq!(fence.last_of_grant(Mode::Shared), fence);
}

#[test]
fn a_party_shows_who_it_is_without_saying_its_host_twice() {
    let show = |who, label, host| Party::new(who, label, host, 7).to_string();
    assert_eq!(show("ann@desk", "", "desk"), "ann@desk pid 7");
    assert_eq!(show("ann", "", "desk"), "ann pid 7 on desk");
    assert_eq!(show("ann", "", ""), "ann pid 7");
    assert_eq!(
        show("ann@desk", "report", "desk"),
        "report (ann@desk pid 7)"
    );
    let party = Party::new("ann\n", "report", "desk", 7);
    let parts = (party.who(), party.label(), party.host(), party.pid());
    assert_eq!(parts, ("ann\u{fffd}", "report", "desk", 7));
}

#[test]
fn names_that_begin_with_a_tilde_are_reserved() {
    let reserved = |name| LockName::new(name).unwrap().is_reserved();
    assert!(reserved("~once:nightly"));
    assert!(!reserved("nightly~"));
}

#[test]
fn names_inboxes_and_lives_are_read_back_as_they_were_written() {
    let name = LockName::new("invoice/4711").unwrap();
    assert_eq!(name.as_str(), "invoice/4711");
    assert_eq!(AsRef::<str>::as_ref(&name), "invoice/4711");
    assert_eq!(name.to_string(), "invoice/4711");
    assert_eq!(format!("{name:?}"), "\"invoice/4711\"");

    let inbox = inbox(3);
    assert_eq!(inbox.as_str(), "03".repeat(16));
    assert_eq!(inbox.to_string(), inbox.as_str());
    assert_eq!(format!("{inbox:?}"), inbox.as_str());
    assert_eq!(Inbox::parse(inbox.as_str()), Some(inbox));
    let longest = "a".repeat(64);
    for good in ["a", "0", "a-9", longest.as_str()] {
        assert!(Inbox::parse(good).is_some(), "{good}");
    }
    let too_long = "a".repeat(65);
    for bad in ["", "A", "a b", "a_b", "ä", "{a}", too_long.as_str()] {
        assert_eq!(Inbox::parse(bad), None, "{bad}");
    }

    let life = Life::from_u64(255);
    assert_eq!(
        format!("{life} {life:?}"),
        "00000000000000ff 00000000000000ff"
    );
}

#[test]
fn modes_and_kinds_are_told_in_words() {
    assert_eq!(Mode::Exclusive.to_string(), "exclusive");
    assert_eq!(Mode::Shared.to_string(), "shared");
    assert_eq!(permits(2, 3).to_string(), "2 of 3 permits");
    assert_eq!(Kind::Lock.to_string(), "a lock");
    let semaphore = Kind::Semaphore { capacity: 3 };
    assert_eq!(semaphore.to_string(), "a semaphore of 3");
    for (count, capacity) in [(0, 3), (3, 0), (4, 3)] {
        assert!(Mode::permits(count, capacity).is_err());
    }
    assert!(Mode::permits(3, 3).is_ok());
}

#[test]
fn an_error_is_one_line_with_its_facts_and_its_cause() {
    let cause = std::io::Error::other("the cable is out");
    let bare = Error::new(ErrorKind::Unavailable, "cannot reach the store");
    assert_eq!(bare.to_string(), "cannot reach the store");
    let error = bare
        .with("url", "redis://x")
        .with("tries", 3)
        .because(cause);
    assert_eq!(
        error.to_string(),
        "cannot reach the store (url: redis://x, tries: 3): the cable is out"
    );
    assert_eq!(error.message(), "cannot reach the store");
    let context: Vec<_> = error.context().collect();
    assert_eq!(context, [("url", "redis://x"), ("tries", "3")]);
    assert!(format!("{error:?}").contains("Unavailable"));
    assert_eq!(error.source().unwrap().to_string(), "the cable is out");
    assert_eq!(error.retry(), Retry::Later);
    assert_eq!(error.retrying(Retry::Never).retry(), Retry::Never);
    assert_eq!(Error::new(ErrorKind::Lost, "").retry(), Retry::Never);
}

#[test]
fn lengths_and_readings_of_clocks_keep_their_numbers() {
    assert_eq!(Timestamp::from_micros(42).as_micros(), 42);
    assert_eq!(Moment::from_nanos(42).as_nanos(), 42);
    assert_eq!(Ttl::MAX.duration(), seconds(31_622_400));
    assert_eq!(Ttl::DEFAULT.as_millis(), 30_000);
    assert_eq!(format!("{:?}", Ttl::DEFAULT), "30s");
    let minute = Ttl::try_from(seconds(60)).unwrap();
    assert_eq!(minute.duration(), seconds(60));
    assert!(Ttl::try_from(Duration::from_millis(99)).is_err());
    assert_eq!((Shard::WHOLE.number(), Shard::new(7).number()), (0, 7));
}

#[test]
fn words_and_promises_are_said_in_full() {
    let word = |action: &Action| action.word();
    assert_eq!(word(&Action::Acquire(acquire(1))), "acquire");
    assert_eq!(word(&Action::Inspect), "inspect");
    let mut sentences: Vec<_> = PromiseId::ALL.map(PromiseId::sentence).to_vec();
    assert!(sentences.iter().all(|sentence| sentence.len() > 20));
    sentences.dedup();
    assert_eq!(sentences.len(), PromiseId::ALL.len());
    assert_eq!(PromiseId::L2.to_string(), "L2");
}

#[test]
fn a_store_that_sees_nothing_takes_everybody_for_alive() {
    assert!(Everyone.reachable(&inbox(1)));
    assert!(Everyone.alive(&inbox(1)));
}

#[test]
fn only_a_holder_without_an_owner_is_foreign() {
    let view = |owner| HolderView {
        owner,
        mode: Mode::Exclusive,
        fence: None,
        since: None,
        expiry: None,
        party: Party::default(),
    };
    let contention = |holders| Contention {
        holders,
        ..Contention::default()
    };
    assert!(!contention(vec![view(Some(owner(1)))]).is_foreign());
    assert!(contention(vec![view(Some(owner(1))), view(None)]).is_foreign());
}

#[test]
fn a_name_is_idle_when_nobody_holds_it_and_nobody_waits() {
    let mut lock = Lock::new();
    assert!(lock.state.is_idle());
    lock.granted(&acquire(1));
    assert!(!lock.state.is_idle());
    lock.queued(&queue(2), 0);
    lock.state.holders.clear();
    assert!(!lock.state.is_idle());
}
