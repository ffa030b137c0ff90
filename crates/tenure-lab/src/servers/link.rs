//! [`Network`] and [`Link`]: our own TCP proxies, one per way between a client and a server, which can
//! hold, delay, swallow and repeat what passes, cut connections and refuse new ones.
//!
//! They run on a thread of their own, so that whoever breaks things may wait for servers meanwhile.

use std::future::Future;
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

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

    /// A proxy to the server on this port.
    ///
    /// # Errors
    /// There is no free port.
    pub fn link(&self, server: u16) -> io::Result<Link> {
        let listener = StdListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let state = Arc::<State>::default();
        let shared = state.clone();
        self.run(async move {
            if let Ok(listener) = TcpListener::from_std(listener) {
                serve(listener, server, shared).await;
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

#[derive(Debug, Default)]
struct State {
    requests: Lane,
    replies: Lane,
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

    /// The next thing that comes this way disappears.
    pub fn swallow(&self, way: Way) {
        self.each(way, |lane| lane.swallows.store(1, Ordering::SeqCst));
    }

    /// The next thing that comes this way comes twice.
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

async fn serve(listener: TcpListener, server: u16, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        if state.refuses.load(Ordering::SeqCst) {
            continue;
        }
        let state = state.clone();
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
                return;
            };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let mut cut = state.cut.subscribe();
            cut.mark_unchanged();
            tokio::select! {
                () = pump(from_client, to_server, &state.requests) => {}
                () = pump(from_server, to_client, &state.replies) => {}
                _ = cut.changed() => {}
            }
        });
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, lane: &Lane) {
    let mut buffer = vec![0; 64 * 1024];
    let mut flow = lane.flow.subscribe();
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if flow.wait_for(|flow| *flow == Flow::Passes).await.is_err() {
            return;
        }
        if lane.swallows.swap(0, Ordering::SeqCst) > 0 {
            continue;
        }
        let times = 1 + lane.repeats.swap(0, Ordering::SeqCst);
        for _ in 0..times {
            if to.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    }
}
