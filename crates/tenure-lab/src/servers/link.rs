//! [`Network`] and [`Link`]: our own TCP proxies, one per way between a client and a server, which can
//! hold, delay, swallow and repeat what passes, cut connections and refuse new ones.
//!
//! They run on a thread of their own, so that whoever breaks things may wait for servers meanwhile.

use std::future::Future;
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::peer::Peer;

/// A thread on which links (and whatever else listens) run. Dropping it ends all of them.
#[derive(Debug)]
pub struct Network {
    handle: Handle,
    _ends: oneshot::Sender<()>,
}

impl Network {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let (sender, ends) = oneshot::channel();
        std::thread::Builder::new()
            .name("network".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(ends);
            })?;
        Ok(Self {
            handle,
            _ends: sender,
        })
    }

    /// Runs this in the background.
    pub fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// A proxy to the server on this port; 0 if it is not there yet.
    ///
    /// # Errors
    /// There is no free port.
    pub fn link(&self, server: u16) -> io::Result<Link> {
        let listener = StdListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let state = Arc::<State>::default();
        state.target.store(server, Ordering::SeqCst);
        let shared = state.clone();
        self.run(async move {
            if let Ok(listener) = TcpListener::from_std(listener) {
                serve(listener, port, shared).await;
            }
        });
        Ok(Link { port, state })
    }
}

/// One proxy.
#[derive(Debug)]
pub struct Link {
    port: u16,
    state: Arc<State>,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
    /// Both.
    Both,
}

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Flow {
    #[default]
    Passes,
    /// They wait, and nobody is told.
    Waits,
}

/// Which processes reach the server behind a link. What others send waits, and so do the answers.
#[derive(Clone, Debug, Default)]
pub enum Divide {
    /// All of them.
    #[default]
    Nobody,
    /// Not these.
    These(Vec<u32>),
    /// Only these.
    AllBut(Vec<u32>),
}

impl Divide {
    fn cuts_off(&self, process: Option<u32>) -> bool {
        let is_in = |these: &[u32]| process.is_some_and(|process| these.contains(&process));
        match self {
            Self::Nobody => false,
            Self::These(these) => is_in(these),
            Self::AllBut(these) => !is_in(these),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The server's port.
    target: AtomicU16,
    requests: Lane,
    replies: Lane,
    divide: watch::Sender<Divide>,
    refuses: AtomicBool,
    /// Counts the cuts.
    cut: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Lane {
    flow: watch::Sender<Flow>,
    swallows: AtomicU32,
    repeats: AtomicU32,
}

impl Link {
    /// Where clients connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where new connections lead to.
    pub fn lead_to(&self, server: u16) {
        self.state.target.store(server, Ordering::SeqCst);
    }

    /// From now on nothing passes this way; connections stay open and nobody is told.
    pub fn hold(&self, way: Way) {
        self.each(way, |lane| {
            lane.flow.send_replace(Flow::Waits);
        });
    }

    /// What waited is delivered now, and everything passes again.
    pub fn pass(&self) {
        self.each(Way::Both, |lane| {
            lane.flow.send_replace(Flow::Passes);
        });
    }

    /// From now on these processes are cut off from the server, whatever else is held or passes; nobody is
    /// told. What waited meanwhile is delivered as soon as they are not any more.
    pub fn divide(&self, divide: Divide) {
        self.state.divide.send_replace(divide);
    }

    /// The next thing that comes this way disappears, unless it is between servers: nobody promises to
    /// bear that what TCP delivered among them is not what was sent.
    pub fn swallow(&self, way: Way) {
        self.each(way, |lane| lane.swallows.store(1, Ordering::SeqCst));
    }

    /// The next thing that comes this way comes twice, unless it is between servers.
    pub fn repeat(&self, way: Way) {
        self.each(way, |lane| lane.repeats.store(1, Ordering::SeqCst));
    }

    /// Ends all connections; what waits in them is gone.
    pub fn cut(&self) {
        self.state.cut.send_modify(|count| *count += 1);
    }

    /// Whether new connections are refused.
    pub fn refuse(&self, refuses: bool) {
        self.state.refuses.store(refuses, Ordering::SeqCst);
    }

    fn each(&self, way: Way, act: impl Fn(&Lane)) {
        if way != Way::Replies {
            act(&self.state.requests);
        }
        if way != Way::Requests {
            act(&self.state.replies);
        }
    }
}

async fn serve(listener: TcpListener, port: u16, state: Arc<State>) {
    while let Ok((client, address)) = listener.accept().await {
        if state.refuses.load(Ordering::SeqCst) {
            continue;
        }
        let state = state.clone();
        let peer = Peer::behind(address.port(), port);
        tokio::spawn(async move {
            let target = state.target.load(Ordering::SeqCst);
            let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else {
                return;
            };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let mut cut = state.cut.subscribe();
            cut.mark_unchanged();
            tokio::select! {
                () = pump(from_client, to_server, &state, &state.requests, peer) => {}
                () = pump(from_server, to_client, &state, &state.replies, peer) => {}
                _ = cut.changed() => {}
            }
        });
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    lane: &Lane,
    peer: Option<Peer>,
) {
    let mut buffer = vec![0; 64 * 1024];
    let process = peer.map(|peer| peer.process);
    let is_server = peer.is_some_and(|peer| peer.is_server);
    let (mut divide, mut flow) = (state.divide.subscribe(), lane.flow.subscribe());
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let joined = divide.wait_for(|divide| !divide.cuts_off(process));
        if joined.await.is_err() {
            return;
        }
        if flow.wait_for(|flow| *flow == Flow::Passes).await.is_err() {
            return;
        }
        let take = |count: &AtomicU32| match is_server {
            true => 0,
            false => count.swap(0, Ordering::SeqCst),
        };
        if take(&lane.swallows) > 0 {
            continue;
        }
        let times = 1 + take(&lane.repeats);
        for _ in 0..times {
            if to.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    }
}
