//! [`Departures`]: what waits to be sent, by shard of the store, so that one which hangs holds up
//! only its own.

use std::collections::{BTreeMap, VecDeque};

use tenure_core::Shard;

/// What waits, and how many calls are under way.
#[derive(Debug)]
pub(super) struct Departures<T> {
    /// Calls under way at once, for each shard.
    calls: usize,
    shards: BTreeMap<Shard, Traffic<T>>,
}

#[derive(Debug)]
struct Traffic<T> {
    under_way: usize,
    ready: VecDeque<T>,
}

impl<T> Departures<T> {
    pub(super) fn new(calls: usize) -> Self {
        Self {
            calls,
            shards: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, shard: Shard, waiting: T) {
        let traffic = self.shards.entry(shard).or_insert_with(|| Traffic {
            under_way: 0,
            ready: VecDeque::new(),
        });
        traffic.ready.push_back(waiting);
    }

    /// Nothing waits and nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        let idle = |traffic: &Traffic<T>| traffic.under_way == 0 && traffic.ready.is_empty();
        self.shards.values().all(idle)
    }

    /// At most `limit` that travel together; whoever takes them calls [`arrived`](Self::arrived) in
    /// the end. `None` if nothing waits that may be sent now.
    pub(super) fn depart(&mut self, limit: usize) -> Option<(Shard, Vec<T>)> {
        let calls = self.calls;
        let may_go = |traffic: &Traffic<T>| traffic.under_way < calls && !traffic.ready.is_empty();
        let (shard, traffic) = self.shards.iter_mut().find(|(_, it)| may_go(it))?;
        traffic.under_way += 1;
        let count = traffic.ready.len().min(limit);
        Some((*shard, traffic.ready.drain(..count).collect()))
    }

    /// A call for this shard has ended.
    pub(super) fn arrived(&mut self, shard: Shard) {
        if let Some(traffic) = self.shards.get_mut(&shard) {
            traffic.under_way = traffic.under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_hangs_holds_up_only_its_own() {
        let (one, other) = (Shard::new(0), Shard::new(1));
        let mut departures = Departures::new(1);
        assert!(departures.is_empty());
        for number in 0..3 {
            departures.add(one, number);
        }
        assert_eq!(departures.depart(2), Some((one, vec![0, 1])));
        assert_eq!(departures.depart(2), None, "its call is under way");
        departures.add(other, 9);
        assert_eq!(departures.depart(2), Some((other, vec![9])));
        departures.arrived(one);
        assert_eq!(departures.depart(2), Some((one, vec![2])));
        departures.arrived(one);
        departures.arrived(other);
        assert!(departures.is_empty());
    }
}
