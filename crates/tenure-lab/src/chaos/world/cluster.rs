//! Three primaries with a replica each, and one link to each node, which is the address that the node
//! announces; the nodes themselves talk to each other directly.

use std::io;

use super::{World, max_ttl};
use crate::Program;
use crate::chaos::plan::Plan;
use crate::servers::{Network, RedisServer, cluster};

pub(super) fn start(program: &Program, network: &Network, plan: &Plan) -> io::Result<World> {
    let (servers, links) = cluster::start(program, network, 3, 3)?;
    let hosts: Vec<_> = servers.iter().take(3).map(RedisServer::address).collect();
    let direct = format!("redis+cluster://{}?{}", hosts.join(","), max_ttl());
    let hosts: Vec<_> = links
        .iter()
        .take(3)
        .map(|link| format!("127.0.0.1:{}", link.port()))
        .collect();
    let url = format!("redis+cluster://{}?{}", hosts.join(","), max_ttl());
    Ok(World {
        urls: vec![url; plan.workers],
        direct,
        servers,
        links,
        ..World::without_servers(plan, String::new())
    })
}
