//! [`World`]: the store of a run, with its servers and the network before them. One file per shape.

mod cluster;
mod divide;
mod redis;
mod redlock;
mod sentinel;
mod sqlite;

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tenure::core::{Order, PromiseId};

use super::fault::FaultKind;
use super::plan::{LONGEST_LEASE_MS, Plan};
use crate::Program;
use crate::history::{Memory, Terms};
use crate::servers::{Link, Network, RedisServer, Sentinel, SetClock};

/// What kind of store is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One Redis server.
    Redis,
    /// A primary and a replica, watched by three sentinels.
    Sentinel,
    /// Three primaries with a replica each.
    Cluster,
    /// A majority of three servers.
    Redlock3,
    /// A majority of five servers.
    Redlock5,
    /// A file.
    Sqlite,
    /// A store that somebody else keeps: only workers are broken.
    Foreign,
}

/// The store of a run.
pub(crate) struct World {
    pub(crate) shape: Shape,
    pub(crate) durable: bool,
    pub(crate) servers: Vec<RedisServer>,
    /// Of the servers whose clocks can be set, and how far each is ahead, in milliseconds.
    pub(crate) clocks: Vec<(SetClock, i64)>,
    pub(crate) sentinels: Vec<Sentinel>,
    /// Where servers fail over, the first ones lead to the servers, in their order, for everybody.
    pub(crate) links: Vec<Link>,
    /// Of a cluster: those on which the nodes watch each other, in their order.
    pub(crate) buses: Vec<Link>,
    /// A server may have lost data.
    lost: bool,
    /// A clock was set back.
    went_back: bool,
    /// One for each worker.
    urls: Vec<String>,
    /// Without anything in between.
    pub(crate) direct: String,
}

impl World {
    /// Starts everything.
    pub(crate) fn start(
        program: &Program,
        network: &Network,
        plan: &Plan,
        folder: &Path,
        store: Option<&str>,
    ) -> io::Result<Self> {
        match (plan.shape, store) {
            (Shape::Redis, _) => redis::start(program, network, plan),
            (Shape::Sentinel, _) => sentinel::start(program, network, plan),
            (Shape::Cluster, _) => cluster::start(program, network, plan),
            (Shape::Redlock3, _) => redlock::start(program, network, plan, 3),
            (Shape::Redlock5, _) => redlock::start(program, network, plan, 5),
            (Shape::Sqlite, _) => Ok(sqlite::start(plan, folder)),
            (Shape::Foreign, Some(url)) => Ok(Self::without_servers(plan, url.to_owned())),
            (Shape::Foreign, None) => Err(io::Error::other("say which store: --store URL")),
        }
    }

    fn without_servers(plan: &Plan, url: String) -> Self {
        Self {
            shape: plan.shape,
            durable: false,
            servers: Vec::new(),
            clocks: Vec::new(),
            sentinels: Vec::new(),
            links: Vec::new(),
            buses: Vec::new(),
            lost: false,
            went_back: false,
            urls: vec![url.clone(); plan.workers],
            direct: url,
        }
    }

    pub(crate) fn url_for(&self, worker: usize) -> String {
        self.urls[worker].clone()
    }

    /// How long it may take until everybody has got everything once nothing is broken any more: a
    /// dead waiter is passed over after 22.5 s at the latest, and this machine may be busy.
    pub(crate) fn recovery_ms(&self) -> u64 {
        60_000 + self.shape.failover_ms()
    }

    pub(crate) fn terms(&self, seed: u64) -> Terms {
        Terms {
            store: self.direct.split(':').next().unwrap_or("").to_owned(),
            seed,
            order: match self.shape {
                Shape::Redlock3 | Shape::Redlock5 => Order::Race,
                _ => Order::Arrival,
            },
            one_machine: matches!(self.shape, Shape::Redis | Shape::Sqlite),
            sees_death: self.shape == Shape::Sqlite,
            shortens: self.shape == Shape::Sentinel,
            // A waiter asks again after 5.3 s, a dead connection is noticed after 3 s more.
            idle_ms: 15_000,
            recovery_ms: self.recovery_ms(),
        }
    }

    /// Which promises do not hold any more when a server of this world does this, and what it still
    /// remembers.
    pub(crate) fn consequences(&mut self, kind: FaultKind) -> (Vec<PromiseId>, Memory) {
        let memory = match kind {
            FaultKind::Restart if self.durable => Memory::Kept,
            FaultKind::Restart | FaultKind::Forget | FaultKind::FlushAll => Memory::Unsure,
            // A primary that was silent for too long is replaced.
            FaultKind::Freeze | FaultKind::Split if self.shape.fails_over() => Memory::Unsure,
            FaultKind::ClockForward | FaultKind::ClockBack => Memory::Unsure,
            _ => Memory::Kept,
        };
        match kind {
            FaultKind::ClockBack => self.went_back = true,
            _ => self.lost |= memory == Memory::Unsure,
        }
        let breaks = match kind {
            FaultKind::ClockForward => vec![PromiseId::S2],
            // A server without its last fences goes by its clock.
            _ if self.lost && self.went_back => vec![PromiseId::S1],
            _ => Vec::new(),
        };
        (breaks, memory)
    }
}

