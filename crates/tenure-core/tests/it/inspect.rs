//! Inspect, as a specification.

use tenure_core::{Action, Kind, Mode, Outcome, Snapshot};

use crate::support::{Lock, acquire, owner, queue, seconds};

fn look(lock: &mut Lock) -> Snapshot {
    let before = lock.state.clone();
    let Outcome::State(snapshot) = lock.apply(&Action::Inspect) else {
        panic!("inspect answers with a snapshot");
    };
    assert_eq!(lock.state, before, "looking changes nothing");
    snapshot
}

#[test]
fn it_shows_who_holds_and_who_waits() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.queued(&queue(2), 0);
    let snapshot = look(&mut lock);
    assert_eq!(snapshot.kind, Some(Kind::Lock));
    let last = grant.fence.last_of_grant(Mode::Exclusive);
    assert_eq!(snapshot.last_fence, last, "with what is set aside");
    assert_eq!(snapshot.holders[0].owner, Some(owner(1)));
    assert_eq!(snapshot.waiters[0].owner, owner(2));
}

#[test]
fn it_does_not_show_what_has_ended() {
    let mut lock = Lock::new();
    let grant = lock.granted(&acquire(1));
    lock.pass(seconds(10));
    let snapshot = look(&mut lock);
    assert_eq!(snapshot.kind, None);
    let last = grant.fence.last_of_grant(Mode::Exclusive);
    assert_eq!(snapshot.last_fence, last, "with what is set aside");
    assert!(snapshot.holders.is_empty());
}
