//! The protected resource: it takes writes, and refuses those with a fence below the highest that it
//! has seen. A write without a fence it has to take on trust.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use super::log::Log;
use crate::timeline::What;

/// Starts the resource on a free port; it lasts as long as this process.
pub(super) fn start(log: Log) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        let mut highest = 0;
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = serve(stream, &mut highest, &log);
        }
    });
    Ok(port)
}

/// One write: `NAME FENCE`, or `NAME -` without a fence.
fn serve(mut stream: TcpStream, highest: &mut u64, log: &Log) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let (who, fence) = line.trim().split_once(' ').unwrap_or((line.trim(), "-"));
    let fence = fence.parse::<u64>().ok();
    let accepted = fence.is_none_or(|fence| fence >= *highest);
    *highest = fence.unwrap_or(0).max(*highest);
    log.note(who, What::Wrote { accepted, fence });
    stream.write_all(if accepted {
        b"accepted\n"
    } else {
        b"refused\n"
    })
}
