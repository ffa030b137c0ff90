//! [`Redis`]: a Redis server that is thrown away with the example.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Outcome;

/// A server of our own, without persistence. Killed when this is dropped.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    process: Child,
}

impl Redis {
    /// Starts `redis-server` on a free port.
    ///
    /// # Errors
    /// If it is not installed, or does not answer within ten seconds.
    pub fn start(folder: &Path) -> Outcome<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]);
        let process = command
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start redis-server: {error}"))?;
        let server = Self { port, process };
        for _ in 0..1000 {
            if TcpStream::connect(server.address()).is_ok() {
                return Ok(server);
            }
            crate::pass_time(Duration::from_millis(10))?;
        }
        Err("redis-server does not answer".into())
    }

    /// How to connect to it. It is new, so nothing has to be waited for.
    pub fn url(&self) -> String {
        format!("redis://{}?recovery=open", self.address())
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
