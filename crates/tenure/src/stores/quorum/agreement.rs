//! What the votes of a round are worth together: which fence, and until when. Pure arithmetic.

use tenure_core::{Fence, Moment};

/// One member's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Voted {
    pub(super) member: usize,
    /// Which fence it gave.
    pub(super) fence: Fence,
    /// When the vote ends there, by our clock, if it took no time at all to get there.
    pub(super) until: Moment,
}

/// What votes come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    /// So many as are needed have this very fence, and last until then.
    Agreed { fence: Fence, until: Moment },
    /// These must be raised to this fence first.
    Raise { to: Fence, members: Vec<usize> },
    /// There are not enough votes.
    TooFew,
}

/// What `votes` come to if `needed` have to agree.
///
/// The fence is the lowest that so many can be brought to. Whoever held the lock before had its fence
/// written at so many members that one of them is among these, and that member gave a higher one;
/// so the fence is higher than every one that was reported before. A vote above it is not counted:
/// it cannot be lowered, and one member's leap need not be everybody's.
///
/// The end is the `needed`-th latest: until then at least so many votes last.
pub(super) fn agreement(votes: &[Voted], needed: usize) -> Agreement {
    let mut fences: Vec<Fence> = votes.iter().map(|vote| vote.fence).collect();
    fences.sort_unstable();
    let Some(fence) = needed.checked_sub(1).and_then(|index| fences.get(index)) else {
        return Agreement::TooFew;
    };
    let agreeing = votes.iter().filter(|vote| vote.fence == *fence);
    let mut ends: Vec<Moment> = agreeing.map(|vote| vote.until).collect();
    if let Some(until) = latest(&mut ends, needed) {
        return Agreement::Agreed {
            fence: *fence,
            until,
        };
    }
    let lower = votes.iter().filter(|vote| vote.fence < *fence);
    Agreement::Raise {
        to: *fence,
        members: lower.map(|vote| vote.member).collect(),
    }
}

/// The moment until which at least `needed` of these last.
pub(super) fn latest(ends: &mut [Moment], needed: usize) -> Option<Moment> {
    ends.sort_unstable_by(|one, other| other.cmp(one));
    ends.get(needed.checked_sub(1)?).copied()
}

/// The number in the middle: one member that is far off does not move it. Of an even count the lower one,
/// so that more than half reach it: no fence is ahead of half of the clocks.
pub(super) fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(given: &[(u64, u64)]) -> Vec<Voted> {
        let vote = |(member, (fence, until)): (usize, &(u64, u64))| Voted {
            member,
            fence: Fence::from_u64(*fence),
            until: Moment::from_nanos(*until),
        };
        given.iter().enumerate().map(vote).collect()
    }

    #[test]
    fn the_end_is_that_of_the_last_vote_that_is_needed() {
        let votes = votes(&[(7, 50), (7, 90), (7, 10), (7, 70)]);
        let expected = Agreement::Agreed {
            fence: Fence::from_u64(7),
            until: Moment::from_nanos(50),
        };
        assert_eq!(agreement(&votes, 3), expected);
        assert_eq!(agreement(&votes, 5), Agreement::TooFew);
    }

    #[test]
    fn the_others_are_raised_to_the_lowest_fence_that_enough_can_have() {
        let votes = votes(&[(7, 1), (9, 1), (7, 1), (3, 1), (999, 1)]);
        let expected = Agreement::Raise {
            to: Fence::from_u64(9),
            members: vec![0, 2, 3],
        };
        assert_eq!(agreement(&votes, 4), expected);
    }

    #[test]
    fn one_clock_far_off_does_not_move_the_median() {
        assert_eq!(median(vec![5, 6, 7, 8, u64::MAX]), Some(7));
        assert_eq!(median(vec![0, 6, 7]), Some(6));
        assert_eq!(median(vec![0, 6, 7, u64::MAX]), Some(6), "the lower of two");
        assert_eq!(median(vec![5, u64::MAX]), Some(5));
        assert_eq!(median(Vec::new()), None);
    }

    /// All combinations of small fences: what is agreed is never below a counted vote, and after the
    /// raise that is asked for, enough do agree.
    #[test]
    fn raising_leads_to_agreement() {
        for code in 0..5_u64.pow(4) {
            let fences: Vec<_> = (0..4)
                .map(|place| (code / 5_u64.pow(place) % 5, 1))
                .collect();
            let mut votes = votes(&fences);
            for needed in 1..=4 {
                if let Agreement::Raise { to, members } = agreement(&votes, needed) {
                    for vote in votes
                        .iter_mut()
                        .filter(|vote| members.contains(&vote.member))
                    {
                        assert!(vote.fence < to);
                        vote.fence = to;
                    }
                    let Agreement::Agreed { fence, .. } = agreement(&votes, needed) else {
                        panic!("{votes:?}");
                    };
                    assert_eq!(fence, to);
                }
            }
        }
    }
}
