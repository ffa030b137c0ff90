//! A real Redis Cluster of our own, with a link before each node.

use std::io;

use super::link::{Link, Network};
use super::redis::{RedisServer, free_port};
use super::wait::{PATIENCE, until};
use crate::program::Program;

/// How many slots there are.
const SLOTS: usize = 16_384;

/// A primary that is silent for so long is replaced by its replica, in milliseconds.
const NODE_TIMEOUT: &str = "2000";

/// Starts primaries that share all slots evenly, then replicas, each of another primary. Each node
/// announces its link; the nodes reach each other directly on the bus.
///
/// # Errors
/// There is no redis-server, or the nodes do not find each other.
pub fn start(
    program: &Program,
    network: &Network,
    primaries: usize,
    replicas: usize,
) -> io::Result<(Vec<RedisServer>, Vec<Link>)> {
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    for _ in 0..primaries + replicas {
        let bus = free_port()?.to_string();
        let arguments = [
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &bus,
            "--cluster-node-timeout",
            NODE_TIMEOUT,
            "--repl-diskless-sync-delay",
            "0",
        ];
        let node = RedisServer::start(program, &arguments)?;
        let link = network.link(node.port())?;
        let announced = link.port().to_string();
        say(
            &node,
            &["CONFIG", "SET", "cluster-announce-port", &announced],
        )?;
        nodes.push((node, bus));
        links.push(link);
    }
    let first = nodes[0].0.port().to_string();
    let bus = nodes[0].1.clone();
    for (index, (node, _)) in nodes.iter().enumerate() {
        let epoch = (index + 1).to_string();
        say(node, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
        if index < primaries {
            let from = (SLOTS * index / primaries).to_string();
            let to = (SLOTS * (index + 1) / primaries - 1).to_string();
            say(node, &["CLUSTER", "ADDSLOTSRANGE", &from, &to])?;
        }
        say(node, &["CLUSTER", "MEET", "127.0.0.1", &first, &bus])?;
    }
    let nodes: Vec<RedisServer> = nodes.into_iter().map(|(node, _)| node).collect();
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
    Ok((nodes, links))
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
