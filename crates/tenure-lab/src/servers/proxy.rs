//! [`Proxy`]: the network between a client and a server. It can delay what the client says, cut
//! connections, refuse new ones, and lead to another server.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A proxy on a free port of this machine. Dropping it cuts everything.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    target: u16,
    opened: u64,
    /// What comes from connections before this one waits.
    held_back: u64,
    /// Something does wait.
    waits: bool,
    refuses: bool,
    ended: bool,
    streams: Vec<TcpStream>,
}

impl Proxy {
    /// Leads to a server on this machine.
    ///
    /// # Errors
    /// The system has no port left.
    pub fn to(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let own = listener.local_addr()?.port();
        let shared = Arc::<Shared>::default();
        shared.state().target = port;
        let serving = shared.clone();
        std::thread::spawn(move || serve(&listener, &serving));
        Ok(Self { port: own, shared })
    }

    /// Where clients connect.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on what is sent on connections that are open now waits, even if they are closed.
    pub fn hold_back(&self) {
        let mut state = self.shared.state();
        state.held_back = state.opened;
    }

    /// Whether something waits since then.
    #[must_use]
    pub fn has_held_back(&self) -> bool {
        self.shared.state().waits
    }

    /// What waits arrives at the server.
    pub fn deliver(&self) {
        self.shared.state().held_back = 0;
        self.shared.changed.notify_all();
    }

    /// Closes every connection that is open now.
    pub fn cut(&self) {
        for stream in self.shared.state().streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// From now on new connections are closed at once, or no longer.
    pub fn refuse(&self, refuses: bool) {
        self.shared.state().refuses = refuses;
    }

    /// From now on new connections lead to another server; those that are open are cut.
    pub fn lead_to(&self, port: u16) {
        self.shared.state().target = port;
        self.cut();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.deliver();
        self.cut();
        // Wakes the thread that accepts, so that it sees the end.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a single assignment; a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming().map_while(Result::ok) {
        let target = {
            let state = shared.state();
            if state.ended {
                return;
            }
            (!state.refuses).then_some(state.target)
        };
        let server = target.map(|port| TcpStream::connect(("127.0.0.1", port)));
        if let Some(Ok(server)) = server {
            let _ = join(client, server, shared);
        }
    }
}

/// Passes on what both sides say, on a thread each, until one of them ends.
fn join(client: TcpStream, server: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let number = {
        let mut state = shared.state();
        state
            .streams
            .extend([client.try_clone()?, server.try_clone()?]);
        state.opened += 1;
        state.opened - 1
    };
    let (client_too, server_too, shared) =
        (client.try_clone()?, server.try_clone()?, shared.clone());
    std::thread::spawn(move || pump(client, server, || shared.pass(number)));
    std::thread::spawn(move || pump(server_too, client_too, || ()));
    Ok(())
}

impl Shared {
    /// Waits until what comes from this connection may pass.
    fn pass(&self, number: u64) {
        let mut state = self.state();
        while number < state.held_back {
            state.waits = true;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, before_each: impl Fn()) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        before_each();
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
