//! [`Sentinel`]: a real sentinel of our own, gone when it is dropped.

use std::io;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::port::free_port;
use super::session::{Answer, Session};
use super::wait::{PATIENCE, until};
use crate::program::Program;

/// One running sentinel, which begins a failover two seconds after the primary fell silent.
#[derive(Debug)]
pub struct Sentinel {
    _folder: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Sentinel {
    /// What sentinels call the service.
    pub const SERVICE: &str = "locks";

    /// Watches over the primary on this port, with two others.
    ///
    /// # Errors
    /// There is no redis-server, or it does not start.
    pub fn start(program: &Program, primary: u16) -> io::Result<Self> {
        for _ in 0..5 {
            if let Some(sentinel) = Self::try_start(program, primary)? {
                return Ok(sentinel);
            }
        }
        Err(io::Error::other("no sentinel starts"))
    }

    /// `None` if somebody else took its port.
    fn try_start(program: &Program, primary: u16) -> io::Result<Option<Self>> {
        let folder = tempfile::Builder::new().prefix("tenure-lab-").tempdir()?;
        let port = free_port()?;
        let service = Self::SERVICE;
        let path = folder.path().display();
        let settings = format!(
            "port {port}\nbind 127.0.0.1\nlogfile {path}/log\ndir {path}\n\
             sentinel monitor {service} 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds {service} 2000\n\
             sentinel failover-timeout {service} 3000\n"
        );
        let file = folder.path().join("sentinel.conf");
        std::fs::write(&file, settings)?;
        let mut command = program.mortal("redis-server");
        command.arg(&file).arg("--sentinel");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut sentinel = Self {
            _folder: folder,
            port,
            process: command.spawn()?,
        };
        let lives = until(PATIENCE, || match sentinel.process.try_wait() {
            Ok(None) => sentinel.command(&["PING"]).is_ok().then_some(true),
            _ => Some(false),
        });
        Ok((lives == Some(true)).then_some(sentinel))
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends one command.
    ///
    /// # Errors
    /// It hangs or is down.
    pub fn command(&self, words: &[&str]) -> io::Result<Answer> {
        Session::open(self.port, Duration::from_secs(5))?.call(words)
    }

    /// Whether it knows a replica and the two other sentinels.
    #[must_use]
    pub fn knows_all(&self) -> bool {
        let about = self.command(&["SENTINEL", "MASTER", Self::SERVICE]);
        let about = about.map(|answer| answer.text()).unwrap_or_default();
        about.contains("\nnum-slaves\n1\n") && about.contains("\nnum-other-sentinels\n2\n")
    }

    /// The port of the primary.
    #[must_use]
    pub fn primary(&self) -> Option<u16> {
        let said = self.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::SERVICE]);
        said.ok()?.text().lines().nth(1)?.parse().ok()
    }

    /// SIGSTOP.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.process), signal);
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
