//! Real sentinels over real servers: a primary and a replica, watched by three of them.

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

use super::redis_server::{RedisServer, Session, free_port};
use super::wait::eventually;

/// What the sentinels call the service.
pub(crate) const SERVICE: &str = "locks";

/// A primary that is silent for this long is not missed in any test.
const CALM: Duration = Duration::from_secs(600);

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
        Self::launched(Duration::from_secs(2), None)
    }

    /// The same without failovers.
    pub(crate) fn start_calm() -> Self {
        Self::launched(CALM, None)
    }

    /// The same with passwords.
    pub(crate) fn start_protected(passwords: &Passwords) -> Self {
        Self::launched(CALM, Some(passwords))
    }

    fn launched(patience: Duration, passwords: Option<&Passwords>) -> Self {
        let password = passwords.map_or("", |passwords| passwords.servers);
        let mut arguments = vec!["--repl-diskless-sync-delay", "0"];
        if !password.is_empty() {
            arguments.extend(["--requirepass", password, "--masterauth", password]);
        }
        let primary = RedisServer::start_with(&arguments);
        let port = primary.port().to_string();
        arguments.extend(["--replicaof", "127.0.0.1", &port]);
        let replica = RedisServer::start_with(&arguments);
        let sentinels = (0..3).map(|_| Sentinel::launch(&primary, patience, passwords));
        let watched = Self {
            sentinels: sentinels.collect(),
            servers: vec![primary, replica],
        };
        for sentinel in &watched.sentinels {
            eventually("the sentinels know the replica and each other", || {
                let about = sentinel.about();
                let says = |key: &str, value: &str| about.contains(&format!("\n{key}\n{value}\n"));
                (says("num-slaves", "1") && says("num-other-sentinels", "2")).then_some(())
            });
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
        let running = self.sentinels.iter().find(|it| it.process.is_some());
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
        let promoted = self.servers[1].port();
        for sentinel in self.sentinels.iter().filter(|it| it.process.is_some()) {
            eventually("the replica is the primary", || {
                (sentinel.primary() == promoted).then_some(())
            });
        }
    }
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
        Self::launch(primary, CALM, None)
    }

    /// Speaks TLS only, with these settings, and watches over a server that does.
    pub(crate) fn start_encrypted(primary: &RedisServer, settings: &str) -> Self {
        let settings = move |port| format!("port 0\ntls-port {port}\n{settings}");
        Self::launch_with(primary.tls_port(), CALM, None, &settings)
    }

    fn launch(primary: &RedisServer, patience: Duration, passwords: Option<&Passwords>) -> Self {
        let settings = |port| format!("port {port}\n");
        Self::launch_with(primary.port(), patience, passwords, &settings)
    }

    fn launch_with(
        primary: u16,
        patience: Duration,
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
                 sentinel failover-timeout {SERVICE} 2000\n",
                    folder = folder.path().display(),
                    patience = patience.as_millis(),
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

    fn about(&self) -> String {
        self.command(&["SENTINEL", "MASTER", SERVICE])
    }

    fn primary(&self) -> u16 {
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

/// Something that answers like a sentinel, with whatever a test wants it to say.
#[derive(Debug)]
pub(crate) struct FakeSentinel {
    port: u16,
    says: Arc<Mutex<Says>>,
    announcements: broadcast::Sender<String>,
    task: tokio::task::JoinHandle<()>,
}

/// What a [`FakeSentinel`] says.
#[derive(Clone, Debug)]
pub(crate) struct Says {
    pub(crate) id: String,
    pub(crate) primary: u16,
    pub(crate) vote_epoch: u64,
    pub(crate) config_epoch: u64,
    pub(crate) failover_timeout: Duration,
}

impl Says {
    /// Names this server and has never voted.
    pub(crate) fn naming(server: &RedisServer) -> Self {
        Self {
            id: "fake".to_owned(),
            primary: server.port(),
            vote_epoch: 0,
            config_epoch: 0,
            failover_timeout: Duration::from_secs(180),
        }
    }

    fn to(&self, command: &str) -> String {
        let port = self.primary.to_string();
        if command.contains("MYID") {
            array(&[&self.id])[4..].to_owned()
        } else if command.contains("GET-MASTER-ADDR-BY-NAME") {
            array(&["127.0.0.1", &port])
        } else if command.contains("IS-MASTER-DOWN-BY-ADDR") {
            format!("*3\r\n:0\r\n$1\r\n*\r\n:{}\r\n", self.vote_epoch)
        } else if command.contains("SUBSCRIBE") {
            "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".to_owned()
        } else if command.contains("MASTER") {
            array(&[
                "config-epoch",
                &self.config_epoch.to_string(),
                "failover-timeout",
                &self.failover_timeout.as_millis().to_string(),
                "num-other-sentinels",
                "0",
            ])
        } else {
            "+OK\r\n".to_owned()
        }
    }
}

fn array(texts: &[&str]) -> String {
    let mut answer = format!("*{}\r\n", texts.len());
    for text in texts {
        answer += &format!("${}\r\n{text}\r\n", text.len());
    }
    answer
}

impl FakeSentinel {
    pub(crate) async fn start(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let says = Arc::new(Mutex::new(says));
        let (announcements, _) = broadcast::channel(4);
        let (shared, sender) = (says.clone(), announcements.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer_all(stream, shared.clone(), sender.subscribe()));
            }
        });
        Self {
            port,
            says,
            announcements,
            task,
        }
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How many listen to what it announces.
    pub(crate) fn listeners(&self) -> usize {
        self.announcements.receiver_count()
    }

    /// Names another server from now on, and says so to all who listen.
    pub(crate) fn switch(&self, server: &RedisServer) {
        let before = std::mem::replace(&mut self.says.lock().unwrap().primary, server.port());
        let port = server.port();
        let text = format!("{SERVICE} 127.0.0.1 {before} 127.0.0.1 {port}");
        let message = array(&["message", "+switch-master", &text]);
        let _ = self.announcements.send(message);
    }
}

impl Drop for FakeSentinel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer_all(
    stream: TcpStream,
    says: Arc<Mutex<Says>>,
    mut announcements: broadcast::Receiver<String>,
) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(head) = lines.next_line().await? {
        let words: usize = head.trim_start_matches('*').parse().unwrap_or(0);
        let mut command = String::new();
        for _ in 0..words {
            lines.next_line().await?;
            command += &lines.next_line().await?.unwrap_or_default();
            command.push(' ');
        }
        let answer = says.lock().unwrap().to(&command);
        writer.write_all(answer.as_bytes()).await?;
        if command.contains("SUBSCRIBE") {
            while let Ok(message) = announcements.recv().await {
                writer.write_all(message.as_bytes()).await?;
            }
        }
    }
    Ok(())
}
