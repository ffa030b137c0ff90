//! Which process is at the other end of a connection on this machine: what the network before a server
//! needs to know to cut off some and not others.

use std::fs;
use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, netlink, recv, send, socket};

/// A child of ours that is connected to us.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) process: u32,
    /// A Redis server or a sentinel, and not a client of theirs.
    pub(super) is_server: bool,
}

impl Peer {
    /// Who connected from port `from` to our port `to`, if it is a child of ours.
    ///
    /// The kernel tells which socket has these ports, and which process has that socket open.
    pub(super) fn behind(from: u16, to: u16) -> Option<Self> {
        let link = format!("socket:[{}]", socket_between(from, to).ok()?);
        let mut children = children().into_iter();
        let process = children.find(|process| has_open(*process, &link))?;
        let program = fs::read_to_string(format!("/proc/{process}/comm"));
        let is_server = program.is_ok_and(|name| name.starts_with("redis"));
        Some(Self { process, is_server })
    }
}

/// The number of the socket on this machine that has port `from` and is connected to port `to`: one question
/// to the kernel, as `sock_diag(7)` has it. (`/proc/net/tcp` tells it, too, among thousands.)
fn socket_between(from: u16, to: u16) -> io::Result<u32> {
    let kernel = socket(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&kernel, &question(from, to), SendFlags::empty())?;
    let mut answer = [0; 512];
    let (count, _) = recv(&kernel, &mut answer[..], RecvFlags::empty())?;
    // The header, then `inet_diag_msg`, which ends with the number; anything else is an error.
    match (&answer[4..6], &answer[84..88]) {
        (kind, &[a, b, c, d]) if count >= 88 && kind == SOCK_DIAG_BY_FAMILY.to_ne_bytes() => {
            Ok(u32::from_ne_bytes([a, b, c, d]))
        }
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The kind of both messages.
const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// `nlmsghdr` and `inet_diag_req_v2`.
fn question(from: u16, to: u16) -> Vec<u8> {
    const LENGTH: u32 = 72;
    const REQUEST: u16 = 1;
    const INET: u8 = 2;
    const TCP: u8 = 6;
    let localhost = [127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]); // number and sender of the question
    bytes.extend([INET, TCP, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes()); // in any state
    bytes.extend(from.to_be_bytes());
    bytes.extend(to.to_be_bytes());
    bytes.extend(localhost);
    bytes.extend(localhost);
    bytes.extend([0; 4]); // on any interface
    bytes.extend([0xff; 8]); // no cookie
    bytes
}

/// Everything that the lab starts is a child of its process.
fn children() -> Vec<u32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn has_open(process: u32, link: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten();
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|target| target.as_os_str() == link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_knows_which_socket_a_connection_comes_from() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap().port();
        let stream = TcpStream::connect(("127.0.0.1", to)).unwrap();
        let from = stream.local_addr().unwrap().port();
        let link = format!("socket:[{}]", socket_between(from, to).unwrap());
        assert!(has_open(std::process::id(), &link));
        assert!(Peer::behind(from, to).is_none(), "we are no child of ours");
        let (accepted, _) = listener.accept().unwrap();
        drop((accepted, stream, listener));
        assert!(socket_between(to, to).is_err(), "nobody listens there");
    }
}
