//! Random traces, in words that still make sense when some of their steps are dropped.

use std::fmt;

use tenure_core::Mode;

use crate::random::Dice;

/// What is asked, by whom, after how long.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<Step>,
}

/// After some time one peer sends a batch.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Milliseconds.
    pub(crate) pass: u64,
    pub(crate) peer: usize,
    pub(crate) batch: Vec<Ask>,
}

#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Which of the names.
    pub(crate) lock: usize,
    pub(crate) owner: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Acquire {
        mode: Mode,
        ttl: u64,
        alive_for: Option<u64>,
        anchored: bool,
        limit: Limit,
    },
    Renew {
        hold: Hold,
        ttl: u64,
        detach: bool,
    },
    Convert(Hold),
    Release(Hold),
    Force(Hold),
    Cancel,
    Inspect,
    Vote {
        mode: Mode,
        ttl: u64,
        ballot: Choice,
        limit: Limit,
    },
}

/// What a vote is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    /// With a fence that is proposed so many microseconds from now.
    New {
        ahead: i64,
    },
    /// To so much more than a fence that the owner had.
    Raise {
        hold: Hold,
        by: u64,
    },
    Held {
        hold: Hold,
        by: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    None,
    Past,
    Future,
}

/// Which hold of the owner's is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    Current,
    /// The one that it had the last time before.
    Last,
    Invented,
}

pub(crate) const LOCKS: usize = 2;
/// Two that listen and one that does not.
pub(crate) const PEERS: usize = 3;
pub(crate) const OWNERS: usize = 6;

impl Trace {
    /// The trace that follows from `seed`.
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let dice = &mut dice;
        let flavour = Flavour {
            semaphore: dice.once_in(2),
            timed: dice.once_in(2),
        };
        let length = if flavour.timed { 30 } else { 60 };
        let length = 5 + dice.below(length);
        let steps = (0..length).map(|_| step(dice, flavour)).collect();
        Self { steps }
    }
}

/// What a trace is mostly about.
#[derive(Clone, Copy)]
struct Flavour {
    semaphore: bool,
    /// Whether time passes and things end by themselves; if not, more can happen.
    timed: bool,
}

fn step(dice: &mut Dice, flavour: Flavour) -> Step {
    let peer = dice.pick(&[0, 0, 1, 1, 2]);
    let pass = if flavour.timed && dice.once_in(6) {
        dice.pick(&[5, 40, 130, 310])
    } else {
        0
    };
    let size = dice.pick(&[1, 1, 1, 2, 4]);
    let batch = (0..size).map(|_| ask(dice, peer, flavour)).collect();
    Step { pass, peer, batch }
}

fn ask(dice: &mut Dice, peer: usize, flavour: Flavour) -> Ask {
    let owner = peer + PEERS * dice.pick(&[0, 1]);
    let what = match dice.below(28) {
        0..=10 => What::Acquire {
            mode: mode(dice, flavour.semaphore),
            ttl: ttl(dice, flavour),
            alive_for: (!dice.once_in(4)).then(|| alive_for(dice, flavour)),
            anchored: dice.once_in(3),
            limit: limit(dice),
        },
        11..=13 => What::Renew {
            hold: hold(dice),
            ttl: ttl(dice, flavour),
            detach: dice.once_in(5),
        },
        14..=15 => What::Convert(hold(dice)),
        16..=19 => What::Release(hold(dice)),
        20 => What::Force(hold(dice)),
        21..=22 => What::Cancel,
        23..=26 => What::Vote {
            mode: mode(dice, flavour.semaphore),
            ttl: ttl(dice, flavour),
            ballot: choice(dice),
            limit: limit(dice),
        },
        _ => What::Inspect,
    };
    let owner = match what {
        What::Force(_) => usize::try_from(dice.below(OWNERS as u64)).unwrap_or(0),
        _ => owner,
    };
    // Mostly one name, so that things happen there.
    let lock = dice.pick(&[0, 0, 0, 1]);
    Ask { lock, owner, what }
}

fn ttl(dice: &mut Dice, flavour: Flavour) -> u64 {
    if flavour.timed {
        dice.pick(&[60_000, 60_000, 60_000, 90_000, 100, 250])
    } else {
        dice.pick(&[60_000, 90_000])
    }
}

fn alive_for(dice: &mut Dice, flavour: Flavour) -> u64 {
    if flavour.timed {
        dice.pick(&[60_000, 60_000, 60_000, 240, 600])
    } else {
        dice.pick(&[60_000, 90_000])
    }
}

fn mode(dice: &mut Dice, semaphore: bool) -> Mode {
    let permits =
        |count, capacity| Mode::permits(count, capacity).expect("traces ask for counts in range");
    let unusual = dice.once_in(25);
    match (semaphore != unusual, dice.below(6)) {
        (true, 5) if unusual => permits(1, 2),
        (true, 0..=3) => permits(1, 3),
        (true, 4) => permits(2, 3),
        (true, _) => permits(3, 3),
        (false, 0..=2) => Mode::Exclusive,
        (false, _) => Mode::Shared,
    }
}

fn limit(dice: &mut Dice) -> Limit {
    dice.pick(&[
        Limit::None,
        Limit::None,
        Limit::None,
        Limit::Past,
        Limit::Future,
    ])
}

fn choice(dice: &mut Dice) -> Choice {
    let two_days = 172_800_000_000;
    let by = dice.pick(&[0, 0, 1, 1_000_000]);
    match dice.below(6) {
        0..=2 => Choice::New {
            ahead: dice.pick(&[0, 0, -5_000_000, 1_000_000, two_days]),
        },
        3 => Choice::Raise {
            hold: hold(dice),
            by,
        },
        _ => Choice::Held {
            hold: hold(dice),
            by,
        },
    }
}

fn hold(dice: &mut Dice) -> Hold {
    dice.pick(&[
        Hold::Current,
        Hold::Current,
        Hold::Current,
        Hold::Current,
        Hold::Last,
        Hold::Invented,
    ])
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step { pass, peer, batch } in &self.steps {
            writeln!(f, "- after {pass} ms, peer {peer} asks:")?;
            for Ask { lock, owner, what } in batch {
                writeln!(f, "    owner {owner} on lock {lock}: {what:?}")?;
            }
        }
        Ok(())
    }
}
