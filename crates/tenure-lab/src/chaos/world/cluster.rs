//! Three primaries with a replica each, and two links to each node, which are the addresses that the node
//! announces: one for workers and its replica, one for the bus on which the nodes watch each other.

use std::io;

use super::{World, hosts, max_ttl};
use crate::Program;
use crate::chaos::plan::Plan;
use crate::servers::cluster::{self, Cluster};
use crate::servers::{Link, Network, RedisServer};

pub(super) fn start(program: &Program, network: &Network, plan: &Plan) -> io::Result<World> {
    let Cluster {
        nodes,
        links,
        buses,
    } = cluster::start(program, network, 3, 3)?;
    let direct: Vec<u16> = nodes.iter().take(3).map(RedisServer::port).collect();
    let before: Vec<u16> = links.iter().take(3).map(Link::port).collect();
    Ok(World {
        urls: vec![url(&before); plan.workers],
        direct: url(&direct),
        servers: nodes,
        links,
        buses,
        ..World::without_servers(plan, String::new())
    })
}

fn url(ports: &[u16]) -> String {
    format!("redis+cluster://{}?{}", hosts(ports), max_ttl())
}
