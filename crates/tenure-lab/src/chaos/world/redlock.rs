//! Several independent Redis servers, and for each worker a link to each of them.

use std::io;

use super::{Fan, World, hosts, max_ttl};
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
    let ports: Vec<u16> = servers.iter().map(RedisServer::port).collect();
    let fan = Fan::start(network, plan, &ports, url)?;
    Ok(World {
        urls: fan.urls,
        direct: url(&ports),
        clocks,
        servers,
        links: fan.links,
        ..World::without_servers(plan, String::new())
    })
}

fn url(ports: &[u16]) -> String {
    // Longer than usual: what is looked for here is not how fast this machine is.
    format!(
        "redlock://{}?{}&node_timeout=200ms",
        hosts(ports),
        max_ttl()
    )
}
