//! Several independent Redis servers, and for each worker a link to each of them.

use std::io;

use super::{World, max_ttl};
use crate::Program;
use crate::chaos::plan::Plan;
use crate::servers::{Network, RedisServer, SetClock};

pub(super) fn start(
    program: &Program,
    network: &Network,
    plan: &Plan,
    count: usize,
) -> io::Result<World> {
    let (mut servers, mut clocks) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let clock = SetClock::new()?;
        servers.push(RedisServer::start_in(program, &[], clock.environment())?);
        clocks.push((clock, 0));
    }
    let (mut links, mut urls) = (Vec::new(), Vec::new());
    for _ in 0..plan.workers {
        let mut ports = Vec::new();
        for server in &servers {
            let link = network.link(server.port())?;
            ports.push(link.port());
            links.push(link);
        }
        urls.push(url(&ports));
    }
    let ports: Vec<u16> = servers.iter().map(RedisServer::port).collect();
    Ok(World {
        urls,
        direct: url(&ports),
        clocks,
        servers,
        links,
        ..World::without_servers(plan, String::new())
    })
}

fn url(ports: &[u16]) -> String {
    let hosts: Vec<_> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    // Longer than usual: what is looked for here is not how fast this machine is.
    format!(
        "redlock://{}?{}&node_timeout=200ms",
        hosts.join(","),
        max_ttl()
    )
}
