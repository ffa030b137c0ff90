//! A small TCP proxy between a test and a server: it can cut connections, swallow replies, delay requests and
//! lead somewhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

use super::wait::real_time;

/// A proxy on a free port; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Where it leads.
    server: watch::Sender<String>,
    /// Told when connections that are open are to lead somewhere else, too.
    moved: Notify,
    swallows: AtomicBool,
    swallowed: AtomicU64,
    /// How long a reply is on its way, in milliseconds.
    away: AtomicU64,
    refuses: AtomicBool,
    cut: Notify,
    opened: AtomicU64,
    /// What comes from connections older than this one waits.
    parked: watch::Sender<u64>,
    /// Something does.
    waits: AtomicBool,
}

impl Proxy {
    /// Passes everything on to `server` ("127.0.0.1:PORT").
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Arc::<State>::default();
        state.server.send_replace(server);
        let task = tokio::spawn(serve(listener, state.clone()));
        Self { port, state, task }
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From now on, new connections lead to `server`.
    pub(crate) fn redirect(&self, server: String) {
        self.state.server.send_replace(server);
    }

    /// From now on, connections that are open lead there as well, and nobody is told.
    pub(crate) fn redirect_open(&self, server: String) {
        self.redirect(server);
        self.state.moved.notify_waiters();
    }

    /// `redis://127.0.0.1:PORT?recovery=open`, as of the server behind it.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}?recovery=open", self.port)
    }

    /// From now on, requests arrive at the server and its replies do not come back.
    pub(crate) fn swallow_replies(&self, swallows: bool) {
        self.state.swallows.store(swallows, Ordering::SeqCst);
    }

    /// How often replies were swallowed.
    pub(crate) fn swallowed(&self) -> u64 {
        self.state.swallowed.load(Ordering::SeqCst)
    }

    /// From now on, every reply takes that long.
    pub(crate) fn delay_replies(&self, millis: u64) {
        self.state.away.store(millis, Ordering::SeqCst);
    }

    /// From now on, new connections are closed at once.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.state.refuses.store(refuses, Ordering::SeqCst);
    }

    /// From now on, what is sent on connections that are open now waits, even if they are closed.
    pub(crate) fn park(&self) {
        let opened = self.state.opened.load(Ordering::SeqCst);
        self.state.parked.send_replace(opened);
    }

    /// Whether something waits since then.
    pub(crate) fn has_parked(&self) -> bool {
        self.state.waits.load(Ordering::SeqCst)
    }

    /// What waits arrives at the server.
    pub(crate) fn unpark(&self) {
        self.state.parked.send_replace(0);
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

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        if state.refuses.load(Ordering::SeqCst) {
            continue;
        }
        let number = state.opened.fetch_add(1, Ordering::SeqCst);
        let state = state.clone();
        tokio::spawn(async move {
            let (mut from_client, mut to_client) = client.into_split();
            loop {
                let server = state.server.borrow().clone();
                let Ok(upstream) = TcpStream::connect(&server).await else {
                    return;
                };
                let (from_server, to_server) = upstream.into_split();
                tokio::select! {
                    () = requests(&mut from_client, to_server, &state, number) => return,
                    () = replies(from_server, &mut to_client, &state) => return,
                    () = state.cut.notified() => return,
                    () = state.moved.notified() => {}
                }
            }
        });
    }
}

async fn requests(from: &mut OwnedReadHalf, mut to: OwnedWriteHalf, state: &State, number: u64) {
    let mut buffer = vec![0; 64 * 1024];
    let mut parked = state.parked.subscribe();
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if number < *parked.borrow() {
            state.waits.store(true, Ordering::SeqCst);
        }
        let unparked = parked.wait_for(|before| number >= *before).await.is_ok();
        if !unparked || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

async fn replies(mut from: OwnedReadHalf, to: &mut OwnedWriteHalf, state: &State) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let away = state.away.load(Ordering::SeqCst);
        if away > 0 {
            real_time(Duration::from_millis(away)).await;
        }
        let swallows = state.swallows.load(Ordering::SeqCst);
        if swallows {
            state.swallowed.fetch_add(1, Ordering::SeqCst);
        } else if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
