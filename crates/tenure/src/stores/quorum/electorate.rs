//! [`Electorate`]: how many voices there are and how many are needed. Pure arithmetic.

/// How many voices there are, how many it takes to get a lock, and how many to keep it.
///
/// What makes it a lock: whoever takes it needs so many voices that nobody else can have as many as
/// it takes to keep it, `to_take + to_keep > members`, nor take it too, `2 · to_take > members`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Electorate {
    pub(super) members: usize,
    pub(super) to_take: usize,
    pub(super) to_keep: usize,
}

impl Electorate {
    /// More than half, to take and to keep. Half of an odd number is rounded down before one is
    /// added: three of five, never three and a half.
    pub(super) fn majority(members: usize) -> Self {
        let more_than_half = members / 2 + 1;
        Self {
            members,
            to_take: more_than_half,
            to_keep: more_than_half,
        }
    }

    /// All of them to take it. Then a single one is enough to keep it: nobody else can have all.
    pub(super) fn unanimous(members: usize) -> Self {
        Self {
            members,
            to_take: members,
            to_keep: 1,
        }
    }
}

/// What one member said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Yes,
    No,
    /// It said nothing, or nothing of use, and will not any more.
    Silent,
}

/// How a poll stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It depends on those who have not answered.
    Open,
    /// Enough said yes.
    Reached,
    /// So many said no that it cannot be reached.
    Refused,
    /// It cannot be reached, and too few said no to say why.
    OutOfReach,
}

/// Who said what so far.
#[derive(Clone, Debug)]
pub(super) struct Poll {
    needed: usize,
    voices: Vec<Option<Voice>>,
}

impl Poll {
    /// Nobody has said anything; `needed` of `members` must say yes.
    pub(super) fn new(members: usize, needed: usize) -> Self {
        Self {
            needed,
            voices: vec![None; members],
        }
    }

    /// A member's answer; a later one replaces it.
    pub(super) fn hear(&mut self, member: usize, voice: Voice) {
        self.voices[member] = Some(voice);
    }

    /// Whoever has not answered will not any more.
    pub(super) fn close(&mut self) {
        for voice in &mut self.voices {
            voice.get_or_insert(Voice::Silent);
        }
    }

    pub(super) fn voice(&self, member: usize) -> Option<Voice> {
        self.voices[member]
    }

    pub(super) fn count(&self, voice: Voice) -> usize {
        let said = self.voices.iter().filter(|said| **said == Some(voice));
        said.count()
    }

    /// How many may still answer.
    pub(super) fn open(&self) -> usize {
        self.voices.iter().filter(|said| said.is_none()).count()
    }

    /// The members that said this.
    pub(super) fn members(&self, voice: Voice) -> impl Iterator<Item = usize> + '_ {
        let voices = self.voices.iter().enumerate();
        voices.filter_map(move |(member, said)| (*said == Some(voice)).then_some(member))
    }

    pub(super) fn standing(&self) -> Standing {
        let yes = self.count(Voice::Yes);
        if yes >= self.needed {
            Standing::Reached
        } else if self.count(Voice::No) > self.voices.len() - self.needed {
            Standing::Refused
        } else if yes + self.open() < self.needed {
            Standing::OutOfReach
        } else {
            Standing::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_is_more_than_half_in_whole_numbers() {
        let needed: Vec<_> = (1..=7)
            .map(|members| Electorate::majority(members).to_take)
            .collect();
        assert_eq!(needed, [1, 2, 2, 3, 3, 4, 4]);
    }

    /// Every set that can take, against every set that can take or keep.
    #[test]
    fn any_two_who_could_hold_at_once_share_a_member() {
        for members in 1..=7_usize {
            for electorate in [
                Electorate::majority(members),
                Electorate::unanimous(members),
            ] {
                let sets = |size: usize| {
                    (0_u32..1 << members).filter(move |set| set.count_ones() as usize >= size)
                };
                for taker in sets(electorate.to_take) {
                    assert!(sets(electorate.to_take).all(|other| taker & other != 0));
                    assert!(sets(electorate.to_keep).all(|keeper| taker & keeper != 0));
                }
            }
        }
    }

    /// Every order of every combination of answers: a verdict comes as soon as nothing can change
    /// it, never before, and never changes.
    #[test]
    fn a_verdict_comes_when_it_is_certain_and_stays() {
        for members in 1..=5 {
            for needed in 1..=members {
                explore(&Poll::new(members, needed), &mut Vec::new());
            }
        }
    }

    fn explore(poll: &Poll, before: &mut Vec<Standing>) {
        let standing = poll.standing();
        if let Some(last) = before.last().filter(|last| **last != Standing::Open) {
            let same = *last == standing;
            // More answers may show the reason for what was out of reach.
            let explained = *last == Standing::OutOfReach && standing == Standing::Refused;
            assert!(same || explained, "{last:?} became {standing:?}");
        }
        let (yes, open) = (poll.count(Voice::Yes), poll.open());
        assert_eq!(standing == Standing::Reached, yes >= poll.needed);
        assert_eq!(
            standing == Standing::Open,
            yes < poll.needed && yes + open >= poll.needed
        );
        let Some(next) = poll.voices.iter().position(Option::is_none) else {
            return;
        };
        before.push(standing);
        for voice in [Voice::Yes, Voice::No, Voice::Silent] {
            let mut poll = poll.clone();
            poll.hear(next, voice);
            explore(&poll, before);
        }
        before.pop();
    }

    #[test]
    fn an_even_number_that_is_split_in_half_is_decided() {
        let mut poll = Poll::new(4, 3);
        for (member, voice) in [Voice::Yes, Voice::Yes, Voice::No].into_iter().enumerate() {
            poll.hear(member, voice);
        }
        assert_eq!(poll.standing(), Standing::Open);
        poll.hear(3, Voice::No);
        assert_eq!(poll.standing(), Standing::Refused);
    }
}
