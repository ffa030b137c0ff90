//! One Redis server, and for each worker a link to it.

use std::io;

use super::{Fan, World, hosts, max_ttl};
use crate::Program;
use crate::chaos::plan::Plan;
use crate::servers::{Network, RedisServer, SetClock};

/// What makes a server save everything before it acknowledges it.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

pub(super) fn start(program: &Program, network: &Network, plan: &Plan) -> io::Result<World> {
    let arguments = if plan.durable { &DURABLE[..] } else { &[] };
    let clock = SetClock::new()?;
    let server = RedisServer::start_in(program, arguments, clock.environment())?;
    // Nobody has to wait then: a restart keeps everything, and there is no replica.
    let said = if plan.durable { "&replicas=none" } else { "" };
    let url = |ports: &[u16]| format!("redis://{}?{}{said}", hosts(ports), max_ttl());
    let fan = Fan::start(network, plan, &[server.port()], url)?;
    Ok(World {
        urls: fan.urls,
        direct: url(&[server.port()]),
        durable: plan.durable,
        clocks: vec![(clock, 0)],
        servers: vec![server],
        links: fan.links,
        ..World::without_servers(plan, String::new())
    })
}
