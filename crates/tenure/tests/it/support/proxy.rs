//! A small TCP proxy between a test and a server: it can cut connections and swallow replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A proxy on a free port; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    swallows: AtomicBool,
    refuses: AtomicBool,
    cut: Notify,
}

impl Proxy {
    /// Passes everything on to `server` ("127.0.0.1:PORT").
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Arc::<State>::default();
        let task = tokio::spawn(serve(listener, server, state.clone()));
        Self { port, state, task }
    }

    /// `redis://127.0.0.1:PORT?recovery=open`, as of the server behind it.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}?recovery=open", self.port)
    }

    /// From now on, requests arrive at the server and its replies do not come back.
    pub(crate) fn swallow_replies(&self, swallows: bool) {
        self.state.swallows.store(swallows, Ordering::SeqCst);
    }

    /// From now on, new connections are closed at once.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.state.refuses.store(refuses, Ordering::SeqCst);
    }

    /// Closes every connection that is open now.
    pub(crate) fn cut(&self) {
        self.state.cut.notify_waiters();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, server: String, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        if state.refuses.load(Ordering::SeqCst) {
            continue;
        }
        let Ok(upstream) = TcpStream::connect(&server).await else {
            continue;
        };
        let state = state.clone();
        tokio::spawn(async move {
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = upstream.into_split();
            tokio::select! {
                () = pass(from_client, to_server, None) => {}
                () = pass(from_server, to_client, Some(&state)) => {}
                () = state.cut.notified() => {}
            }
        });
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, swallowed_by: Option<&State>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let swallows = swallowed_by.is_some_and(|state| state.swallows.load(Ordering::SeqCst));
        if !swallows && to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
