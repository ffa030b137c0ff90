//! Real sentinels over real servers: a primary and a replica, watched by three of them.

mod fake;
mod network;
mod sentinel;

use std::time::Duration;

use super::redis_server::RedisServer;
use super::wait::{eventually, eventually_within};

pub(crate) use fake::{FakeSentinel, Says};
pub(crate) use network::{Network, Node};
pub(crate) use sentinel::{Sentinel, Temper, WITH_TILT};

/// What the sentinels call the service.
pub(crate) const SERVICE: &str = "locks";

/// A service with its servers and sentinels. Dropping it ends all of them.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) servers: Vec<RedisServer>,
    pub(crate) sentinels: Vec<Sentinel>,
}

/// Passwords of the sentinels and of the servers.
pub(crate) struct Passwords {
    pub(crate) sentinels: &'static str,
    pub(crate) servers: &'static str,
}

impl Watched {
    /// One primary, one replica that follows it, three sentinels that know each other and both. They
    /// begin a failover two seconds after the primary fell silent: less would happen by itself on a
    /// busy machine.
    pub(crate) fn start() -> Self {
        Self::launched(Temper::ALERT, None, &[])
    }

    /// The same; the replica is not good enough to be promoted, and whoever tried that would be waited
    /// for for very long.
    pub(crate) fn start_hopeless() -> Self {
        let temper = Temper {
            failover_timeout: Duration::from_secs(600),
            ..Temper::ALERT
        };
        Self::launched(temper, None, &["--replica-priority", "0"])
    }

    /// The same without failovers.
    pub(crate) fn start_calm() -> Self {
        Self::launched(Temper::CALM, None, &[])
    }

    /// The same with passwords.
    pub(crate) fn start_protected(passwords: &Passwords) -> Self {
        Self::launched(Temper::CALM, Some(passwords), &[])
    }

    fn launched(temper: Temper, passwords: Option<&Passwords>, of_replica: &[&str]) -> Self {
        let password = passwords.map_or("", |passwords| passwords.servers);
        let mut arguments = vec!["--repl-diskless-sync-delay", "0"];
        if !password.is_empty() {
            arguments.extend(["--requirepass", password, "--masterauth", password]);
        }
        let primary = RedisServer::start_with(&arguments);
        let port = primary.port().to_string();
        arguments.extend(["--replicaof", "127.0.0.1", &port]);
        arguments.extend(of_replica);
        let replica = RedisServer::start_with(&arguments);
        let sentinels = (0..3).map(|_| Sentinel::launch(&primary, temper, passwords));
        let watched = Self {
            sentinels: sentinels.collect(),
            servers: vec![primary, replica],
        };
        for sentinel in &watched.sentinels {
            sentinel.knows_all();
        }
        watched
    }

    /// `redis+sentinel://…`, with all sentinels.
    pub(crate) fn url(&self) -> String {
        self.url_with("", "")
    }

    /// With credentials (`user:password@`) and options (`?…`). Unless they say otherwise, a primary
    /// that may have forgotten is taken as it is: that is another test's business.
    pub(crate) fn url_with(&self, credentials: &str, options: &str) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(Sentinel::address).collect();
        let hosts = hosts.join(",");
        let recovery = match options {
            _ if options.contains("recovery=") => "",
            "" => "?recovery=off",
            _ => "&recovery=off",
        };
        format!("redis+sentinel://{credentials}{hosts}/{SERVICE}{options}{recovery}")
    }

    /// The server at this port.
    pub(crate) fn server(&self, port: u16) -> &RedisServer {
        let server = self.servers.iter().find(|server| server.port() == port);
        server.expect("one of ours")
    }

    /// The port of the primary, according to a sentinel that runs.
    pub(crate) fn primary(&self) -> u16 {
        let running = self.sentinels.iter().find(|it| it.runs());
        running.expect("a sentinel that runs").primary()
    }

    /// Waits until the replica has what the primary has at `key`.
    pub(crate) fn replicated(&self, key: &str) {
        let value = self.servers[0].command(&["GET", key]);
        eventually("the replica has it, too", || {
            (self.servers[1].command(&["GET", key]) == value).then_some(())
        });
    }

    /// Kills the first server and waits until all sentinels that run name the other.
    pub(crate) fn fail_over(&mut self) {
        self.servers[0].kill();
        self.promoted();
    }

    /// Waits until all sentinels that run name the second server.
    pub(crate) fn promoted(&self) {
        self.named(1);
    }

    /// Waits until all sentinels that run name this server.
    pub(crate) fn named(&self, server: usize) {
        let port = self.servers[server].port();
        for sentinel in self.sentinels.iter().filter(|it| it.runs()) {
            eventually_within(WITH_TILT, "all name the same primary", || {
                (sentinel.primary() == port).then_some(())
            });
        }
    }
}
