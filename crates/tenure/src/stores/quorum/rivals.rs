//! [`Rivals`]: who is in the way, pieced together from what the members say. Pure.

use std::collections::HashMap;
use std::time::Duration;

use tenure_core::{
    Contention, HolderView, Kind, Moment, OwnerId, SHOWN_HOLDERS, Snapshot, Timestamp,
};

use super::Settings;
use super::agreement::latest;
use super::electorate::Electorate;
use super::epoch::{Epoch, Reading};

/// How long somebody may have a vote and still be asking for others, or taking it back. Whoever has had one for longer holds the
/// lock if that is enough to keep it.
const RACE: Duration = Settings::LONGEST_NODE_TIMEOUT.saturating_mul(3);

/// What members say about other holders.
#[derive(Debug)]
pub(super) struct Rivals {
    electorate: Electorate,
    /// By owner; all foreign holders are one, because they do not say who they are.
    holders: HashMap<Option<OwnerId>, Rival>,
    /// When each member that said no may be free.
    free_from: Vec<Option<Moment>>,
    /// When each member will have recovered that gives no votes before.
    recovering: Vec<Moment>,
    /// Which members these are. They may have forgotten a vote that its owner gets back with its next renewal.
    forgetful: Vec<usize>,
    /// One of them does so again and again.
    restless: bool,
    /// How many hold it at each member that does not show them all.
    crowds: Vec<u32>,
}

/// One other holder, at the members that have said so.
#[derive(Debug)]
struct Rival {
    view: HolderView,
    /// The members that know it.
    voices: Vec<usize>,
    since: Option<Moment>,
    /// For how long it has had the oldest of its votes; `None` if one of them does not say.
    age: Option<Duration>,
    /// `None` where its vote does not end by itself.
    ends: Vec<Option<Moment>>,
}

impl Rivals {
    pub(super) fn new(electorate: Electorate) -> Self {
        Self {
            electorate,
            holders: HashMap::new(),
            free_from: Vec::new(),
            recovering: Vec::new(),
            forgetful: Vec::new(),
            restless: false,
            crowds: Vec::new(),
        }
    }

    /// What a member that said no sees.
    pub(super) fn add(&mut self, member: usize, reading: Reading, contention: &Contention) {
        self.see(member, reading, &contention.holders);
        let more = contention.holder_count > count(contention.holders.len());
        self.crowds.extend(more.then_some(contention.holder_count));
        let mut free_from = contention.next_expiry.map(|expiry| reading.here(expiry));
        if let Some(until) = contention.recovering.map(|until| reading.here(until)) {
            self.recovering.push(until);
            self.forgot(member);
            self.restless |= contention.restless;
            free_from = free_from.max(Some(until));
        }
        self.free_from.push(free_from);
    }

    /// What a member that was only looked at sees.
    pub(super) fn see(&mut self, member: usize, reading: Reading, holders: &[HolderView]) {
        for view in holders {
            let rival = self.holders.entry(view.owner).or_insert_with(|| Rival {
                view: view.clone(),
                voices: Vec::new(),
                since: None,
                age: Some(Duration::ZERO),
                ends: Vec::new(),
            });
            rival.voices.push(member);
            rival.view.fence = rival.view.fence.max(view.fence);
            let age = view.since.map(|since| reading.now.since(since));
            rival.age = rival.age.and_then(|oldest| Some(oldest.max(age?)));
            let since = view.since.map(|since| reading.here(since));
            rival.since = rival.since.min(since).or(since);
            rival
                .ends
                .push(view.expiry.map(|expiry| reading.here(expiry)));
        }
    }

    /// This member recovers: whom it does not know it may have forgotten.
    pub(super) fn forgot(&mut self, member: usize) {
        self.forgetful.push(member);
    }

    /// Whether somebody has votes that are too few if so many members are `silent`, so that it matters whether another may have
    /// forgotten one.
    pub(super) fn is_unsure(&self, silent: usize) -> bool {
        let mut rivals = self.holders.values();
        rivals.any(|rival| rival.voices.len() + silent < self.electorate.to_keep)
    }

    /// Whether nobody was seen.
    pub(super) fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    /// How many members may have forgotten this one.
    fn hiding(&self, rival: &Rival) -> usize {
        let forgetful = self.forgetful.iter();
        forgetful
            .filter(|member| !rival.voices.contains(member))
            .count()
    }

    /// Whether one of them has so many votes already that it holds the lock.
    pub(super) fn surely_hold(&self) -> bool {
        let mut rivals = self.holders.values();
        rivals.any(|rival| rival.may_hold(self.electorate, 0))
    }

