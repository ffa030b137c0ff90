//! [`Sentinel`]: a real one, in a folder of its own.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::super::redis_server::{RedisServer, Session, free_port};
use super::super::wait::eventually;
use super::{Passwords, SERVICE};

/// A sentinel that has stood still for two seconds trusts nothing that it has seen, and does nothing for half a minute
/// ("tilt").
pub(crate) const WITH_TILT: Duration = Duration::from_secs(60);

/// How soon a sentinel acts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Temper {
    /// A primary that is silent for this long is down.
    pub(crate) patience: Duration,
    pub(crate) failover_timeout: Duration,
}

impl Temper {
    /// Less would happen by itself on a busy machine.
    pub(crate) const ALERT: Self = Self {
        patience: Duration::from_secs(2),
        failover_timeout: Duration::from_secs(2),
    };

    /// No primary is missed in any test.
    pub(crate) const CALM: Self = Self {
        patience: Duration::from_secs(600),
        ..Self::ALERT
    };
}

/// One running sentinel. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Sentinel {
    folder: tempfile::TempDir,
    port: u16,
    password: String,
    process: Option<Child>,
}

impl Sentinel {
    /// Watches over `primary` and never fails over.
    pub(crate) fn start(primary: &RedisServer) -> Self {
        Self::launch(primary, Temper::CALM, None)
    }

    /// Speaks TLS only, with these settings, and watches over a server that does.
    pub(crate) fn start_encrypted(primary: &RedisServer, settings: &str) -> Self {
        let settings = move |port| format!("port 0\ntls-port {port}\n{settings}");
        Self::launch_with(primary.tls_port(), Temper::CALM, None, &settings)
    }

    pub(super) fn launch(
        primary: &RedisServer,
        temper: Temper,
        passwords: Option<&Passwords>,
    ) -> Self {
        let settings = |port| format!("port {port}\n");
        Self::launch_with(primary.port(), temper, passwords, &settings)
    }

    pub(super) fn launch_with(
        primary: u16,
        temper: Temper,
        passwords: Option<&Passwords>,
        settings: &dyn Fn(u16) -> String,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for _ in 0..10 {
            let port = free_port();
            let mut settings = settings(port)
                + &format!(
                    "bind 127.0.0.1\nlogfile {folder}/log\ndir {folder}\n\
                 sentinel monitor {SERVICE} 127.0.0.1 {primary} 2\n\
                 sentinel down-after-milliseconds {SERVICE} {patience}\n\
                 sentinel failover-timeout {SERVICE} {timeout}\n",
                    folder = folder.path().display(),
                    patience = temper.patience.as_millis(),
                    timeout = temper.failover_timeout.as_millis(),
                );
            if let Some(passwords) = passwords {
                settings += &format!(
                    "requirepass {}\nsentinel auth-pass {SERVICE} {}\n",
                    passwords.sentinels, passwords.servers
                );
            }
            let file = folder.path().join("sentinel.conf");
            std::fs::write(&file, settings).expect("a file of ours");
            let mut process = Command::new("redis-server")
                .arg(&file)
                .arg("--sentinel")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("redis-server is installed (Debian: apt-get install redis-server)");
            // Somebody else may take the port between our look and its start.
            let serves = eventually("the sentinel answers or exits", || {
                if process.try_wait().expect("a child of ours").is_some() {
                    return Some(false);
                }
                Session::open(port).is_ok().then_some(true)
            });
            if serves {
                return Self {
                    folder,
                    port,
                    password: passwords.map_or("", |it| it.sentinels).to_owned(),
                    process: Some(process),
                };
            }
        }
        panic!("no sentinel starts");
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends one command; see `RedisServer::command`.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let mut session = Session::open(self.port).expect("the sentinel listens");
        if !self.password.is_empty() {
            session.command(&["AUTH", &self.password]);
        }
        session.command(words)
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// SIGSTOP: connections stay open and nothing answers.
    pub(crate) fn stop(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// [`resume`](Self::resume), of one that runs.
    pub(crate) fn resume_if_stopped(&self) {
        if self.process.is_some() {
            self.resume();
        }
    }

    /// Waits until it knows the replica and the others.
    pub(super) fn knows_all(&self) {
        eventually("the sentinels know the replica and each other", || {
            let about = self.about();
            let says = |key: &str, value: &str| about.contains(&format!("\n{key}\n{value}\n"));
            (says("num-slaves", "1") && says("num-other-sentinels", "2")).then_some(())
        });
    }

    /// Whether it was not killed.
    pub(super) fn runs(&self) -> bool {
        self.process.is_some()
    }

    /// What it wrote to its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn about(&self) -> String {
        self.command(&["SENTINEL", "MASTER", SERVICE])
    }

    pub(super) fn primary(&self) -> u16 {
        let said = self.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]);
        let port = said.lines().nth(1).and_then(|port| port.parse().ok());
        port.unwrap_or_else(|| panic!("not an address: {said}"))
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let process = self.process.as_ref().expect("it runs");
        let pid = rustix::process::Pid::from_child(process);
        rustix::process::kill_process(pid, signal).expect("a child of ours");
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.kill();
    }
}
