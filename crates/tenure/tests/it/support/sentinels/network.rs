//! [`Network`]: a watched service whose parts reach each other only through doors, so that it can be
//! divided. Across a division nothing arrives and no connection is refused, as when a cable is cut.
//!
//! A door tells who comes by the address that it comes from: each server and sentinel has one of its own.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::super::redis_server::RedisServer;
use super::super::wait::eventually_within;
use super::{SERVICE, Sentinel, Temper, WITH_TILT};

/// A part of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Server(u8),
    Sentinel(u8),
    /// A client, on this side or that; it meets servers only where sentinels send it.
    Client(u8),
}

/// A primary, its replica, three sentinels, and doors between them.
#[derive(Debug)]
pub(crate) struct Network {
    /// The first is the primary.
    pub(crate) servers: Vec<RedisServer>,
    pub(crate) sentinels: Vec<Sentinel>,
    /// Where each server can be met.
    doors: Vec<u16>,
    /// Where each sentinel can be met by each of two clients.
    entrances: [Vec<u16>; 2],
    /// Who is cut off from all others, and together with whom.
    apart: Arc<watch::Sender<Vec<Node>>>,
    _tasks: JoinSet<()>,
}

impl Network {
    pub(crate) async fn start() -> Self {
        let apart = Arc::new(watch::Sender::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let mut held = Vec::new();
        for _ in 0..5 {
            held.push(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
        }
        let ports: Vec<u16> = held.iter().map(port_of).collect();
        let mut servers: Vec<RedisServer> = Vec::new();
        for number in 0..2 {
            let (source, door) = (
                source(Node::Server(number)).to_string(),
                ports[usize::from(number)],
            );
            let (door, first) = (door.to_string(), ports[0].to_string());
            let mut arguments = vec!["--repl-diskless-sync-delay", "0", "--bind-source-addr"];
            arguments.extend([&*source, "--replica-announce-ip", "127.0.0.1"]);
            arguments.extend(["--replica-announce-port", &door]);
            if number > 0 {
                arguments.extend(["--replicaof", "127.0.0.1", &first]);
            }
            servers.push(RedisServer::start_with(&arguments));
        }
        let mut held = held.into_iter();
        for (number, server) in (0..).zip(&servers) {
            let listener = held.next().expect("five");
            let door = Door::of(Node::Server(number), server.address(), &apart);
            tasks.spawn(door.serve(listener, None));
        }
        let mut sentinels = Vec::new();
        let mut entrances = [Vec::new(), Vec::new()];
        for (number, listener) in (0..).zip(held) {
            let node = Node::Sentinel(number);
            let (source, door) = (source(node), port_of(&listener));
            let settings = move |port| {
                format!(
                    "port {port}\nbind-source-addr {source}\nsentinel announce-ip 127.0.0.1\n\
                     sentinel announce-port {door}\n"
                )
            };
            let sentinel = Sentinel::launch_with(ports[0], Temper::ALERT, None, &settings);
            let door = Door::of(node, sentinel.address(), &apart);
            tasks.spawn(door.clone().serve(listener, None));
            for (client, entrances) in (0..).zip(&mut entrances) {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                entrances.push(port_of(&listener));
                tasks.spawn(door.clone().serve(listener, Some(Node::Client(client))));
            }
            sentinels.push(sentinel);
        }
        let network = Self {
            servers,
            sentinels,
            doors: ports[..2].to_vec(),
            entrances,
            apart,
            _tasks: tasks,
        };
        for sentinel in &network.sentinels {
            tokio::task::block_in_place(|| sentinel.knows_all());
        }
        network
    }

    /// The service as this client gets to know it.
    pub(crate) fn url(&self, client: u8, options: &str) -> String {
        let entrances = self.entrances[usize::from(client)].iter();
        let hosts: Vec<_> = entrances.map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis+sentinel://{}/{SERVICE}?{options}", hosts.join(","))
    }

    /// Cuts these off from all others, but not from each other.
    pub(crate) fn divide(&self, apart: &[Node]) {
        self.apart.send_replace(apart.to_vec());
    }

    /// All meet again.
    pub(crate) fn heal(&self) {
        self.divide(&[]);
    }

    /// Waits until these sentinels name this server.
    pub(crate) async fn named(&self, server: usize, by: &[usize]) {
        for sentinel in by {
            tokio::task::block_in_place(|| {
                eventually_within(WITH_TILT, "the sentinels name it", || {
                    (self.sentinels[*sentinel].primary() == self.doors[server]).then_some(())
                });
            });
        }
    }
}

fn port_of(listener: &TcpListener) -> u16 {
    listener.local_addr().expect("it is bound").port()
}

/// Where a node comes from.
fn source(node: Node) -> Ipv4Addr {
    match node {
        Node::Server(number) => Ipv4Addr::new(127, 0, 1, 1 + number),
        Node::Sentinel(number) => Ipv4Addr::new(127, 0, 2, 1 + number),
        Node::Client(_) => Ipv4Addr::LOCALHOST,
    }
}

/// Who comes from there; `None` for clients, who go where sentinels send them.
fn node(address: IpAddr) -> Option<Node> {
    let all = (0..2).map(Node::Server).chain((0..3).map(Node::Sentinel));
    let mut all = all.filter(|node| address == source(*node));
    all.next()
}

#[derive(Clone, Debug)]
struct Door {
    /// Who is behind it.
    owner: Node,
    address: String,
    apart: watch::Receiver<Vec<Node>>,
}

impl Door {
    fn of(owner: Node, address: String, apart: &watch::Sender<Vec<Node>>) -> Self {
        Self {
            owner,
            address,
            apart: apart.subscribe(),
        }
    }

    async fn serve(self, listener: TcpListener, visitor: Option<Node>) {
        let mut visits = JoinSet::new();
        while let Ok((stream, from)) = listener.accept().await {
            let visitor = visitor.or_else(|| node(from.ip()));
            visits.spawn(self.clone().visit(stream, visitor));
        }
    }

    async fn visit(mut self, client: TcpStream, visitor: Option<Node>) {
        self.open_for(visitor).await;
        let Ok(server) = TcpStream::connect(&self.address).await else {
            return;
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            () = self.clone().pass(visitor, from_client, to_server) => {}
            () = self.pass(visitor, from_server, to_client) => {}
        }
    }

    /// Passes on what arrives while nothing is in between.
    async fn pass(
        mut self,
        visitor: Option<Node>,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
    ) {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            self.open_for(visitor).await;
            if to.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    }

    async fn open_for(&mut self, visitor: Option<Node>) {
        let owner = self.owner;
        let together = |apart: &Vec<Node>| {
            visitor.is_none_or(|visitor| apart.contains(&visitor) == apart.contains(&owner))
        };
        // It ends with the network.
        let _ = self.apart.wait_for(together).await;
    }
}
