//! A real redis-server on a free port in a folder of its own, gone when the test ends.
//!
//! Needs nothing but std, `tempfile`, `rustix` and `port.rs`, so that other crates' tests can include this
//! file by path.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::wait::eventually;

/// A running redis-server. Dropping it kills the server and removes its data.
#[derive(Debug)]
pub(crate) struct RedisServer {
    folder: tempfile::TempDir,
    port: u16,
    tls_port: Option<u16>,
    arguments: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
    process: Option<Child>,
}

impl RedisServer {
    /// A server without persistence.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with further arguments, for example `["--maxmemory", "2mb"]`. Without any there is
    /// no persistence.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::launched(arguments, None, Vec::new())
    }

    /// A server with environment variables, such as `LD_PRELOAD`.
    pub(crate) fn start_in(environment: Vec<(&'static str, PathBuf)>) -> Self {
        Self::launched(&[], None, environment)
    }

    /// A server that also speaks TLS, on [a port of its own](Self::tls_url).
    pub(crate) fn start_encrypted(arguments: &[&str]) -> Self {
        Self::launched(arguments, Some(free_port()), Vec::new())
    }

    fn launched(
        arguments: &[&str],
        tls_port: Option<u16>,
        environment: Vec<(&'static str, PathBuf)>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let mut server = Self {
            folder,
            port: free_port(),
            tls_port,
            arguments,
            environment,
            process: None,
        };
        // Somebody else may take the port between our look and the server's start.
        for _ in 0..10 {
            if server.launch() {
                return server;
            }
            server.port = free_port();
            server.tls_port = tls_port.map(|_| free_port());
        }
        panic!("redis-server does not start: {}", server.log());
    }

    /// The port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://127.0.0.1:PORT?recovery=open`: a server of ours is known to be new. Further options
    /// begin with `&`.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}?recovery=open", self.address())
    }

    /// `rediss://localhost:PORT?recovery=open`.
    pub(crate) fn tls_url(&self) -> String {
        format!("rediss://localhost:{}?recovery=open", self.tls_port())
    }

    /// The port on which it speaks TLS.
    pub(crate) fn tls_port(&self) -> u16 {
        self.tls_port.expect("started with `start_encrypted`")
    }

    /// The Unix socket that the server listens on too.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// Where the server keeps its data and log.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// What the server wrote to its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// SIGKILL: nothing is saved that was not saved before.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts a killed server again on the same port, with whatever data it had saved.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.launch(), "redis-server restarts: {}", self.log());
    }

    /// Starts a killed server again with further arguments, and does not wait until it serves.
    pub(crate) fn restart_without_waiting(&mut self, arguments: &[&str]) {
        self.kill();
        self.arguments
            .extend(arguments.iter().map(ToString::to_string));
        self.spawn();
    }

    /// SIGSTOP: connections stay open and nothing answers.
    pub(crate) fn stop(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// Sends one command on a connection of its own and gives the reply as text: arrays one
    /// element per line, nil as `(nil)`, errors as `-ERR …`.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        self.session().command(words)
    }

    /// A connection of its own, for several commands (SELECT, AUTH, MULTI …).
    pub(crate) fn session(&self) -> Session {
        Session::open(self.port).expect("a connection to the test's own redis-server")
    }

    /// Whether a client of ours is subscribed to its inbox here.
    pub(crate) fn is_used(&self) -> bool {
        let channels = self.command(&["PUBSUB", "CHANNELS", "tenure:in:*"]);
        !channels.trim().is_empty()
    }

    fn spawn(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string()]);
        command.args(["--unixsocket", &self.socket().display().to_string()]);
        command.args(["--save", "", "--appendonly", "no"]);
        // Older servers open the log before they change to the folder.
        command.arg("--logfile").arg(self.folder.path().join("log"));
        command.arg("--dir").arg(self.folder.path());
        if let Some(port) = self.tls_port {
            command.args(["--tls-port", &port.to_string()]);
        }
        command.args(&self.arguments);
        command.envs(self.environment.clone());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed (Debian: apt-get install redis-server)");
        self.process = Some(process);
    }

    fn launch(&mut self) -> bool {
        self.spawn();
        eventually("redis-server answers or exits", || {
            let child = self.process.as_mut().expect("set above");
            if child.try_wait().expect("a child of ours").is_some() {
                self.process = None;
                return Some(false);
            }
            self.answers().then_some(true)
        })
    }

    /// Whether it serves: any answer but LOADING (a password may be needed, which is fine). It makes its socket when it
    /// has got its port: before that, somebody else may answer there.
    fn answers(&self) -> bool {
        self.socket().exists()
            && Session::open(self.port).is_ok_and(|mut session| {
                let answer = session.try_command(&["PING"]).unwrap_or_default();
                !answer.is_empty() && !answer.starts_with("-LOADING")
            })
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let process = self.process.as_ref().expect("the server runs");
        let pid = rustix::process::Pid::from_child(process);
        rustix::process::kill_process(pid, signal).expect("a child of ours");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One connection to a server, for what the test itself wants to say.
#[derive(Debug)]
pub(crate) struct Session(BufReader<TcpStream>);

impl Session {
    pub(super) fn open(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends one command; see [`RedisServer::command`].
    pub(crate) fn command(&mut self, words: &[&str]) -> String {
        self.try_command(words).expect("the server answers")
    }

    pub(crate) fn try_command(&mut self, words: &[&str]) -> std::io::Result<String> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            let _ = write!(text, "${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(text.as_bytes())?;
        self.reply()
    }

    fn reply(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.trim_end();
        let (Some(kind), Some(rest)) = (line.get(..1), line.get(1..)) else {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        };
        let length = rest.parse::<i64>().unwrap_or(-1);
        match kind {
            "$" | "*" if length < 0 => Ok("(nil)".to_owned()),
            "$" => {
                let mut bytes = vec![0; usize::try_from(length).unwrap_or(0) + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            "*" => {
                let elements: Result<Vec<_>, _> = (0..length).map(|_| self.reply()).collect();
                Ok(elements?.join("\n"))
            }
            "-" => Ok(line.to_owned()),
            _ => Ok(rest.to_owned()),
        }
    }
}

pub(super) fn free_port() -> u16 {
    super::port::free_port().expect("a free port")
}

#[test]
fn a_server_keeps_its_port_and_its_appended_data_across_a_restart() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    assert_eq!(server.command(&["SET", "key", "value"]), "OK");
    server.kill();
    server.restart();
    assert_eq!(server.command(&["GET", "key"]), "value");
    server.stop();
    server.resume();
    assert_eq!(server.command(&["GET", "missing"]), "(nil)");
}
