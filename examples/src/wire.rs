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
    /// A line to `server`, an address like `127.0.0.1:6379`.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn to(server: &str) -> Outcome<Self> {
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

    /// Where it begins.
    pub fn address(&self) -> String {
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
                crate::pass_time(Duration::from_millis(5));
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
