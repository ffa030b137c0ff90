//! A real Redis Cluster on free ports.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::redis_server::{RedisServer, free_port};
use super::wait::eventually;

/// How many slots there are.
const SLOTS: usize = 16_384;

/// Primaries, which share all slots evenly, and perhaps replicas. Dropping it ends all of them.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The primaries, then the replicas.
    pub(crate) nodes: Vec<RedisServer>,
    primaries: usize,
}

impl Cluster {
    /// Three primaries.
    pub(crate) fn start() -> Self {
        Self::launched(3, 0)
    }

    /// Three primaries and a replica of the first one.
    pub(crate) fn start_with_replica() -> Self {
        Self::launched(3, 1)
    }

    /// Three primaries that other tests use at the same time: choose names of your own, and break
    /// nothing.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return cluster;
        }
        let cluster = Arc::new(Self::start());
        *shared = Arc::downgrade(&cluster);
        cluster
    }

    /// Three primaries that also speak TLS, with these arguments.
    pub(crate) fn start_encrypted(arguments: &[&str]) -> Self {
        Self::joined((0..3).map(|_| encrypted_node(arguments)).collect(), 3)
    }

    /// `rediss+cluster://…?recovery=open`.
    pub(crate) fn tls_url(&self) -> String {
        let port = self.nodes[1].tls_port();
        format!("rediss+cluster://127.0.0.1:{port}?recovery=open")
    }

    fn launched(primaries: usize, replicas: usize) -> Self {
        let nodes = (0..primaries + replicas).map(|_| node()).collect();
        Self::joined(nodes, primaries)
    }

    fn joined(nodes: Vec<RedisServer>, primaries: usize) -> Self {
        for (index, node) in nodes.iter().enumerate() {
            let epoch = (index + 1).to_string();
            assert_eq!(node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]), "OK");
            if index < primaries {
                let first = (SLOTS * index / primaries).to_string();
                let last = (SLOTS * (index + 1) / primaries - 1).to_string();
                let added = node.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
                assert_eq!(added, "OK");
            }
            let port = nodes[0].port().to_string();
            let bus = bus_port(&nodes[0]);
            node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        let cluster = Self { nodes, primaries };
        cluster.settle();
        for replica in &cluster.nodes[primaries..] {
            let first = cluster.id(0);
            assert_eq!(replica.command(&["CLUSTER", "REPLICATE", &first]), "OK");
            eventually("the replica follows", || {
                let about = replica.command(&["INFO", "replication"]);
                about.contains("master_link_status:up").then_some(())
            });
        }
        cluster.settle();
        cluster
    }

    /// `redis+cluster://…?recovery=open`, with one primary: the others are found. A cluster of ours is known to be
    /// new. Further options begin with `&`.
    pub(crate) fn url(&self) -> String {
        self.url_with("recovery=open")
    }

    /// The same with these options only.
    pub(crate) fn url_with(&self, options: &str) -> String {
        format!("redis+cluster://{}?{options}", self.nodes[1].address())
    }

    /// From now on nothing that the first primary writes reaches its replica.
    pub(crate) fn withhold_replication(&self) {
        let primary = &self.nodes[0];
        let denied = primary.command(&["ACL", "SETUSER", "default", "-psync", "-sync"]);
        assert_eq!(denied, "OK");
        primary.command(&["CLIENT", "KILL", "TYPE", "replica"]);
        eventually("the replica is cut off", || {
            let about = primary.command(&["INFO", "replication"]);
            about.contains("connected_slaves:0").then_some(())
        });
    }

    /// Kills the first primary and puts its replica in its place, without asking anybody.
    pub(crate) fn fail_over(&mut self) {
        self.nodes[0].kill();
        self.take_over();
    }

    /// Gives the slots of the first primary, which is dead, to the second.
    pub(crate) fn give_slots_away(&self) {
        let last = (SLOTS / self.primaries - 1).to_string();
        for node in &self.nodes[1..self.primaries] {
            let removed = node.command(&["CLUSTER", "DELSLOTSRANGE", "0", &last]);
            assert_eq!(removed, "OK");
        }
        let heir = &self.nodes[1];
        let added = heir.command(&["CLUSTER", "ADDSLOTSRANGE", "0", &last]);
        assert_eq!(added, "OK");
        heir.command(&["CLUSTER", "BUMPEPOCH"]);
    }

    /// Puts the replica in the place of the first primary, whether or not that one is still there.
    pub(crate) fn take_over(&self) {
        let replica = &self.nodes[self.primaries];
        let taken = replica.command(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
        assert_eq!(taken, "OK");
    }

    /// Waits until this node follows that one and has all that it has.
    pub(crate) fn follows(&self, follower: usize, leader: usize) {
        let (follower, leader) = (&self.nodes[follower], &self.nodes[leader]);
        eventually("the one follows the other", || {
            let about = follower.command(&["INFO", "replication"]);
            let port = format!("master_port:{}\r", leader.port());
            let follows = about.contains(&port) && about.contains("master_link_status:up");
            let size = |node: &RedisServer| node.command(&["DBSIZE"]);
            (follows && size(follower) == size(leader)).then_some(())
        });
    }

    /// Deletes everything that this node has in the slot of `key`, the record of its life included.
    pub(crate) fn empty_slot(&self, key: &str, node: usize) {
        let slot = self.slot(key).to_string();
        let keys = self.nodes[node].command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
        assert!(!keys.is_empty(), "there is a record");
        for key in keys.lines() {
            assert_eq!(self.nodes[node].command(&["DEL", key]), "1");
        }
    }

    /// Which primary has the slot of `key`, in a cluster as it was started.
    pub(crate) fn owner(&self, key: &str) -> usize {
        self.slot(key) * self.primaries / SLOTS
    }

    /// A lock (with the default prefix) that this primary has.
    pub(crate) fn name_at(&self, primary: usize, word: &str) -> String {
        let names = (0..).map(|number| format!("{word} {number}"));
        let mut here = names.filter(|name| self.owner(&format!("tenure:{name}")) == primary);
        here.next().expect("endless")
    }

    /// Moves the slot of `key`, with everything in it, from one node to another.
    pub(crate) fn move_slot(&self, key: &str, from: usize, to: usize) {
        self.begin_move(key, from, to);
        self.finish_move(key, from, to);
    }

    /// From now on the slot of `key` is on its way.
    pub(crate) fn begin_move(&self, key: &str, from: usize, to: usize) {
        let slot = self.slot(key).to_string();
        let importing = ["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)];
        assert_eq!(self.nodes[to].command(&importing), "OK");
        let migrating = ["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)];
        assert_eq!(self.nodes[from].command(&migrating), "OK");
    }

    pub(crate) fn finish_move(&self, key: &str, from: usize, to: usize) {
        let slot = self.slot(key).to_string();
        let port = self.nodes[to].port().to_string();
        loop {
            let keys = self.nodes[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
            let keys: Vec<_> = keys.lines().collect();
            if keys.is_empty() {
                break;
            }
            let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            migrate.extend(keys);
            let moved = self.nodes[from].command(&migrate);
            assert!(matches!(&*moved, "OK" | "NOKEY"), "{moved}");
        }
        let id = self.id(to);
        for node in [to, from] {
            let set = self.nodes[node].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
            assert_eq!(set, "OK");
        }
    }

    fn slot(&self, key: &str) -> usize {
        let slot = self.nodes[1].command(&["CLUSTER", "KEYSLOT", key]);
        slot.parse().expect("a number")
    }

    pub(crate) fn id(&self, node: usize) -> String {
        self.nodes[node].command(&["CLUSTER", "MYID"])
    }

    /// Waits until all nodes know each other and serve.
    fn settle(&self) {
        let count = format!("cluster_known_nodes:{}\r", self.nodes.len());
        for node in &self.nodes {
            eventually("the nodes know each other", || {
                let info = node.command(&["CLUSTER", "INFO"]);
                let ready = info.contains("cluster_state:ok") && info.contains(&count);
                let replicas = node.command(&["CLUSTER", "NODES"]);
                let unknown = replicas.contains("handshake") || replicas.contains("noaddr");
                (ready && !unknown).then_some(())
            });
        }
    }
}

/// One node that knows no other. Failovers happen only when a test says so.
pub(crate) fn node() -> RedisServer {
    RedisServer::start_with(&with_bus(&free_port().to_string()))
}

fn encrypted_node(arguments: &[&str]) -> RedisServer {
    let bus = free_port().to_string();
    let mut all = with_bus(&bus);
    all.extend(arguments);
    let node = RedisServer::start_encrypted(&all);
    // Otherwise nodes tell clients the other port; between themselves they do not encrypt here.
    let port = node.tls_port().to_string();
    let announced = node.command(&["CONFIG", "SET", "cluster-announce-port", &port]);
    assert_eq!(announced, "OK");
    node
}

fn with_bus(bus: &str) -> Vec<&str> {
    vec![
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        bus,
        "--cluster-node-timeout",
        "60000",
        "--repl-diskless-sync-delay",
        "0",
    ]
}

fn bus_port(node: &RedisServer) -> String {
    let port = node.command(&["CONFIG", "GET", "cluster-port"]);
    port.lines().nth(1).expect("its value").to_owned()
}
