//! [`Plan`]: everything that is random about a run, drawn from its seed beforehand. Written down, it
//! can be carried out again; what comes of it still depends on how the machine is at it.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::{Fault, FaultKind};
use super::world::Shape;
use crate::servers::Way;

/// What will be done in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) seed: u64,
    /// Whether servers save everything before they acknowledge it.
    pub(crate) durable: bool,
    pub(crate) workers: usize,
    pub(crate) tasks: u32,
    pub(crate) faults: Vec<Planned>,
    /// How long workers work in all.
    pub(crate) lasts_ms: u64,
}

/// A fault and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// After the start of the run.
    pub(crate) at_ms: u64,
    #[serde(flatten)]
    pub(crate) fault: Fault,
}

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// So many faults.
    Steps(u32),
    /// For so long.
    For(Duration),
}

/// Leases in a run last this long at most; so long, too, a server that forgot lets nobody in.
pub(crate) const LONGEST_LEASE_MS: u64 = 2_000;

/// Between two faults there is something between nothing and twice this.
const PACE_MS: u64 = 700;

impl Plan {
    pub(crate) fn draw(shape: Shape, seed: u64, extent: Extent, only: &[FaultKind]) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let durable = shape.can_be_durable() && random.bool();
        let workers = 3;
        let kinds: Vec<FaultKind> = match only {
            [] => shape.usual_faults().to_vec(),
            only => {
                let possible = shape.possible_faults();
                only.iter()
                    .copied()
                    .filter(|it| possible.contains(it))
                    .collect()
            }
        };
        let mut faults = Vec::new();
        let mut at_ms = 500;
        let draws = |count: usize, at_ms: u64| match extent {
            Extent::Steps(steps) => count < steps as usize,
            Extent::For(length) => u128::from(at_ms) < length.as_millis(),
        };
        while !kinds.is_empty() && draws(faults.len(), at_ms) {
            let kind = kinds[random.usize(..kinds.len())];
            let fault = fault(kind, shape, workers, &mut random);
            faults.push(Planned { at_ms, fault });
            at_ms += 50 + random.u64(..2 * PACE_MS);
        }
        Self {
            shape,
            seed,
            durable,
            workers,
            tasks: 4,
            faults,
            lasts_ms: at_ms + 500,
        }
    }

    pub(crate) fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        std::fs::write(path, text + "\n")
    }
}

fn fault(kind: FaultKind, shape: Shape, workers: usize, random: &mut fastrand::Rng) -> Fault {
    let worker = random.usize(..workers);
    let server = random.usize(..shape.servers().max(1));
    let link = random.usize(..shape.links(workers).max(1));
    let way = [Way::Requests, Way::Replies, Way::Both][random.usize(..3)];
    let one_way = [Way::Requests, Way::Replies][random.usize(..2)];
    let short = random.u64(50..1_500);
    // Longer than every lease, most of the time.
    let long = random.u64(LONGEST_LEASE_MS / 2..LONGEST_LEASE_MS * 5 / 2);
    let down = shape.failover_ms() + random.u64(..1_000);
    match kind {
        FaultKind::Kill => Fault::Kill { worker },
        FaultKind::Pause => Fault::Pause {
            worker,
            ms: LONGEST_LEASE_MS + long / 2,
        },
        FaultKind::Restart => Fault::Restart { server, ms: down },
        FaultKind::Forget => Fault::Forget { server, ms: down },
        FaultKind::Freeze => Fault::Freeze {
            server,
            ms: shape.failover_ms() + short,
        },
        FaultKind::Cut => Fault::Cut { link },
        FaultKind::Refuse => Fault::Refuse { link, ms: short },
        FaultKind::Delay => Fault::Delay {
            link,
            way,
            ms: long,
        },
        FaultKind::Partition => Fault::Partition {
            link,
            way,
            ms: long,
        },
        FaultKind::Swallow => Fault::Swallow { link, way: one_way },
        FaultKind::Repeat => Fault::Repeat { link, way: one_way },
        FaultKind::ScriptFlush => Fault::ScriptFlush { server },
        FaultKind::ClientKill => Fault::ClientKill { server },
        FaultKind::FlushAll => Fault::FlushAll { server },
        FaultKind::ClockBack => Fault::ClockStep {
            server,
            ms: -random.i64(100..5_000),
        },
        FaultKind::ClockForward => Fault::ClockStep {
            server,
            ms: random.i64(500..60_000),
        },
        FaultKind::CutOff => Fault::CutOff {
            worker,
            server,
            ms: long,
        },
        FaultKind::Split => Fault::Split {
            server,
            worker: (random.u32(..3) > 0).then_some(worker),
            // So long that the other side has let somebody in.
            ms: shape.failover_ms() + LONGEST_LEASE_MS + short,
        },
        FaultKind::FreezeSentinel => Fault::FreezeSentinel {
            sentinel: random.usize(..3),
            ms: short,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_plan_and_another_one_another() {
        let draw = |seed| Plan::draw(Shape::Redis, seed, Extent::Steps(40), &[]);
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7).faults, draw(8).faults);
        assert_eq!(draw(7).faults.len(), 40);
    }

    #[test]
    fn a_plan_is_the_same_after_it_was_written_down() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        for shape in Shape::ALL {
            let plan = Plan::draw(shape, 1, Extent::For(Duration::from_secs(60)), &[]);
            assert!(!plan.faults.is_empty());
            plan.write(&path).unwrap();
            assert_eq!(
                Plan::parse(&std::fs::read_to_string(&path).unwrap()).unwrap(),
                plan
            );
        }
    }

    #[test]
    fn only_what_was_asked_for_is_broken() {
        let only = [FaultKind::Pause, FaultKind::Kill];
        let plan = Plan::draw(Shape::Sqlite, 1, Extent::Steps(50), &only);
        assert!(plan.faults.iter().all(|it| only.contains(&it.fault.kind())));
        let none = Plan::draw(Shape::Sqlite, 1, Extent::Steps(50), &[FaultKind::FlushAll]);
        assert!(none.faults.is_empty(), "a file has no FLUSHALL");
    }
}
