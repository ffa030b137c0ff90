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
        // Somebody else may take the port between our look and the server's start.
        for _ in 0..10 {
            if let Some(server) = Self::try_start(folder)? {
                return Ok(server);
            }
        }
        Err("redis-server does not start".into())
    }

    /// `None` if it ended at once.
    fn try_start(folder: &Path) -> Outcome<Option<Self>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // It makes this when it has got its port: before that, somebody else may answer there.
        let socket = folder.join(format!("redis-{port}.sock"));
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]);
        command.arg(folder).arg("--unixsocket").arg(&socket);
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start redis-server: {error}"))?;
        let mut server = Self { port, process };
        for _ in 0..1000 {
            if server.process.try_wait()?.is_some() {
                return Ok(None);
            }
            if socket.exists() && TcpStream::connect(server.address()).is_ok() {
                return Ok(Some(server));
            }
            crate::pass_time(Duration::from_millis(10))?;
        }
        Err("redis-server does not answer".into())
    }

    /// How to connect to it. It is new, so nothing has to be waited for. A call may last: the machine is busy, not the
    /// server down.
    pub fn url(&self) -> String {
        format!("redis://{}?recovery=open&call_timeout=20s", self.address())
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