    /// Who holds it, as far as can be told if so many members are `silent`, and when it can be had
    /// if so many are `free`. Nobody, if all have too few votes: then it is a race that nobody won.
    pub(super) fn contention(&self, epoch: Epoch, silent: usize, free: usize) -> Contention {
        let mut holders = self.views(epoch, |rival| {
            // Where there were votes to be had, whoever is in the way with too few of its own more likely races, too, and all
            // of them have to get out of each other's way; unless it has had them for so long that it does not. Then it may
            // also have had one where it is forgotten, and where nobody who races gets any.
            let silent = match (rival.is_settled(), free) {
                (true, _) => silent + self.hiding(rival),
                (false, 0) => silent,
                (false, _) => 0,
            };
            rival.may_hold(self.electorate, silent)
        });
        let holder_count = match count(holders.len()) {
            0 => 0,
            seen => seen.max(self.crowd(if free > 0 { 0 } else { silent })),
        };
        holders.truncate(SHOWN_HOLDERS);
        let (next, opens) = (self.free_again(free), self.opens(free));
        let stamp = |moment: Moment| epoch.timestamp(moment);
        Contention {
            holder_count,
            waiter_count: 0,
            next_expiry: next.filter(|_| holder_count > 0).map(stamp),
            recovering: opens.map(stamp),
            restless: self.restless && opens.is_some(),
            holders,
        }
    }

    /// How many hold it by enough members that do not show them all, if so many are `silent`.
    fn crowd(&self, silent: usize) -> u32 {
        let mut crowds = self.crowds.clone();
        crowds.sort_unstable_by(|one, other| other.cmp(one));
        let needed = self.electorate.to_keep.saturating_sub(silent).max(1);
        crowds.get(needed - 1).copied().unwrap_or(0)
    }

    /// When so many members have recovered as it takes to give the lock to anybody, if so many gave their vote now. Nothing, if those
    /// that recover are too few to keep everybody out.
    fn opens(&self, free: usize) -> Option<Moment> {
        let Electorate {
            members, to_take, ..
        } = self.electorate;
        let unheard = members.saturating_sub(free + self.free_from.len());
        let closed = self.recovering.len() + unheard;
        let lacking = (closed + to_take).checked_sub(members + 1)?;
        let mut recovering = self.recovering.clone();
        recovering.sort_unstable();
        recovering.get(lacking).or(recovering.last()).copied()
    }

    /// When so many members are free as are needed, if so many are `free` now.
    fn free_again(&self, free: usize) -> Option<Moment> {
        let mut free_from: Vec<Moment> = self.free_from.iter().copied().flatten().collect();
        free_from.sort_unstable();
        let Electorate {
            members, to_take, ..
        } = self.electorate;
        let lacking = to_take.saturating_sub(free).checked_sub(1)?;
        let unheard = members.saturating_sub(free + self.free_from.len());
        // Of those who have not answered it is only known that it takes them, too.
        let last = free_from
            .last()
            .filter(|_| lacking < free_from.len() + unheard);
        free_from.get(lacking).or(last).copied()
    }

    /// What can be seen of the name, if so many members are `silent`: everybody with so many votes as are enough to keep
    /// it, also if it may have been about to take them back.
    pub(super) fn snapshot(&self, epoch: Epoch, silent: usize) -> Snapshot {
        let needed = self.electorate.to_keep;
        let holders = self.views(epoch, |rival| {
            rival.voices.len() + silent + self.hiding(rival) >= needed
        });
        Snapshot {
            kind: holders.first().map(|_| Kind::Lock),
            holders,
            ..Snapshot::default()
        }
    }

    fn views(&self, epoch: Epoch, holds: impl Fn(&Rival) -> bool) -> Vec<HolderView> {
        let holding = self.holders.values().filter(|rival| holds(rival));
        let views = holding.map(|rival| rival.view(epoch, self.electorate.to_keep));
        let mut views: Vec<_> = views.collect();
        views.sort_by_key(|view| view.fence);
        views
    }
}

impl Rival {
    /// Whether it has, with so many `silent` members, what it takes to hold the lock: enough votes to have taken it; or enough
    /// to keep it, if it has had them for so long that it does not just race for it.
    fn may_hold(&self, electorate: Electorate, silent: usize) -> bool {
        let Electorate {
            to_take, to_keep, ..
        } = electorate;
        let may_race = self.age.is_some() && !self.is_settled();
        let needed = if may_race { to_take } else { to_keep };
        self.voices.len() + silent >= needed
    }

    /// Whether it has had a vote for longer than anybody races.
    fn is_settled(&self) -> bool {
        self.age.is_some_and(|age| age >= RACE)
    }

    fn view(&self, epoch: Epoch, needed: usize) -> HolderView {
        let seen = needed.min(self.voices.len());
        let endless = self.ends.iter().filter(|end| end.is_none()).count();
        let mut ends: Vec<Moment> = self.ends.iter().copied().flatten().collect();
        let end = seen.checked_sub(endless).filter(|ending| *ending > 0);
        let stamp = |moment| -> Timestamp { epoch.timestamp(moment) };
        HolderView {
            since: self.since.map(stamp),
            expiry: end.and_then(|ending| latest(&mut ends, ending)).map(stamp),
            ..self.view.clone()
        }
    }
}

fn count(holders: usize) -> u32 {
    u32::try_from(holders).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
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
}
