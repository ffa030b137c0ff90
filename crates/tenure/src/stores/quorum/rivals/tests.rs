//! Who is in the way, by what members say: holders, those who race, those whom a silent or recovering member hides.

use tenure_core::{Fence, Mode, Party};

use super::*;

const SENT: Moment = Moment::from_nanos(1_000_000_000_000);

fn epoch() -> Epoch {
    Epoch::new(SENT, Timestamp::from_micros(5_000_000))
}

/// A member whose own clock shows `now` seconds, and on which `owner` holds for so many more.
fn held(now: u64, owner: u8, rest: u64) -> (Reading, Contention) {
    let now = Timestamp::from_micros(now * 1_000_000);
    let expiry = now.plus(Duration::from_secs(rest));
    let view = HolderView {
        owner: Some(OwnerId::from_bytes([owner; 16])),
        mode: Mode::Exclusive,
        fence: Some(Fence::from_u64(u64::from(owner))),
        since: Some(now),
        expiry: Some(expiry),
        party: Party::default(),
    };
    let contention = Contention {
        holders: vec![view],
        holder_count: 1,
        waiter_count: 0,
        next_expiry: Some(expiry),
        recovering: None,
        restless: false,
    };
    (Reading { sent: SENT, now }, contention)
}

/// The same, but its holder has had the vote for long.
fn long_held(now: u64, owner: u8, rest: u64) -> (Reading, Contention) {
    let (reading, mut contention) = held(now, owner, rest);
    contention.holders[0].since = Some(Timestamp::from_micros((now - 60) * 1_000_000));
    (reading, contention)
}

fn rivals(held: &[(Reading, Contention)]) -> Rivals {
    rivals_of(Electorate::majority(5), held)
}

fn rivals_of(electorate: Electorate, held: &[(Reading, Contention)]) -> Rivals {
    let mut rivals = Rivals::new(electorate);
    for (member, (reading, contention)) in held.iter().enumerate() {
        rivals.add(member, *reading, contention);
    }
    rivals
}

#[test]
fn a_holder_is_whoever_has_enough_votes_and_its_clocks_do_not_matter() {
    let rivals = rivals(&[held(77, 1, 10), held(9_000, 1, 30), held(5, 1, 20)]);
    assert!(rivals.surely_hold());
    let contention = rivals.contention(epoch(), 0, 2);
    assert_eq!(contention.holder_count, 1);
    let expiry = contention.holders[0].expiry.unwrap();
    let left = expiry.since(epoch().timestamp(SENT));
    assert_eq!(left, Duration::from_secs(10), "the third latest");
    let next = contention.next_expiry.unwrap();
    assert_eq!(
        next, expiry,
        "with two free ones, the first to end is enough"
    );
}

#[test]
fn a_race_that_nobody_won_has_no_holder() {
    let rivals = rivals(&[held(77, 1, 10), held(77, 1, 30), held(77, 2, 20)]);
    assert!(!rivals.surely_hold());
    let contention = rivals.contention(epoch(), 0, 2);
    assert_eq!(contention, Contention::default());
}

/// Where one vote is enough to keep a lock, and all are needed to take it.
#[test]
fn somebody_with_one_vote_of_all_races_unless_it_has_had_it_for_long_or_does_not_say() {
    let holders = |held: &[(Reading, Contention)], silent| {
        let rivals = rivals_of(Electorate::unanimous(3), held);
        let holders = rivals.contention(epoch(), silent, 0).holder_count;
        assert_eq!(rivals.surely_hold(), holders > 0 && silent == 0);
        holders
    };
    let young = held(77, 1, 10);
    assert_eq!(holders(&[young.clone(), held(77, 2, 10)], 0), 0);
    assert_eq!(holders(&[young.clone(), held(77, 2, 10)], 1), 0);
    assert_eq!(holders(&[young.clone(), held(9, 1, 10)], 1), 1);
    let all = [young.clone(), held(9, 1, 10), held(5, 1, 10)];
    assert_eq!(holders(&all, 0), 1);
    let had = |since| {
        let (reading, mut contention) = young.clone();
        contention.holders[0].since = since;
        (reading, contention)
    };
    assert_eq!(holders(&[had(None)], 0), 1);
    let long_ago = Timestamp::from_micros(74_000_000);
    assert_eq!(holders(&[had(Some(long_ago))], 0), 1);
    assert_eq!(holders(&[held(9, 1, 10), had(Some(long_ago))], 0), 1);
}

