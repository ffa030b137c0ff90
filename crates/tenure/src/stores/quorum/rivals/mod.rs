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
mod tests;
