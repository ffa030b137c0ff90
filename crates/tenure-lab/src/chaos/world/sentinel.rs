//! A primary and a replica, watched by three sentinels. One link leads to each server, for workers, the
//! sentinels and the replica alike: its address is the one that all of them know. Before the sentinels
//! each worker has links of its own.

use std::io;

use super::{Fan, World, hosts, max_ttl};
use crate::Program;
use crate::chaos::plan::Plan;
use crate::servers::{Network, RedisServer, Sentinel, wait};

/// How many there are.
pub(super) const SENTINELS: usize = 3;

pub(super) fn start(program: &Program, network: &Network, plan: &Plan) -> io::Result<World> {
    let mut links = vec![network.link(0)?, network.link(0)?];
    let known_as: Vec<String> = links.iter().map(|link| link.port().to_string()).collect();
    let follows = ["--replicaof", "127.0.0.1", &known_as[0]];
    let mut servers = Vec::new();
    for (server, follows) in [&[][..], &follows].into_iter().enumerate() {
        let settings = [
            "--repl-diskless-sync-delay",
            "0",
            "--repl-backlog-ttl",
            "3600",
            "--replica-announce-port",
            &known_as[server],
        ];
        servers.push(RedisServer::start(program, &[&settings, follows].concat())?);
        links[server].lead_to(servers[server].port());
    }
    let mut sentinels = Vec::new();
    for _ in 0..SENTINELS {
        sentinels.push(Sentinel::start(program, links[0].port())?);
    }
    let settled = wait::until(wait::PATIENCE, || {
        sentinels.iter().all(Sentinel::knows_all).then_some(())
    });
    settled.ok_or_else(|| io::Error::other("the sentinels do not find each other"))?;
    let ports: Vec<u16> = sentinels.iter().map(Sentinel::port).collect();
    let fan = Fan::start(network, plan, &ports, url)?;
    links.extend(fan.links);
    Ok(World {
        urls: fan.urls,
        direct: url(&ports),
        servers,
        sentinels,
        links,
        ..World::without_servers(plan, String::new())
    })
}

fn url(ports: &[u16]) -> String {
    let service = Sentinel::SERVICE;
    format!("redis+sentinel://{}/{service}?{}", hosts(ports), max_ttl())
}