#[test]
fn it_is_not_free_before_those_who_were_heard_even_if_others_were_not() {
    let (one, other) = (long_held(77, 1, 10), long_held(77, 1, 30));
    let next = |rivals: &Rivals, free| {
        let next = rivals.contention(epoch(), 5, free).next_expiry;
        next.map(|next| next.since(epoch().timestamp(SENT)).as_secs())
    };
    let two = rivals(&[one.clone(), other.clone()]);
    assert_eq!(next(&two, 2), Some(10), "one is enough");
    assert_eq!(next(&two, 0), Some(30), "it takes one more, unheard");
    let mut endless = long_held(77, 1, 10);
    endless.1.next_expiry = None;
    let endless = rivals(&[one, endless.clone(), endless.clone(), endless]);
    assert_eq!(next(&endless, 1), None, "two are never free");
}

#[test]
fn nobody_is_let_in_only_while_so_many_recover_that_the_others_are_too_few() {
    let recovering = |rest: u64| {
        let (reading, _) = held(77, 1, 10);
        let until = reading.now.plus(Duration::from_secs(rest));
        let contention = Contention {
            recovering: Some(until),
            restless: true,
            ..Contention::default()
        };
        (reading, contention)
    };
    let left = |said: &[(Reading, Contention)], free| {
        let contention = rivals(said).contention(epoch(), 0, free);
        assert_eq!(contention.restless, contention.recovering.is_some());
        let until = contention.recovering;
        until.map(|until| until.since(epoch().timestamp(SENT)).as_secs())
    };
    let (one, two, three) = (recovering(7), recovering(9), recovering(8));
    let holder = held(77, 1, 600);
    let few = [one.clone(), two.clone(), holder.clone(), holder.clone()];
    assert_eq!(left(&few, 1), None, "three can give their vote");
    let many = [one.clone(), two.clone(), three, holder];
    assert_eq!(left(&many, 1), Some(7), "one more is needed");
    assert_eq!(left(&[one, two], 2), Some(7), "and one is silent");
}

#[test]
fn silence_hides_no_holder_where_there_are_votes_to_be_had_unless_it_is_an_old_one() {
    let holders = |(reading, contention): (Reading, Contention), silent| {
        let mut rivals = Rivals::new(Electorate::majority(3));
        rivals.add(0, reading, &contention);
        rivals.contention(epoch(), silent, 1).holder_count
    };
    assert_eq!(holders(held(77, 1, 10), 1), 0, "it races");
    assert_eq!(holders(long_held(77, 1, 10), 1), 1);
    assert_eq!(holders(long_held(77, 1, 10), 0), 0, "it has lost it");
}

#[test]
fn a_member_that_recovers_may_have_forgotten_an_old_holder_but_nobody_who_races() {
    let holders = |first: (Reading, Contention), known: bool, silent: usize| {
        let (reading, mut forgot) = held(77, 1, 10);
        forgot.recovering = Some(reading.now.plus(Duration::from_secs(5)));
        if !known {
            forgot.holders.clear();
            forgot.holder_count = 0;
        }
        let rivals = rivals(&[first, (reading, forgot)]);
        assert!(rivals.is_unsure(0) && !rivals.is_unsure(2));
        let counted = rivals.contention(epoch(), silent, 2).holder_count;
        (counted, rivals.snapshot(epoch(), silent).holders.len())
    };
    assert_eq!(holders(long_held(77, 1, 10), false, 1), (1, 1));
    assert_eq!(holders(long_held(77, 1, 10), false, 0), (0, 0), "too few");
    assert_eq!(holders(long_held(77, 1, 10), true, 0), (0, 0), "one voice");
    assert_eq!(holders(held(77, 1, 10), false, 1), (0, 1), "it races");
}

#[test]
fn silence_may_hide_the_vote_that_makes_a_holder() {
    let rivals = rivals(&[long_held(77, 1, 10), long_held(77, 1, 30)]);
    assert_eq!(rivals.contention(epoch(), 1, 2).holder_count, 1);
}
