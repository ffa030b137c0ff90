//! A primary and a replica, watched by three sentinels, and for each worker a link to each sentinel. The
//! way to the servers is direct: whom the sentinels name is where clients connect to.

use std::io;

use super::{World, max_ttl};
use crate::Program;
use crate::chaos::plan::Plan;
use crate::servers::{Network, RedisServer, Sentinel, wait};

pub(super) fn start(program: &Program, network: &Network, plan: &Plan) -> io::Result<World> {
    let settings = [
        "--repl-diskless-sync-delay",
        "0",
        "--repl-backlog-ttl",
        "3600",
    ];
    let primary = RedisServer::start(program, &settings)?;
    let port = primary.port().to_string();
    let follows = ["--replicaof", "127.0.0.1", &port];
    let replica = RedisServer::start(program, &[&settings[..], &follows].concat())?;
    let mut sentinels = Vec::new();
    for _ in 0..3 {
        sentinels.push(Sentinel::start(program, primary.port())?);
    }
    let settled = wait::until(wait::PATIENCE, || {
        sentinels.iter().all(Sentinel::knows_all).then_some(())
    });
    settled.ok_or_else(|| io::Error::other("the sentinels do not find each other"))?;
    let (mut links, mut urls) = (Vec::new(), Vec::new());
    for _ in 0..plan.workers {
        let mut ports = Vec::new();
        for sentinel in &sentinels {
            let link = network.link(sentinel.port())?;
            ports.push(link.port());
            links.push(link);
        }
        urls.push(url(&ports));
    }
    let ports: Vec<u16> = sentinels.iter().map(Sentinel::port).collect();
    Ok(World {
        urls,
        direct: url(&ports),
        servers: vec![primary, replica],
        sentinels,
        links,
        ..World::without_servers(plan, String::new())
    })
}

fn url(ports: &[u16]) -> String {
    let hosts: Vec<_> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let service = Sentinel::SERVICE;
    format!(
        "redis+sentinel://{}/{service}?{}",
        hosts.join(","),
        max_ttl()
    )
}
