//! Every name that is allowed works, and no two names get in each other's way.

use tenure_core::{LockName, Outcome};

use super::{Case, stories};
use crate::peer::{World, bid, permits, shared};

pub(crate) const CASES: &[Case] = stories!(names:
    odd_names_are_names_like_any_other [Arrival, Permits],
    odd_names_are_listed_as_they_are [Permits],
    the_longest_names_work_and_differ [Arrival],
    what_people_write_comes_back_as_it_was [Arrival, Permits],
);

const ODD: &[&str] = &[
    "a",
    "A",
    "a:b",
    "a:queue",
    "a:fence",
    "a:q",
    "a:f",
    "a/b",
    "a b",
    "a  b",
    "{",
    "}",
    "{}",
    "}{",
    "{a}",
    "{a}b",
    "b{a}",
    "{{a}}",
    "{}a",
    "*",
    "a*",
    "?",
    "[a-z]",
    "[!a]",
    "\\",
    "\\*",
    "a\\",
    "%",
    "%2F",
    "_",
    "'",
    "''",
    "\"",
    "--",
    ";",
    "$1",
    "#",
    "0",
    "nil",
    "\u{e9}",
    "e\u{301}",
    "\u{2603} snowman",
    "\u{1f512}",
    "\u{5206}\u{5e03}\u{5f0f}\u{9501}",
    "\u{202e}right to left",
    "\u{feff}bom",
];

async fn odd_names_are_names_like_any_other(world: &World<'_>) {
    let (first, second) = (world.peer().await, world.peer().await);
    let mut held = Vec::new();
    for (index, odd) in ODD.iter().enumerate() {
        let bid = [bid(), shared(), permits(1, 2)][index % 3].clone();
        held.push(first.take(&world.name(odd), &bid).await);
    }
    for (index, (odd, held)) in ODD.iter().zip(&held).enumerate() {
        let name = world.name(odd);
        assert_eq!(second.holders(&name).await, [held.owner], "{odd}");
        let waiter = [bid(), bid(), permits(2, 2)][index % 3].clone();
        let waiter = second.waiting(waiter);
        second.queues(&name, &waiter, 0).await;
        first.lets_go(held).await;
        let pushed = second.is_told(&name, waiter.owner).await;
        second.lets_go(&pushed).await;
    }
}

async fn odd_names_are_listed_as_they_are(world: &World<'_>) {
    let peer = world.peer().await;
    for (index, odd) in ODD.iter().enumerate() {
        let bid = [bid(), shared(), permits(1, 2)][index % 3].clone();
        peer.take(&world.name(odd), &bid).await;
    }
    let mut names: Vec<_> = ODD.iter().map(|odd| world.name(odd)).collect();
    names.sort();
    let listing = peer.store.list(world.space()).await;
    let listing = listing.expect("a store can list");
    let listed: Vec<_> = listing.locks.into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, names);
}

async fn the_longest_names_work_and_differ(world: &World<'_>) {
    let peer = world.peer().await;
    let start = world.name("");
    let room = LockName::MAX_BYTES - start.as_str().len();
    let filled = |end: &str| {
        let room = room - end.len();
        let wide = "\u{9501}".repeat(room / 3);
        let narrow = "x".repeat(room % 3);
        world.name(&format!("{wide}{narrow}{end}"))
    };
    let (one, two) = (filled("1"), filled("2"));
    assert_eq!(one.as_str().len(), LockName::MAX_BYTES);
    let held = peer.take(&one, &bid()).await;
    peer.take(&two, &bid()).await;
    peer.is_refused(&one, &bid()).await;
    let waiter = peer.waiting(bid());
    peer.queues(&one, &waiter, 0).await;
    peer.lets_go(&held).await;
    peer.is_told(&one, waiter.owner).await;
}

async fn what_people_write_comes_back_as_it_was(world: &World<'_>) {
    let peer = world.peer().await;
    let texts = [
        ("", "", ""),
        ("a b|c:d;e", "with \"quotes\" and 'these'", "host.example"),
        (
            "\u{5f20}\u{4e09}@\u{4e3b}\u{673a}",
            "\u{1f512} 100 %",
            "{h}",
        ),
        ("tab\tand\nline", "\\n \\u0000 %20 +", "-"),
    ];
    for (index, (who, label, host)) in texts.into_iter().enumerate() {
        let name = world.name(&index.to_string());
        let party = tenure_core::Party::new(who, label, host, u32::MAX);
        let mut holder = [bid(), shared(), permits(1, 1), bid()][index].clone();
        holder.party = party.clone();
        peer.take(&name, &holder).await;
        let mut waiter = peer.waiting(holder.clone());
        waiter.owner = bid().owner;
        if index == 1 {
            waiter.mode = tenure_core::Mode::Exclusive;
        }
        let outcome = peer.acquire(&name, &waiter).await.outcome;
        let Outcome::Queued { contention, .. } = outcome else {
            panic!("did not queue: {outcome:?}");
        };
        assert_eq!(contention.holders[0].party, party);
        let (_, snapshot) = peer.inspect(&name).await;
        assert_eq!(snapshot.holders[0].party, party);
        assert_eq!(snapshot.waiters[0].party, party);
    }
}
