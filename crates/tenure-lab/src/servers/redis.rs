//! [`RedisServer`]: a real redis-server of our own, gone when it is dropped.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::port::free_port;
use super::session::{Answer, Session};
use super::wait::{PATIENCE, until};
use crate::program::Program;

/// A redis-server on a free port in a folder of its own. Dropping it kills the server and removes its
/// data; it also dies with the thread that started it.
#[derive(Debug)]
pub struct RedisServer {
    program: Program,
    folder: tempfile::TempDir,
    port: u16,
    arguments: Vec<String>,
    environment: Vec<(OsString, OsString)>,
    process: Option<Child>,
}

impl RedisServer {
    /// A server without persistence, with further arguments: `["--appendonly", "yes"]`.
    ///
    /// # Errors
    /// There is no redis-server, or it does not start; the message says what it logged.
    pub fn start(program: &Program, arguments: &[&str]) -> io::Result<Self> {
        Self::start_in(program, arguments, Vec::new())
    }

    /// The same with environment variables, such as `LD_PRELOAD`.
    ///
    /// # Errors
    /// As above.
    pub fn start_in(
        program: &Program,
        arguments: &[&str],
        environment: Vec<(OsString, OsString)>,
    ) -> io::Result<Self> {
        let mut server = Self {
            program: program.clone(),
            folder: tempfile::Builder::new().prefix("tenure-lab-").tempdir()?,
            port: free_port()?,
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment,
            process: None,
        };
        // Somebody else may take the port between our look and the server's start.
        for _ in 0..5 {
            if server.launch()? {
                return Ok(server);
            }
            server.port = free_port()?;
        }
        Err(io::Error::other(format!(
            "redis-server does not start\n{}",
            server.log()
        )))
    }

    /// Whether there is such a program at all, before anything is begun.
    ///
    /// # Errors
    /// There is none; the message says how to install it.
    pub fn is_installed() -> io::Result<()> {
        let mut version = Command::new("redis-server");
        version.arg("--version");
        version
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        version.status().map(drop).map_err(|error| {
            io::Error::other(format!(
                "redis-server cannot be started ({error}), and the lab breaks real servers: install it \
                 (Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis)"
            ))
        })
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Where it keeps its data and its log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// SIGKILL: nothing is saved that was not saved before.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Kills it and starts it again on the same port, with whatever it had saved (by default nothing).
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill();
        if self.launch()? {
            return Ok(());
        }
        let log = self.log();
        Err(io::Error::other(format!(
            "redis-server does not restart\n{log}"
        )))
    }

    /// SIGSTOP: connections stay open and nothing answers.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Sends one command on a connection of its own.
    ///
    /// # Errors
    /// The server is down or hangs.
    pub fn command(&self, words: &[&str]) -> io::Result<Answer> {
        Session::open(self.port, Duration::from_secs(5))?.call(words)
    }

    fn launch(&mut self) -> io::Result<bool> {
        let mut command = self.program.mortal("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string()]);
        command.args(["--save", "", "--appendonly", "no"]);
        // Older servers open the log before they change to the folder.
        command.arg("--logfile").arg(self.folder.path().join("log"));
        command.arg("--dir").arg(self.folder.path());
        command.args(&self.arguments);
        command.envs(self.environment.iter().cloned());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.process = Some(command.spawn()?);
        let lives = until(PATIENCE, || match self.process.as_mut()?.try_wait() {
            Ok(None) => self.answers().then_some(true),
            _ => Some(false),
        });
        if lives != Some(true) {
            self.kill();
        }
        Ok(lives == Some(true))
    }

    /// Whether it serves: any answer but LOADING.
    fn answers(&self) -> bool {
        let answer = self.command(&["PING"]);
        answer.is_ok_and(|answer| !answer.text().starts_with("LOADING"))
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            // It may have died meanwhile, which whoever looks at it will see.
            let _ = kill_process(Pid::from_child(process), signal);
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
