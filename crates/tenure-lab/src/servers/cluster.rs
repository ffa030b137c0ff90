//! A real Redis Cluster of our own, with a link before each node.

use std::io;

use super::link::{Link, Network};
use super::port::free_port;
use super::redis::RedisServer;
use super::wait::{PATIENCE, until};
use crate::program::Program;

/// How many slots there are.
const SLOTS: usize = 16_384;

/// A primary that is silent for so long is replaced by its replica, in milliseconds.
const NODE_TIMEOUT: &str = "2000";

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    /// Primaries first, then replicas.
    pub nodes: Vec<RedisServer>,
    /// What leads to each node, for its clients and its replica.
    pub links: Vec<Link>,
    /// What leads to each node, for the other nodes.
    pub buses: Vec<Link>,
}

/// Starts primaries that share all slots evenly, then replicas, each of another primary. Each node
/// announces its links, also after it was restarted.
///
/// # Errors
/// There is no redis-server, or the nodes do not find each other.
pub fn start(
    program: &Program,
    network: &Network,
    primaries: usize,
    replicas: usize,
) -> io::Result<Cluster> {
    let (mut nodes, mut links, mut buses) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..primaries + replicas {
        let port = free_port()?;
        let (link, bus) = (network.link(0)?, network.link(port)?);
        let arguments = [
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &port.to_string(),
            "--cluster-announce-port",
            &link.port().to_string(),
            "--cluster-announce-bus-port",
            &bus.port().to_string(),
            "--cluster-node-timeout",
            NODE_TIMEOUT,
            "--repl-diskless-sync-delay",
            "0",
        ];
        let node = RedisServer::start(program, &arguments)?;
        link.lead_to(node.port());
        nodes.push(node);
        links.push(link);
        buses.push(bus);
    }
    let (first, bus) = (links[0].port().to_string(), buses[0].port().to_string());
    for (index, node) in nodes.iter().enumerate() {
        let epoch = (index + 1).to_string();
        say(node, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
        if index < primaries {
            let from = (SLOTS * index / primaries).to_string();
            let to = (SLOTS * (index + 1) / primaries - 1).to_string();
            say(node, &["CLUSTER", "ADDSLOTSRANGE", &from, &to])?;
        }
        say(node, &["CLUSTER", "MEET", "127.0.0.1", &first, &bus])?;
    }
    settle(&nodes)?;
    for (index, replica) in nodes[primaries..].iter().enumerate() {
        let primary = &nodes[index % primaries];
        let id = primary.command(&["CLUSTER", "MYID"])?.text();
        say(replica, &["CLUSTER", "REPLICATE", &id])?;
        patiently("a replica does not follow", || {
            let about = replica.command(&["INFO", "replication"]).ok()?.text();
            about.contains("master_link_status:up").then_some(())
        })?;
    }
    settle(&nodes)?;
    Ok(Cluster {
        nodes,
        links,
        buses,
    })
}

/// Waits until all nodes know each other and serve.
fn settle(nodes: &[RedisServer]) -> io::Result<()> {
    let count = format!("cluster_known_nodes:{}\r", nodes.len());
    for node in nodes {
        patiently("the nodes do not find each other", || {
            let info = node.command(&["CLUSTER", "INFO"]).ok()?.text();
            let known = node.command(&["CLUSTER", "NODES"]).ok()?.text();
            let unknown = known.contains("handshake") || known.contains("noaddr");
            let ready = info.contains("cluster_state:ok") && info.contains(&count);
            (ready && !unknown).then_some(())
        })?;
    }
    Ok(())
}

fn patiently(what: &str, condition: impl FnMut() -> Option<()>) -> io::Result<()> {
    until(PATIENCE, condition).ok_or_else(|| io::Error::other(what.to_owned()))
}

fn say(node: &RedisServer, words: &[&str]) -> io::Result<()> {
    let answer = node.command(words)?;
    if answer.is_yes() {
        return Ok(());
    }
    let words = words.join(" ");
    Err(io::Error::other(format!("{words}: {}", answer.text())))
}
