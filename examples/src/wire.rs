//! [`Wire`]: a line to the store that can be cut, for one process alone.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Outcome;

/// A port of its own that leads to a server, until it is cut. Cut means silence: what is sent does not
/// arrive, and nobody is told.
#[derive(Debug)]
pub struct Wire {
    port: u16,
    cut: Arc<AtomicBool>,
}

impl Wire {
    /// A line to the server of this URL, and the URL that leads through it; `None` if it is not that of one Redis server.
    pub(crate) fn instead_of(url: &str) -> Outcome<Option<(Self, String)>> {
        let Some(rest) = url.strip_prefix("redis://") else {
            return Ok(None);
        };
        let (authority, options) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, server) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let has_port = server
            .rsplit(':')
            .next()
            .is_some_and(|it| it.parse::<u16>().is_ok());
        let wire = if has_port {
            Self::to(server)?
        } else {
            Self::to(&format!("{server}:6379"))?
        };
        let url = format!("redis://{user}{}{options}", wire.address());
        Ok(Some((wire, url)))
    }

    /// A line to `server`, an address like `127.0.0.1:6379`.
    fn to(server: &str) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let cut = Arc::new(AtomicBool::new(false));
        let (server, is_cut) = (server.to_owned(), cut.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if let Ok(far) = TcpStream::connect(&server) {
                    forward(&near, &far, &is_cut);
                    forward(&far, &near, &is_cut);
                }
            }
        });
        Ok(Self { port, cut })
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Cuts it.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    /// Mends it; what was sent meanwhile arrives late.
    pub fn mend(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

/// Passes on what comes from one end to the other, in a thread of its own.
fn forward(from: &TcpStream, to: &TcpStream, cut: &Arc<AtomicBool>) {
    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
        return;
    };
    let cut = cut.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            while cut.load(Ordering::SeqCst) {
                if crate::pass_time(Duration::from_millis(5)).is_err() {
                    return;
                }
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
