//! Every course that a few rounds can take on three members, with the real code on both sides: whichever
//! members answer, and whichever hear that they are to raise their fence, fences that are reported grow.
//! And without writing the fence back before it is reported they do not.

use std::collections::HashSet;

use tenure_core::{
    Action, Ballot, Cancel, Everyone, Fence, LockState, Mode, Moment, Outcome, OwnerId, Party,
    Timestamp, Ttl, Vote, decide,
};

use super::agreement::{Agreement, Voted, agreement};

const MEMBERS: usize = 3;
const NEEDED: usize = 2;
const ROUNDS: usize = 4;
const NOW: Timestamp = Timestamp::from_micros(1_000);
/// What clients propose: clocks that differ by more than a grant's range, and not in order.
const PROPOSALS: [u64; 3] = [1, 50, 120];

#[test]
fn fences_that_are_reported_grow_in_every_course_of_events() {
    let courses = explore(true).expect("no fence goes back");
    assert!(courses > 1_000, "only {courses} states");
}

#[test]
fn without_writing_it_back_a_fence_goes_back() {
    let violation = explore(false).expect_err("a violation");
    assert!(violation.1 <= violation.0, "{violation:?}");
}

/// How many states there are, or two fences in the order in which they were reported.
fn explore(writes_back: bool) -> Result<usize, (u64, u64)> {
    let mut seen = HashSet::new();
    let mut states = vec![(vec![0_u64; MEMBERS], 0_u64)];
    for _ in 0..ROUNDS {
        let mut next = HashSet::new();
        for (lasts, reported) in states.drain(..) {
            for course in 0..PROPOSALS.len() << (2 * MEMBERS) {
                let (masks, proposal) = (course % 64, PROPOSALS[course / 64]);
                let round = Round {
                    answering: masks % 8,
                    hearing: masks / 8,
                    proposal,
                };
                let (lasts, fence) = round.run(lasts.clone(), writes_back);
                if fence.is_some_and(|fence| fence <= reported) {
                    return Err((reported, fence.unwrap_or(0)));
                }
                next.insert((lasts, fence.unwrap_or(reported)));
            }
        }
        next.retain(|state| seen.insert(state.clone()));
        states = next.into_iter().collect();
    }
    Ok(seen.len())
}

/// Who answers a vote, and who hears that it is to be raised.
struct Round {
    answering: usize,
    hearing: usize,
    proposal: u64,
}

impl Round {
    /// What the members' last fences are afterwards, and the fence that was reported, if any.
    fn run(&self, lasts: Vec<u64>, writes_back: bool) -> (Vec<u64>, Option<u64>) {
        let mut members: Vec<_> = lasts.into_iter().map(member).collect();
        let proposal = Fence::from_u64(self.proposal);
        let mut votes: Vec<Voted> = Vec::new();
        for index in (0..MEMBERS).filter(|index| self.answering >> index & 1 == 1) {
            votes.extend(ask(&mut members, index, Ballot::New { proposal }));
        }
        let mut reported = None;
        for _ in 0..3 {
            match agreement(&votes, NEEDED) {
                Agreement::Agreed { fence, .. } => reported = Some(fence.as_u64()),
                Agreement::Raise { to, .. } if !writes_back => reported = Some(to.as_u64()),
                Agreement::Raise { to, members: lower } => {
                    for index in lower
                        .into_iter()
                        .filter(|index| self.hearing >> index & 1 == 1)
                    {
                        votes.retain(|vote| vote.member != index);
                        votes.extend(ask(&mut members, index, Ballot::Raise { to }));
                    }
                }
                Agreement::TooFew => {}
            }
        }
        let owner = owner();
        let cancel = Action::Cancel(Cancel { owner });
        let end = |state: LockState| decide(state, &cancel, NOW, &Everyone).state;
        let lasts = members.into_iter().map(end);
        (
            lasts.map(|state| state.last_fence.as_u64()).collect(),
            reported,
        )
    }
}

fn ask(members: &mut [LockState], member: usize, ballot: Ballot) -> Option<Voted> {
    let vote = Vote {
        owner: owner(),
        mode: Mode::Exclusive,
        ttl: Ttl::DEFAULT,
        party: Party::default(),
        not_after: None,
        ballot,
    };
    let state = std::mem::take(&mut members[member]);
    let decision = decide(state, &Action::Vote(vote), NOW, &Everyone);
    members[member] = decision.state;
    match decision.outcome {
        Outcome::Granted(grant) => Some(Voted {
            member,
            fence: grant.fence,
            until: Moment::from_nanos(1),
        }),
        _ => None,
    }
}

fn member(last: u64) -> LockState {
    LockState {
        last_fence: Fence::from_u64(last),
        ..LockState::default()
    }
}

fn owner() -> OwnerId {
    OwnerId::from_bytes([1; 16])
}
