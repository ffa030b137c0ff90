//! [`FakeSentinel`]: says whatever a test wants.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

use super::super::redis_server::RedisServer;
use super::SERVICE;

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
    /// Since which configuration; `None`: it does not tell.
    pub(crate) epoch: Option<u64>,
    /// Whether there is a new configuration whenever it is asked for it.
    pub(crate) changing: bool,
    /// Whether it watches over another service.
    pub(crate) unaware: bool,
    /// What it forbids to ask.
    pub(crate) forbids: Option<&'static str>,
}

impl Says {
    /// Names this server.
    pub(crate) fn naming(server: &RedisServer) -> Self {
        Self {
            id: "fake".to_owned(),
            primary: server.port(),
            epoch: Some(0),
            changing: false,
            unaware: false,
            forbids: None,
        }
    }

    fn to(&mut self, command: &str) -> String {
        let port = self.primary.to_string();
        if self.forbids.is_some_and(|it| command.starts_with(it)) {
            "-NOPERM this user has no permissions to run the 'sentinel|master' command\r\n"
                .to_owned()
        } else if self.unaware && command.contains("GET-MASTER-ADDR-BY-NAME") {
            "*-1\r\n".to_owned()
        } else if self.unaware && command.starts_with("SENTINEL MASTER") {
            "-ERR No such master with that name\r\n".to_owned()
        } else if command.contains("MYID") {
            array(&[&self.id])[4..].to_owned()
        } else if command.contains("GET-MASTER-ADDR-BY-NAME") {
            array(&["127.0.0.1", &port])
        } else if command.contains("SUBSCRIBE") {
            "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".to_owned()
        } else if command.contains("MASTER") {
            let mut about = vec!["flags", "master", "num-other-sentinels", "0"];
            self.epoch = self.epoch.map(|it| it + u64::from(self.changing));
            let epoch = self.epoch.map(|epoch| epoch.to_string());
            if let Some(epoch) = &epoch {
                about.extend(["config-epoch", epoch]);
            }
            array(&about)
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

    /// Says something else from now on.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.says.lock().unwrap());
    }

    /// How many listen to what it announces.
    pub(crate) fn listeners(&self) -> usize {
        self.announcements.receiver_count()
    }

    /// Names another server from now on, in a later configuration, and says so to all who listen.
    pub(crate) fn switch(&self, server: &RedisServer) {
        let mut before = 0;
        self.change(|says| {
            before = std::mem::replace(&mut says.primary, server.port());
            says.epoch = says.epoch.map(|epoch| epoch + 1);
        });
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