impl Shape {
    /// All that can be started here.
    pub const ALL: [Self; 6] = [
        Self::Redis,
        Self::Sentinel,
        Self::Cluster,
        Self::Redlock3,
        Self::Redlock5,
        Self::Sqlite,
    ];

    /// The word for it on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
            Self::Redlock3 => "redlock:3",
            Self::Redlock5 => "redlock:5",
            Self::Sqlite => "sqlite",
            Self::Foreign => "",
        }
    }

    /// Reads such a word.
    ///
    /// # Errors
    /// With all words that there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "redlock" {
            return Ok(Self::Redlock3);
        }
        let found = Self::ALL.into_iter().find(|shape| shape.word() == text);
        found.ok_or_else(|| format!("one of {}", Self::ALL.map(Self::word).join(", ")))
    }

    pub(crate) fn can_be_durable(self) -> bool {
        self == Self::Redis
    }

    pub(crate) fn permits(self) -> bool {
        !matches!(self, Self::Redlock3 | Self::Redlock5 | Self::Foreign)
    }

    pub(crate) fn servers(self) -> usize {
        match self {
            Self::Redis => 1,
            Self::Sentinel => 2,
            Self::Redlock3 => 3,
            Self::Redlock5 => 5,
            Self::Cluster => 6,
            Self::Sqlite | Self::Foreign => 0,
        }
    }

    /// How many links there are, for so many workers.
    pub(crate) fn links(self, workers: usize) -> usize {
        match self {
            Self::Redis => workers,
            // To each server for all, and to each sentinel.
            Self::Sentinel => self.servers() + sentinel::SENTINELS * workers,
            // To each node, for all.
            Self::Cluster => self.servers(),
            Self::Redlock3 | Self::Redlock5 => workers * self.servers(),
            Self::Sqlite | Self::Foreign => 0,
        }
    }

    /// How many servers may be gone at the same time.
    pub(crate) fn bearable_losses(self) -> usize {
        match self {
            Self::Redlock5 => 2,
            _ => 1,
        }
    }

    pub(crate) fn fails_over(self) -> bool {
        matches!(self, Self::Sentinel | Self::Cluster)
    }

    /// How long a server must be gone for another to take its place.
    pub(crate) fn failover_ms(self) -> u64 {
        if self.fails_over() { 5_000 } else { 0 }
    }

    /// What is broken unless something else is asked for: whatever leaves all promises standing.
    pub(crate) fn usual_faults(self) -> Vec<FaultKind> {
        let mut faults = self.possible_faults();
        faults.retain(|kind| *kind != FaultKind::ClockForward);
        faults
    }

    pub(crate) fn possible_faults(self) -> Vec<FaultKind> {
        use FaultKind::*;
        let workers = [Kill, Pause];
        let links = [Cut, Refuse, Delay, Partition, Swallow, Repeat];
        let servers = [Restart, Forget, Freeze, ScriptFlush, ClientKill, FlushAll];
        let divides = [CutOff, Split];
        let clocks = [ClockBack, ClockForward];
        match self {
            Self::Redis | Self::Redlock3 | Self::Redlock5 => {
                [&workers[..], &workers, &links, &servers, &clocks].concat()
            }
            Self::Sentinel => {
                [&workers[..], &links, &servers, &divides, &[FreezeSentinel]].concat()
            }
            Self::Cluster => [&workers[..], &workers, &links, &servers, &divides].concat(),
            Self::Sqlite | Self::Foreign => workers.to_vec(),
        }
    }
}

/// For each worker a link to each of several servers, and its URL.
struct Fan {
    links: Vec<Link>,
    urls: Vec<String>,
}

impl Fan {
    fn start(
        network: &Network,
        plan: &Plan,
        servers: &[u16],
        url: impl Fn(&[u16]) -> String,
    ) -> io::Result<Self> {
        let (mut links, mut urls) = (Vec::new(), Vec::new());
        for _ in 0..plan.workers {
            let own: io::Result<Vec<_>> = servers.iter().map(|port| network.link(*port)).collect();
            let own = own?;
            urls.push(url(&own.iter().map(Link::port).collect::<Vec<_>>()));
            links.extend(own);
        }
        Ok(Self { links, urls })
    }
}

/// As in a URL.
fn hosts(ports: &[u16]) -> String {
    let hosts: Vec<_> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    hosts.join(",")
}

/// `?max_ttl=…`: a server that forgot lets nobody in for as long as a lease may last here.
fn max_ttl() -> String {
    format!("max_ttl={}s", LONGEST_LEASE_MS.div_ceil(1_000))
}
