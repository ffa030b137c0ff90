//! The servers of a play, and the addresses under which workers know them.

use std::time::Duration;

use super::log::Log;
use super::{Ask, Played, Stage, Upset, Worker};
use crate::servers::wait::{PATIENCE, until};
use crate::servers::{Proxy, RedisServer, SetClock};
use crate::worker::How;

impl Stage {
    /// Starts so many Redis servers: one, or independent ones for a majority.
    pub(crate) fn start_redis(&mut self, count: usize) -> Played<()> {
        for _ in 0..count {
            self.servers.push(RedisServer::start(&self.program, &[])?);
        }
        self.open()
    }

    /// Starts a Redis server whose clock can be set.
    pub(crate) fn start_redis_with_clock(&mut self) -> Played<()> {
        let clock = SetClock::new()?;
        let server = RedisServer::start_in(&self.program, &[], clock.environment())?;
        self.servers.push(server);
        self.clock = Some(clock);
        self.open()
    }

    /// From now on the server's clock is ahead by so many seconds.
    pub(crate) fn step_clock(&self, seconds: u64) -> Played<()> {
        let clock = self.clock.as_ref();
        let clock =
            clock.ok_or_else(|| Upset::Broken("this server's clock is fixed".to_owned()))?;
        Ok(clock.be_ahead_by(Duration::from_secs(seconds))?)
    }

    /// Starts a primary with a replica, both behind one address, and returns the link between the two.
    pub(crate) fn start_primary_and_replica(&mut self) -> Played<Proxy> {
        let primary = RedisServer::start(&self.program, &["--repl-diskless-sync-delay", "0"])?;
        let link = Proxy::to(primary.port())?;
        let of = ["--replicaof", "127.0.0.1", &link.port().to_string()];
        let replica = RedisServer::start(&self.program, &of)?;
        self.servers.push(primary);
        self.open()?;
        self.servers.push(replica);
        self.front = Some(Proxy::to(self.servers[0].port())?);
        let caught_up = || self.replica_has_everything().then_some(());
        let caught_up = until(PATIENCE, caught_up);
        caught_up.ok_or_else(|| Upset::Broken("the replica never caught up".to_owned()))?;
        Ok(link)
    }

    fn replica_has_everything(&self) -> bool {
        let keys = |server: &RedisServer| server.command(&["DBSIZE"]).ok()?.number();
        let (primary, replica) = (keys(&self.servers[0]), keys(&self.servers[1]));
        let info = self.servers[1].command(&["INFO", "replication"]);
        let is_up = info.is_ok_and(|info| info.text().contains("master_link_status:up"));
        is_up && primary.is_some() && primary == replica
    }

    /// Begins to look at the servers, and tells our lock that they are new.
    pub(crate) fn open(&mut self) -> Played<()> {
        self.watch_all();
        if self.how == How::Ours {
            let url = self.url(&self.ports()) + "&recovery=open";
            let name = "setup";
            let command = self.worker_command(name, &self.ports(), &url);
            let setup = Worker::start(name, command, Vec::new(), &Log::default())?;
            setup.begin_acquire(Ask::once())?;
            setup.got()?;
            setup.release()?;
        }
        Ok(())
    }

    /// From here on there are only so many servers, the first ones.
    pub(crate) fn go_on_with(&mut self, count: usize) {
        self.servers.truncate(count);
        self.watch_all();
    }

    /// The address leads to this server now.
    pub(crate) fn lead_to(&self, server: usize) {
        let port = self.servers[server].port();
        if let Some(front) = &self.front {
            front.lead_to(port);
        }
        self.truth.watch(vec![port]);
    }

    fn watch_all(&self) {
        self.truth.watch(self.ports());
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(RedisServer::port).collect()
    }

    /// What a client of these servers is given.
    pub(super) fn url(&self, ports: &[u16]) -> String {
        let hosts: Vec<_> = ports
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        let scheme = if ports.len() == 1 { "redis" } else { "redlock" };
        let max_ttl = self.longest.as_millis();
        format!("{scheme}://{}?max_ttl={max_ttl}ms", hosts.join(","))
    }
}
